"""An array that is mapped from a file: workers map the same file, and nothing of it is sent."""

import mmap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from balent.data.pool import Indexed, Subset


@dataclass(frozen=True)
class MappedPool:
    """Where the array lies in its file, and the size and time that the file had."""

    path: str
    dtype: np.dtype
    offset: int
    shape: tuple[int, ...]
    fortran: bool
    stamp: tuple[int, int]
    subset: Subset | None = None

    def opened(self) -> Indexed | Subset:
        """The same pool, on another process."""
        if not Path(self.path).exists() or stamp(Path(self.path)) != self.stamp:
            raise FileNotFoundError(
                f"the pool is the file {self.path}, which a worker does not have as it is here; put it where all "
                "machines see it, or use balent.Shards with storage that they share"
            )
        order: Literal["F", "C"] = "F" if self.fortran else "C"
        rows = Indexed(np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order))
        return rows if self.subset is None else replace(self.subset, whole=rows)


def portable(source: object) -> object:
    """What is sent to workers in place of a source."""
    if isinstance(source, Subset):
        whole = portable(source.whole)
        empty = replace(source, whole=Indexed([]))
        return replace(whole, subset=empty) if isinstance(whole, MappedPool) else source
    if not isinstance(source, Indexed) or not isinstance(source.source, np.memmap):
        return source
    array = source.source
    if not isinstance(array.base, mmap.mmap) or array.filename is None:  # a part of an array does not know where it is
        return source
    path, order = Path(str(array.filename)).resolve(), not array.flags.c_contiguous
    return MappedPool(str(path), array.dtype, array.offset, array.shape, order, stamp(path))


def stamp(path: Path) -> tuple[int, int]:
    """Size and time of the last change."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
