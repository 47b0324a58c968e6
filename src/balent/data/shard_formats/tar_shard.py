"""Shards that are WebDataset archives: .tar files whose members of one name, up to its first dot, are one point.

    000001.jpg  000001.cls  000002.jpg  000002.cls      two points, the images of which are read

A point is its image (.jpg, .png, .webp and so on), or its .npy; column="npy" says which, by the ending. An archive has
no list of its members, so one is made when it is opened, by reading all of its headers. Its keys are the names.
"""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from balent.data import arrays, storage
from balent.data.formats.endings import ENDINGS
from balent.data.shard_formats.pixels import pixels
from balent.data.shard_formats.reader import Unreadable, Wanted

BUFFER = 1 << 22  # bytes per request: members follow each other
BATCH = 64  # points decoded at a time
KEY = "__key__"  # what WebDataset calls the name of a point


@dataclass(frozen=True)
class Member:
    """Where the bytes of a point are."""

    key: str
    ending: str
    offset: int
    size: int


class TarShard:
    """The images or arrays of a WebDataset archive."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        if wanted.key not in (None, KEY):
            raise ValueError(
                f"the key of points in {path} is their name, key={KEY!r}, but key={wanted.key!r} was given"
            )
        self.path, self.wanted = path, wanted
        self.opened = storage.opened(path, BUFFER)
        try:
            self.members = list(_points(path, self.opened, wanted.column))
        except BaseException:
            self.opened.close()
            raise

    @property
    def rows(self) -> int:
        return len(self.members)

    def pieces(self, first: int, stop: int, points: int) -> Iterator[tuple[int, np.ndarray]]:
        while first < stop:
            end = min(stop, first - first % BATCH + BATCH)
            yield first, self._decoded(range(first, end))
            first = end

    def at(self, rows: np.ndarray) -> np.ndarray:
        return self._decoded(rows.tolist())

    def keys(self, first: int, stop: int) -> list[str]:
        return [member.key for member in self.members[first:stop]]

    def name(self, row: int) -> None:
        return None

    def close(self) -> None:
        self.opened.close()

    def _decoded(self, rows: "range | list[int]") -> np.ndarray:
        contents = [self._content(row) for row in rows]
        if all(self.members[row].ending == "npy" for row in rows):
            return _stacked([self._array(row, content) for row, content in zip(rows, contents, strict=True)], rows)
        return pixels([partial(io.BytesIO, content) for content in contents], self.wanted.size, rows)

    def _content(self, row: int) -> bytes:
        member = self.members[row]
        self.opened.seek(member.offset)
        content = self.opened.read(member.size)
        if len(content) < member.size:
            raise Unreadable(row, self.rows, f"the archive ends within {member.key}.{member.ending}")
        return content

    def _array(self, row: int, content: bytes) -> np.ndarray:
        member = self.members[row]
        try:
            return arrays.of_bytes(f"{self.path}, member {member.key}.npy,", content)
        except ValueError as error:
            raise Unreadable(row, row + 1, str(error)) from None


def _stacked(found: list[np.ndarray], rows: "range | list[int]") -> np.ndarray:
    for row, array in zip(rows, found, strict=True):
        if array.shape != found[0].shape:
            why = f"its array has the shape {array.shape}, but that of row {rows[0]} has {found[0].shape}"
            raise Unreadable(row, row + 1, why)
    return np.stack(found)


def _points(path: str, file: io.BufferedReader, column: str | None) -> Iterator[Member]:
    """The member of each point that is read, in the order of the archive."""
    endings = ("npy", *(ending[1:] for ending in ENDINGS)) if column is None else (column.lstrip(".").lower(),)
    count, last, found = 0, None, False
    for member in _members(file):
        if last is not None and member.key != last and not found:
            _lacks(path, count, last, endings)
        if member.key != last:
            last, found = member.key, False
        if member.ending in endings and not found:
            yield member
            found, count = True, count + 1
    if last is not None and not found:
        _lacks(path, count, last, endings)


def _lacks(path: str, row: int, key: str, endings: tuple[str, ...]) -> None:
    what = "a .npy or an image" if len(endings) > 1 else f"a member ending in .{endings[0]}"
    raise ValueError(f"{path}: each point must have {what}, but {key!r} (row {row}) has none; choose with column=")


def _members(file: io.BufferedReader) -> Iterator[Member]:
    """All files of an archive. Nothing is unpacked, and links and devices are not followed."""
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            while (info := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # else it keeps them all
                folder, slash, base = info.name.rpartition("/")
                if info.isfile() and not base.startswith("."):
                    stem, _, ending = base.partition(".")
                    yield Member(f"{folder}{slash}{stem}", ending.lower(), info.offset_data, info.size)
    except tarfile.TarError as error:
        raise Unreadable(0, 0, f"it is not a readable .tar archive: {error}") from None
