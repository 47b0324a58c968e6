"""Shards that are .npy files: mapped if they are local, read by ranges if they are remote."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from balent.data import arrays, storage
from balent.data.shard_formats.reader import Unreadable, Wanted

REQUEST = 1 << 22  # bytes per request, at least, where rows are read in order
GAP = 1 << 16  # bytes between two rows that are read together rather than by two requests


class NpyShard:
    """The rows of an array."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        self.path = path
        self.header: arrays.Header
        self.rows_between: Callable[[int, int], np.ndarray]
        if wanted.key is not None:
            raise ValueError(f"key={wanted.key!r} names a column, but {path} has none; leave key out, or use parquet")
        try:
            self.header, self.rows_between = _remote(path) if storage.is_remote(path) else _local(path)
        except ValueError as error:
            raise Unreadable(0, 0, str(error)) from None
        _check(path, self.header)

    @property
    def rows(self) -> int:
        return self.header.shape[0]

    def pieces(self, first: int, stop: int, points: int) -> Iterator[tuple[int, np.ndarray]]:
        each = max(1, self.header.size // max(1, self.rows))
        together = points * max(1, REQUEST // (each * points)) if storage.is_remote(self.path) else points
        while first < stop:
            end = min(stop, first - first % together + together)
            yield first, self.rows_between(first, end)
            first = end

    def at(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((len(rows), *self.header.shape[1:]), self.header.dtype)
        each = max(1, self.header.size // max(1, self.rows))
        for run in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows) * each > GAP) + 1):
            if len(run):
                first = int(rows[run[0]])
                found[run] = self.rows_between(first, int(rows[run[-1]]) + 1)[rows[run] - first]
        return found

    def keys(self, first: int, stop: int) -> list[str]:
        raise ValueError(f"{self.path} has no column of keys")

    def name(self, row: int) -> None:
        return None

    def close(self) -> None:
        pass


def _check(path: str, header: arrays.Header) -> None:
    if not header.shape or header.dtype.kind not in "biuf":
        raise ValueError(
            f"{path} must hold numbers with a row for each point, but holds {header.dtype} of shape {header.shape}"
        )


def _local(path: str) -> tuple[arrays.Header, "Between"]:
    stored = arrays.stored(Path(path))
    return stored.header, Between(stored)


class Between:
    """Rows of a local file, mapped."""

    def __init__(self, stored: arrays.Stored) -> None:
        self.stored = stored

    def __call__(self, first: int, stop: int) -> np.ndarray:
        if self.stored.header.fortran or not self.stored.header.size:
            return self.stored.whole()[first:stop]
        return self.stored.rows(first, stop)


def _remote(path: str) -> tuple[arrays.Header, "Requested"]:
    file = storage.Ranges(path, storage.about(path).size)
    header = arrays.header_of(path, io.BufferedReader(file, 4096), file.size)
    if header.fortran:
        raise ValueError(f"{path} is in Fortran order, where a row is spread over the file; save it in C order")
    return header, Requested(path, file.size, header)


class Requested:
    """Rows of a remote file, one request for each run of rows."""

    def __init__(self, path: str, size: int, header: arrays.Header) -> None:
        self.file, self.header = storage.Ranges(path, size), header

    def __call__(self, first: int, stop: int) -> np.ndarray:
        found = np.empty((stop - first, *self.header.shape[1:]), self.header.dtype)
        if found.size:
            self.file.seek(self.header.offset + first * (self.header.size // self.header.shape[0]))
            self.file.readinto(found.reshape(-1).view(np.uint8))
        return found
