"""Shards that are Arrow streams: what a Hugging Face data set is after `save_to_disk`. Local files are mapped."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from balent.data import storage
from balent.data.formats.parquet import arrow
from balent.data.shard_formats import arrow_columns
from balent.data.shard_formats.reader import Unreadable, Wanted

BATCH = 1024  # rows that become an array at a time


class ArrowShard:
    """Columns of an Arrow stream. Its batches are found one after the other, which reads their headers alone."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        self.path, self.wanted = path, wanted
        arrow()
        with self._stream() as stream:
            self.names = arrow_columns.chosen(path, stream.schema, wanted)
        self.rows = sum(len(batch) for _, batch in self._batches(0, None))

    def pieces(self, first: int, stop: int, points: int) -> Iterator[tuple[int, np.ndarray]]:
        for row, batch in self._batches(first, stop):
            for start in range(0, len(batch), BATCH):
                some = batch.slice(start, BATCH)
                yield row + start, arrow_columns.rows(some, self.names, self.wanted, row + start)

    def at(self, rows: np.ndarray) -> np.ndarray:
        found = []
        for row, batch in self._batches(int(rows[0]), int(rows[-1]) + 1):
            for at in rows[(rows >= row) & (rows < row + len(batch))].tolist():
                found.append(arrow_columns.rows(batch.slice(at - row, 1), self.names, self.wanted, at))
        return np.concatenate(found)

    def keys(self, first: int, stop: int) -> list[str]:
        name = str(self.wanted.key)
        return [key for row, batch in self._batches(first, stop) for key in arrow_columns.keys(batch, name, row)]

    def name(self, row: int) -> None:
        return None

    def close(self) -> None:
        pass

    def _batches(self, first: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        """Record batches of the rows first..stop - 1, with the number of the first row of each."""
        row = 0
        with self._stream() as stream:
            while stop is None or row < stop:
                batch = self._next(stream, row)
                if batch is None:
                    return
                low, high = max(first, row), row + len(batch) if stop is None else min(stop, row + len(batch))
                if low < high:
                    yield low, batch.slice(low - row, high - low)
                row += len(batch)

    def _next(self, stream: Any, row: int) -> Any:
        try:
            return stream.read_next_batch()
        except StopIteration:
            return None
        except ConnectionError:
            raise
        except Exception as error:
            raise Unreadable(row, 1 << 32, f"it cannot be decoded: {str(error)[:200]}") from None

    def _stream(self) -> Any:
        import pyarrow

        source = storage.opened(self.path) if storage.is_remote(self.path) else pyarrow.memory_map(self.path)
        try:
            return pyarrow.ipc.open_stream(source)
        except ConnectionError:
            raise
        except Exception as error:
            raise Unreadable(0, 0, f"it is not a readable Arrow stream: {str(error)[:200]}") from None
