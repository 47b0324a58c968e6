"""Writes the scores of all points to a file, .npy or .parquet. The file appears only when it is complete."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from torch import Tensor

from balent.data import outputs
from balent.data.filled import filled
from balent.data.formats.parquet import arrow
from balent.lookup import lookup
from balent.types import Indices

Write = Callable[[Indices, Tensor], None]


@contextmanager
def written(path: str | os.PathLike[str], names: list[str], total: int | None) -> Iterator[Write]:
    """A writer of scores by position. The file appears when all scores are written, and not at all after an error."""
    if total is None:
        raise ValueError(
            "scores=… needs a pool of known length, but it is a stream; pass an array, a Dataset or a DataLoader"
        )
    target = Path(path)
    lookup(WRITERS, target.suffix, "writer for files ending in")
    with outputs.whole(target) as partial, table(partial, target.suffix, names, total) as rows:

        def write(positions: Indices, scores: Tensor) -> None:
            rows[positions.numpy()] = scores.numpy()

        yield write


def table(path: Path, suffix: str, names: list[str], total: int, first: int = 0) -> AbstractContextManager[np.ndarray]:
    """A table [points, measures] to fill, which is a file at the end. `first` is the position of its first row."""
    return WRITERS[suffix](path, names, total, first)


def _npy(path: Path, names: list[str], total: int, first: int = 0) -> AbstractContextManager[np.ndarray]:
    """A table to fill, which is the file."""
    return filled(path, (total, len(names)), np.dtype(np.float64))


@contextmanager
def _parquet(path: Path, names: list[str], total: int, first: int = 0) -> Iterator[np.ndarray]:
    """A table to fill, which becomes the file when it is full."""
    _, parquet = arrow()
    from pyarrow import table as arrow_table

    rough = outputs.fresh(outputs.unused(path.parent, "scores"), mode=0o600)
    with rough as beside, _npy(beside, names, total) as table:
        yield table
        columns = {"point": first + np.arange(len(table)), **dict(zip(names, table.T, strict=True))}
        parquet.write_table(arrow_table(columns), path)


WRITERS = {".npy": _npy, ".parquet": _parquet}
