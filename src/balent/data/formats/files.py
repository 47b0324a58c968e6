"""Published files: where they are looked for, how they are verified, and what errors say.

A copy of the published size with another checksum is damaged, and refused. One of another size is
another edition (a part of the set, files packed anew): its format decides whether it can be read, and
a note reports that it is not the published one.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BALENT_DATA"  # of the environment: the folder with data, where none is named


@dataclass(frozen=True)
class Known:
    """A file as it was published."""

    md5: str
    size: int | None = None  # bytes


@dataclass(frozen=True)
class Source:
    """Where a data set comes from, and where it is looked for below the folder with data."""

    name: str
    address: str
    folders: tuple[str, ...]  # the first is where we tell people to put it

    def places(self, folder: Path) -> list[Path]:
        return [folder, *(folder / name for name in self.folders)]

    def find(self, folder: Path, names: Sequence[str]) -> Path | None:
        """The first of these files or folders that is there."""
        return next((place / name for place in self.places(folder) for name in names if (place / name).exists()), None)

    def missing(self, folder: Path, names: Iterable[str]) -> FileNotFoundError:
        looked = ", ".join(str(place) for place in self.places(folder) if place.is_dir()) or f"{folder} (not a folder)"
        return FileNotFoundError(
            f"{self.name} needs {', '.join(names)}, which was not found; looked in {looked}. "
            f"Get it from {self.address} and put it into {folder / self.folders[0]}"
        )

    def damaged(self, path: Path, why: object, known: Known | None = None) -> ValueError:
        size = path.stat().st_size if path.is_file() else None
        came = f" ({size:,} bytes)" if size is not None else ""
        expected = f"; published is {_described(known)}" if known else ""
        return ValueError(f"{path}{came} is damaged: {why}{expected}. Get it again from {self.address}")

    def checked(self, path: Path, known: Known | None, content: bytes | None = None) -> list[str]:
        """Nothing for the published file (or its content), a note for another edition, an error for a damaged one."""
        if known is None:
            return []
        size = path.stat().st_size if content is None else len(content)
        came = md5(path) if content is None else hashlib.md5(content, usedforsecurity=False).hexdigest()
        if came == known.md5:
            return []
        if size == known.size:
            raise self.damaged(path, f"it has the published size, but its md5 is {came}", known)
        return [f"{path.name} ({size:,} bytes, md5 {came}) is not the published file of {self.name}: read as it is"]


def _described(known: Known) -> str:
    return f"md5 {known.md5}" + (f", {known.size:,} bytes" if known.size is not None else "")


def below(place: Path, prefix: str = "", above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[str]:
    """Paths of all files below a folder, with slashes; hidden ones, like the cache, are left out.

    A link to a folder above is not followed: it would give every file again, 40 times.
    """
    stat = os.stat(place / prefix)
    here = (stat.st_dev, stat.st_ino)
    if here in above:
        return
    with os.scandir(place / prefix) as entries:
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from below(place, f"{name}/", above | {here})
            else:
                yield name


def md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def folder_of(name: str, folder: str | os.PathLike[str] | None) -> Path:
    """The folder with data: the one that is named, or that of the environment."""
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if not named:
        raise ValueError(
            f"{name} is read from the folder with your data sets; name that folder (folder=, on the command line "
            f"--data), or set {VARIABLE}"
        )
    found = Path(named).expanduser().resolve()
    if not found.is_dir():
        raise FileNotFoundError(f"the folder with data sets must be a folder, but {found} is not; name another")
    return found
