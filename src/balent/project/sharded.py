"""Items that are rows of numbers in shards: a folder, a pattern or s3://… of .npy, .parquet, .tar or .arrow files.

The id of an item is what the key column says, else its file below the folder that the shards share, and its row. Rows
that cannot be read are skipped, with the reason. Ids and fingerprints are kept in memory, rows are not. No torch here.
"""

import hashlib
from collections.abc import Iterator
from functools import partial

import numpy as np

from balent.data import shard_formats
from balent.data.shard_formats.reader import Reader, Unreadable, Wanted
from balent.data.shard_paths import paths, short
from balent.project.items import Found

TOGETHER = 1024  # rows that are read at a time


class Sharded:
    """The data of a project of features."""

    def __init__(self, words: str, key: str | None = None) -> None:
        self.words, self.wanted = words, Wanted(key=key)
        self.skipped: dict[str, str] = {}
        self._at: dict[str, tuple[str, int]] = {}
        self._bad: set[tuple[str, int]] = set()
        self._read: tuple[str, int, dict[int, np.ndarray]] = ("", 0, {})  # the last rows: their path, first, all

    def found(self) -> Iterator[Found]:
        self.skipped, self._at, self._bad, self._read = {}, {}, set(), ("", 0, {})
        shards = sorted(paths(self.words))
        for path, name in zip(shards, short(shards), strict=True):
            yield from self._of(path, name)

    def content(self, id: str) -> np.ndarray:
        path, row = self._at[id]
        first = row - row % TOGETHER
        if self._read[:2] != (path, first):
            self._read = (path, first, self._rows(path, first))
        return self._read[2][row]

    def targets(self) -> dict[str, str]:
        """Labels are in no column."""
        return {}

    def _of(self, path: str, name: str) -> Iterator[Found]:
        reader = self._opened(path)
        try:
            for first, rows in self._readable(reader, path, name):
                ids = self._ids(reader, name, first, len(rows))
                for row, (id, values) in enumerate(zip(ids, rows, strict=True), first):
                    self._add(id, path, row)
                    yield Found(id, partial(str, digest_of(values)))
        finally:
            reader.close()

    def _opened(self, path: str) -> Reader:
        try:
            return shard_formats.opened(path, self.wanted)
        except Unreadable as bad:
            raise ValueError(f"{path} cannot be read: {bad.why}; repair or remove it") from None

    def _readable(self, reader: Reader, path: str, name: str) -> Iterator[tuple[int, np.ndarray]]:
        """All rows but those that are damaged."""
        first = 0
        while first < reader.rows:
            try:
                for start, rows in reader.pieces(first, reader.rows, TOGETHER):
                    _check(rows, path)
                    yield start, rows
                    first = start + len(rows)
                return
            except Unreadable as bad:
                self._skip(path, name, range(max(first, bad.first), bad.stop), bad.why)
                if first < bad.first:
                    yield from reader.pieces(first, bad.first, TOGETHER)
                first = max(first + 1, bad.stop)

    def _skip(self, path: str, name: str, rows: range, why: str) -> None:
        self.skipped |= {f"{name}#{row}": why for row in rows}
        self._bad |= {(path, row) for row in rows}

    def _ids(self, reader: Reader, name: str, first: int, count: int) -> list[str]:
        if self.wanted.key is not None:
            return reader.keys(first, first + count)
        return [f"{name}#{row}" for row in range(first, first + count)]

    def _add(self, id: str, path: str, row: int) -> None:
        if id in self._at:
            before, at = self._at[id]
            raise ValueError(
                f"ids must be unique, but {id!r} is that of row {at} of {before} and of row {row} of {path}; name "
                "another column (--id), or none"
            )
        self._at[id] = path, row

    def _rows(self, path: str, first: int) -> dict[int, np.ndarray]:
        """The rows that are read together with one of them."""
        reader = self._opened(path)
        try:
            stop = min(first + TOGETHER, reader.rows)
            good = [row for row in range(first, stop) if (path, row) not in self._bad]
            return dict(zip(good, reader.at(np.array(good)).astype(np.float32), strict=True))
        finally:
            reader.close()


def _check(rows: np.ndarray, path: str) -> None:
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise ValueError(
            f"features must be numbers, one row per item, but those of {path} are {rows.dtype} of shape "
            f"{list(rows.shape[1:])} each; of images in shards make features first: balent embed"
        )


def digest_of(row: np.ndarray) -> str:
    """The sha256 of a row of numbers."""
    return hashlib.sha256(f"{row.dtype.str} ".encode() + np.ascontiguousarray(row).tobytes()).hexdigest()
