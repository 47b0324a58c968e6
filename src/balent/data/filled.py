"""A table on disk that is filled row by row: an .npy that is mapped, so that memory does not grow with it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def filled(path: Path, shape: tuple[int, int], dtype: np.dtype) -> Iterator[np.ndarray]:
    """A table to fill, which is the file."""
    if not shape[0]:  # nothing to map
        with path.open("wb") as file:
            np.save(file, np.empty(shape, dtype))
        yield np.empty(shape, dtype)
        return
    table = np.lib.format.open_memmap(path, "w+", dtype, shape)
    _reserve(path)
    yield table
    table.flush()


def _reserve(path: Path) -> None:
    """Reserves disk space for the whole file: writing to a mapped file on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
