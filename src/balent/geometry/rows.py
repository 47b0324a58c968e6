"""Rows of numbers, added in blocks: in memory up to a budget, in a temporary file beyond it.

The file has no name and disappears with the process, however it ends. It is in the folder for temporary files
(TMPDIR) and is mapped, so free memory serves as its cache.
"""

import tempfile
from collections.abc import Iterator
from typing import IO, Any, Literal

import numpy as np
import torch
from torch import Tensor

Storage = Literal["float32", "float16"]
CHUNK = 2048  # rows at a time
FIRST = 4096  # rows at first, if their number is not known


class Rows:
    """Rows of one width, added in blocks; read by position, or a chunk at a time, as float32."""

    def __init__(self, memory: int, storage: Storage = "float32", expected: int | None = None) -> None:
        self.memory, self.dtype, self.expected = memory, getattr(torch, storage), expected
        self._data: Tensor | None = None
        self._file: IO[bytes] | None = None
        self._length = 0

    def add(self, block: Tensor) -> Tensor:
        """Some rows more; returned as they are kept."""
        start, self._length = self._length, self._length + len(block)
        if self._data is None or len(self._data) < self._length:
            self._grow(block.shape[1])
        self._rows()[start:] = block.to("cpu", self.dtype)
        return self[slice(start, None)]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: Tensor | slice) -> Tensor:
        return self._rows()[at].float()

    def chunks(self) -> Iterator[slice]:
        for start in range(0, self._length, CHUNK):
            yield slice(start, min(start + CHUNK, self._length))

    @property
    def in_file(self) -> bool:
        return self._file is not None

    def kept(self) -> Tensor:
        """All rows, in the precision that they are kept in."""
        return torch.empty(0, 0, dtype=self.dtype) if self._data is None else self._rows()

    def __getstate__(self) -> dict[str, Any]:
        """Rows that are sent elsewhere: without the file, and without room for those that are still expected."""
        return {**vars(self), "expected": None, "_file": None, "_data": None if self._data is None else self._rows()}

    def close(self) -> None:
        """Frees memory and file."""
        self._data = None
        if self._file is not None:
            self._file.close()

    def _rows(self) -> Tensor:
        assert self._data is not None  # something was added, and nothing closed
        return self._data[: self._length]

    def _grow(self, width: int) -> None:
        """Makes room for the expected rows; if their number is not known, for twice those so far."""
        rows = max(self._length, self.expected or max(FIRST, 2 * self._length))
        before, was_in_file = self._data, self.in_file
        fits = rows * width * self.dtype.itemsize <= self.memory
        self._data = torch.empty(rows, width, dtype=self.dtype) if fits else self._mapped(rows, width)
        if before is not None and not was_in_file:
            self._data[: len(before)] = before

    def _mapped(self, rows: int, width: int) -> Tensor:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="balent-")  # noqa: SIM115  # `close` closes it
        self._file.truncate(rows * width * self.dtype.itemsize)  # no place on the disk before it is written
        kind = torch.empty(0, dtype=self.dtype).numpy().dtype
        return torch.from_numpy(np.memmap(self._file, kind, "r+", shape=(rows, width)))
