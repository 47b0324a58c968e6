"""Where items are: a folder of images, rows of a table, an array of features, or shards of them.

Each kind lists its items (id and fingerprint) and gives the content of an item by its id: a path, a text, a row of
named values, or a row of numbers. What cannot be an item is listed in `skipped`, with the reason. No torch here.
"""

import hashlib
import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from stat import S_ISREG
from typing import Any, Protocol, runtime_checkable

import numpy as np

from balent.data import shard_formats, shard_paths, storage
from balent.data.formats.endings import ENDINGS
from balent.data.formats.files import below
from balent.project.classes import checked
from balent.project.items import Found
from balent.project.settings import NAME, Settings
from balent.project.sharded import Sharded, digest_of

ARRAY = ".npy"
LINK = "a link; --follow-links includes it"
MANY, ONCE = 100, 0.9  # classes: a column with more, of which nearly all occur once, has something else
Row = dict[str, Any]


@runtime_checkable
class Kind(Protocol):
    """Data of one kind."""

    skipped: dict[str, str]  # ids, and why they are not items

    def found(self) -> Iterator[Found]: ...
    def content(self, id: str) -> Any: ...
    def targets(self) -> dict[str, str]: ...  # labels that the data have already


def kind_of(settings: Settings, project: Path) -> Kind:
    """The data of a project."""
    place, words = settings.place(project), settings.words(project)
    if settings.kind == "features" and shard_paths.names_shards(words):
        return Sharded(words, settings.id or None)
    if not place.exists():
        raise FileNotFoundError(f"the data of {project} were at {place}, but are not there; name their place: --data")
    if settings.kind == "images":
        return Images(place, settings.follow_links)
    if settings.kind == "features":
        return Given(place, place.parent / settings.ids if settings.ids else None)
    return Table(place, settings)


def holds_features(words: str) -> bool:
    """Are data with these words shards of numbers?  A folder is, if it has shards and no images."""
    if not os.path.isdir(words):
        return storage.is_remote(words) or (storage.is_pattern(words) and not os.path.exists(words))
    names = [*below(Path(words))]
    return any(shard_formats.ending(name) for name in names) and not any(n.lower().endswith(ENDINGS) for n in names)


def check_fits(settings: Settings) -> None:
    """Refuses settings that data of this kind do not use: who names a column of a folder means something else."""
    columns = ("text", "id", "target")
    unused = {"images": columns, "features": (*columns, "features"), "table": ("text",), "text": ()}[settings.kind]
    shards = settings.kind == "features" and not settings.data.endswith(ARRAY)  # where the column `id` is the key
    given = [name for name in unused if getattr(settings, name) and not (shards and name == "id")]
    array = settings.kind == "features" or settings.features.endswith(ARRAY)
    given += ["features"] if settings.kind == "table" and settings.features and not array else []
    given += ["ids"] if settings.ids and not array else []
    if given:
        name = given[0]
        raise ValueError(
            f"data of the kind {settings.kind} have no use for {name} = {getattr(settings, name)!r}; leave it out"
        )
    if settings.kind == "text" and not settings.text:
        raise ValueError("data of the kind text need text, the name of the column that has the texts")


def array_of(settings: Settings, project: Path) -> "Given | None":
    """Features that were computed elsewhere, with the ids of the items; None if balent computes them."""
    if settings.kind == "features" or not settings.features.endswith(ARRAY):
        return None
    if not settings.ids:
        raise ValueError(f"the rows of {settings.features} need ids: name a file with an id per line: --ids FILE")
    beside = settings.place(project).parent
    return Given(beside / settings.features, beside / settings.ids)


class Images:
    """Files of a folder and the folders in it. The id of an image is its path below the folder, with slashes."""

    def __init__(self, folder: Path, follow_links: bool = False) -> None:
        if not folder.is_dir():
            raise NotADirectoryError(f"images are read from a folder, but {folder} is not one; name a folder")
        self.folder, self.follow_links = folder, follow_links
        self.skipped: dict[str, str] = {}
        self._ids: list[str] = []

    def found(self) -> Iterator[Found]:
        self.skipped = {}
        files = sorted(self._files("", frozenset()))
        self.skipped = dict(sorted(self.skipped.items()))
        self._ids = [id for id, _ in files]
        for id, stat in files:
            yield Found(id, cache(partial(digest, self.folder / id)), stat.st_size, stat.st_mtime_ns)

    def content(self, id: str) -> Path:
        """The path, if it lies in the folder: a link that leads elsewhere is refused."""
        path = self.folder / id
        if not self.follow_links and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder)):
            raise PermissionError(f"{id} is outside of {self.folder}")
        return path

    def targets(self) -> dict[str, str]:
        """The folder that each image lies in."""
        return {id: os.path.basename(os.path.dirname(id)) for id in self._ids if "/" in id}

    def _files(self, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result]]:
        stat = os.stat(self.folder / prefix)
        here = (stat.st_dev, stat.st_ino)
        if here in above:
            return  # a link to a folder above
        with os.scandir(self.folder / prefix) as entries:
            for entry in entries:
                yield from self._entry(entry, f"{prefix}{entry.name}", above | {here})

    def _entry(
        self, entry: os.DirEntry[str], id: str, above: frozenset[tuple[int, int]]
    ) -> Iterator[tuple[str, os.stat_result]]:
        if entry.name.startswith("."):
            return
        image = entry.name.lower().endswith(ENDINGS)
        if entry.is_symlink() and not self.follow_links:
            self.skipped |= {id: LINK} if image or entry.is_dir() else {}
        elif entry.is_dir():
            if not os.path.exists(os.path.join(entry.path, NAME)):
                yield from self._files(f"{id}/", above)
        elif image:
            yield from self._file(entry, id)

    def _file(self, entry: os.DirEntry[str], id: str) -> Iterator[tuple[str, os.stat_result]]:
        try:
            stat = entry.stat()
            if not S_ISREG(stat.st_mode):  # to open a pipe would take until somebody writes to it
                self.skipped[id] = "not a file"
                return
            with open(entry.path, "rb"):
                pass
        except OSError as error:
            self.skipped[id] = error.strerror or str(error)
        else:
            yield id, stat


class Table:
    """Rows of a CSV, JSONL or parquet file: of each the text, or all columns but id and target."""

    def __init__(self, path: Path, settings: Settings) -> None:
        from balent.data.identities import fingerprints, identities
        from balent.data.table_rows import rows

        self.settings, self.skipped = settings, dict[str, str]()
        self.table = rows(path)
        for name in (settings.text, settings.id, settings.target):
            if name and name not in self.table.columns:
                raise ValueError(
                    f"{path} has no column {name!r}; its columns are {', '.join(map(repr, self.table.columns))}"
                )
        self.ids = identities(self.table, settings.id or None, settings.target or None)
        self.prints = fingerprints(self.table, settings.target or None, settings.id or None)
        self._at = {id: number for number, id in enumerate(self.ids)}
        self._targets = self._labels() if settings.target else {}

    def found(self) -> Iterator[Found]:
        self.skipped = {}
        for id, print in zip(self.ids, self.prints, strict=True):
            yield Found(id, partial(str, print))

    def content(self, id: str) -> str | Row:
        at = self._at[id]
        if self.settings.text:
            value = self.table.columns[self.settings.text][at]
            return "" if value is None else str(value)
        apart = (self.settings.id, self.settings.target)
        return {name: values[at] for name, values in self.table.columns.items() if name not in apart}

    def targets(self) -> dict[str, str]:
        """Rows that have a target are labelled already."""
        return self._targets

    def _labels(self) -> dict[str, str]:
        """Class names by id; a number that is whole is written as such, as in ids."""
        from balent.data.identities import plain

        column, found = self.settings.target, dict[str, str]()
        for at, value in enumerate(self.table.columns[column]):
            name = "" if value is None else str(plain(value)).strip()
            try:
                found |= {self.ids[at]: checked(name)} if name else {}
            except ValueError as error:
                raise ValueError(f"{self.table.where(at)} has no label in column {column!r}: {error}") from None
        different = len({*found.values()})
        if different > MANY and different > ONCE * len(found):
            raise ValueError(
                f"the target must be a column of classes, but {column!r} of {self.table.path} has {different:,} "
                f"different values in {len(found):,} rows; name another column, or none"
            )
        return found


class Given:
    """Rows of numbers in an .npy file, with ids in a text file, one per line; else ids are row numbers."""

    def __init__(self, path: Path, ids: Path | None) -> None:
        from balent.data import arrays

        self.skipped: dict[str, str] = {}
        self.path, self.rows = path, arrays.npy(path)
        if self.rows.ndim != 2 or self.rows.dtype.kind not in "fiu":
            raise ValueError(
                f"features must be numbers, one row per item, but {path} is {self.rows.dtype} of shape "
                f"{self.rows.shape}"
            )
        self.ids = [str(i) for i in range(len(self.rows))] if ids is None else lines(ids)
        if len(self.ids) != len(self.rows):
            raise ValueError(f"every row needs an id, but {path} has {len(self.rows)} rows and {ids} {len(self.ids)}")
        self._at = {id: number for number, id in enumerate(self.ids)}
        if len(self._at) < len(self.ids):
            twice = next(id for number, id in enumerate(self.ids) if self._at[id] != number)
            raise ValueError(f"ids must be unique, but {twice!r} stands in {ids} twice")

    def found(self) -> Iterator[Found]:
        for id, row in zip(self.ids, self.rows, strict=True):
            yield Found(id, cache(partial(digest_of, row)))

    def content(self, id: str) -> np.ndarray:
        return np.asarray(self.rows[self._at[id]], dtype=np.float32)

    def targets(self) -> dict[str, str]:
        return {}


def lines(path: Path) -> list[str]:
    """Of a text file with an id per line."""
    return path.read_text(encoding="utf-8").splitlines()


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
