"""Rows of a table as numbers: each column by its kind.

Kinds, means and levels are learnt once. A row then depends on nothing but itself; columns that come later are not used,
and those that are gone count as missing. No torch here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from balent.data.column_kinds import BUCKETS, CLIP, LEVELS, Category, Kind, Number, learnt
from balent.data.table_rows import Value

FORMAT = 1


class Columns:
    """Features of table rows, given as dicts of cells by column name. Leave the target and the id out."""

    def __init__(self) -> None:
        self._kinds: list[Kind] | None = None
        self._notes: list[str] = []

    def fit(self, contents: Sequence[Mapping[str, Value]]) -> None:
        """Learns the kind of each column, and its mean and deviation or its levels."""
        names = sorted({name for row in contents for name in row})
        found = [learnt(name, [row.get(name) for row in contents]) for name in names]
        kinds = [kind for kind, _ in found if kind is not None]
        notes = [note for _, note in found if note is not None]
        if not kinds:
            raise ValueError(
                f"rows must have a column that differs between rows, but have none: {'; '.join(notes)[:400]}"
            )
        self._kinds, self._notes = kinds, notes

    @property
    def kinds(self) -> list[Kind]:
        if self._kinds is None:
            raise RuntimeError("Columns has learnt no columns yet; call fit(rows) or load_state(state) first")
        return self._kinds

    @property
    def width(self) -> int:
        """Features of a row."""
        return sum(kind.width for kind in self.kinds)

    def notes(self) -> list[str]:
        """What a user should know: columns that are not used, read as dates, or have too many levels."""
        return self._notes

    def __call__(self, contents: Sequence[Mapping[str, Value]]) -> tuple[np.ndarray, list[str | None]]:
        """float32 rows of the good contents, in order; and for each content None, or why it has no row."""
        blocks, columns = zip(
            *(kind.block([row.get(kind.name) for row in contents]) for kind in self.kinds), strict=True
        )
        reasons = [next((why for why in cell if why), None) for cell in zip(*columns, strict=True)]
        good = [i for i, why in enumerate(reasons) if why is None]
        return np.concatenate([block.astype(np.float32) for block in blocks], 1)[good], reasons

    def about(self) -> dict[str, Any]:
        """The settings that decide about features."""
        return {"kind": "columns", "format": FORMAT, "levels": LEVELS, "buckets": BUCKETS, "clip": CLIP}

    def state(self) -> dict[str, np.ndarray]:
        """What was learnt, as arrays for .npz: JSON in ASCII, where each number has all its digits."""
        kinds = [{"kind": type(kind).__name__, **asdict(kind)} for kind in self.kinds]
        return {"columns": np.frombuffer(json.dumps({"kinds": kinds, "notes": self._notes}).encode("ascii"), np.uint8)}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        found = json.loads(state["columns"].tobytes())
        self._kinds, self._notes = [_kind(**kind) for kind in found["kinds"]], found["notes"]


def _kind(kind: str, **settings: Any) -> Kind:
    made: dict[str, Callable[..., Kind]] = {"Number": Number, "Category": Category}
    return made[kind](**{name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()})
