"""Rows of a shard that cannot be read: the error that names them, and the list of what was left out. No torch here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Skipped:
    """Rows that were left out, and why. `rows` is None for a shard whose rows could not be counted."""

    path: str
    first: int
    rows: int | None
    why: str

    def __str__(self) -> str:
        which = "all rows" if self.rows is None else f"{self.rows:,} rows from row {self.first:,}"
        return f"{self.path}: {which}: {self.why}"


class Damaged(ValueError):
    """Rows of a shard that cannot be read."""

    def __init__(self, path: str, first: int, rows: int | None, why: str) -> None:
        self.skipped = Skipped(path, first, rows, why)
        super().__init__(
            f"{path} cannot be used from row {first:,}: {why}. Repair or remove it, or go on without what cannot be "
            "read: skip_bad=True (--skip-bad)"
        )

    def __reduce__(self) -> tuple[type["Damaged"], tuple[str, int, int | None, str]]:
        return Damaged, (self.skipped.path, self.skipped.first, self.skipped.rows, self.skipped.why)
