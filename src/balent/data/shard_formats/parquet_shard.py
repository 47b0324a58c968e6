"""Shards that are parquet files. Row groups are read one after the other, each a batch of rows at a time.

A single row can only be read by decoding its row group from the start. So files of which few rows are read (as `auto`
does) should have small row groups, of some thousand rows.
"""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from balent.data import storage
from balent.data.formats.parquet import arrow
from balent.data.shard_formats import arrow_columns
from balent.data.shard_formats.reader import Unreadable, Wanted

BATCH = 1024  # rows decoded at a time
BUFFER = 1 << 20  # bytes of a column that are read at a time


class ParquetShard:
    """Columns of a parquet file."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        self.path, self.wanted = path, wanted
        self.opened = storage.opened(path, BUFFER)
        try:
            self.file = _parquet(self.opened)
            self.names = arrow_columns.chosen(path, self.file.schema_arrow, wanted)
        except BaseException:
            self.opened.close()
            raise
        about = self.file.metadata
        self.ends = np.cumsum([0, *(about.row_group(i).num_rows for i in range(about.num_row_groups))])

    @property
    def rows(self) -> int:
        return int(self.ends[-1])

    def pieces(self, first: int, stop: int, points: int) -> Iterator[tuple[int, np.ndarray]]:
        for row, batch in self._batches(first, stop, self.names):
            yield row, arrow_columns.rows(batch, self.names, self.wanted, row)

    def at(self, rows: np.ndarray) -> np.ndarray:
        found = []
        for group in np.unique(np.searchsorted(self.ends, rows, side="right") - 1).tolist():
            wanted = rows[(rows >= self.ends[group]) & (rows < self.ends[group + 1])]
            for row, batch in self._batches(int(wanted[0]), int(wanted[-1]) + 1, self.names):
                some = wanted[(wanted >= row) & (wanted < row + len(batch))]
                for start, part in _neighbours(batch, some - row):  # of images, only those are decoded
                    found.append(arrow_columns.rows(part, self.names, self.wanted, row + start))
        return np.concatenate(found)

    def keys(self, first: int, stop: int) -> list[str]:
        name = str(self.wanted.key)
        return [
            key for row, batch in self._batches(first, stop, [name]) for key in arrow_columns.keys(batch, name, row)
        ]

    def name(self, row: int) -> None:
        return None

    def close(self) -> None:
        self.file.close()
        self.opened.close()

    def _batches(self, first: int, stop: int, names: list[str]) -> Iterator[tuple[int, Any]]:
        """Record batches of the rows first..stop - 1, with the number of the first row of each."""
        for group in range(len(self.ends) - 1):
            start, end = int(self.ends[group]), int(self.ends[group + 1])
            if start < stop and first < end:
                yield from self._group(group, max(first, start), min(stop, end), names)

    def _group(self, group: int, first: int, stop: int, names: list[str]) -> Iterator[tuple[int, Any]]:
        row, end = int(self.ends[group]), int(self.ends[group + 1])
        try:
            for batch in self.file.iter_batches(BATCH, row_groups=[group], columns=names, use_threads=False):
                batch.validate(full=True)
                low, high = max(first, row), min(stop, row + len(batch))
                if low < high:
                    yield low, batch.slice(low - row, high - low)
                row += len(batch)
                if row >= stop:
                    return
        except (ConnectionError, Unreadable, MemoryError, GeneratorExit):
            raise
        except Exception as error:
            raise Unreadable(row, end, f"row group {group} cannot be decoded: {_words(error)}") from None
        if row < end:
            raise Unreadable(row, end, f"row group {group} ends after {row - self.ends[group]:,} rows")


def _parquet(opened: io.BufferedReader) -> Any:
    _, parquet = arrow()
    try:
        return parquet.ParquetFile(opened, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
    except ConnectionError:
        raise
    except Exception as error:  # pyarrow has a dozen kinds for damaged files
        raise Unreadable(0, 0, f"it is not a readable parquet file: {_words(error)}") from None


def _neighbours(batch: Any, rows: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Runs of rows that follow each other, as slices."""
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(run):
            yield int(run[0]), batch.slice(int(run[0]), len(run))


def _words(error: BaseException) -> str:
    return str(error).replace("\n", " ")[:200]
