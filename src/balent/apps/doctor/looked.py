"""The points that are looked at: all of a small pool, else some, chosen by a hash of their number.

So the cost does not grow with the pool, and a second call looks at the same points. Of a stream they are the first.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from balent import adapt
from balent.batches import size, take
from balent.kernels.hashing import mixed
from balent.types import Batch, Indices, Rereadable, Source

SAMPLE = 4096  # points at most
BYTES = 1 << 28  # of them, at most
KEY = 0x646F63746F72  # "doctor": the choice of points must not change
BLOCK = 256

Blocks = list[tuple[Batch, Tensor]]  # points and their positions


@dataclass(frozen=True)
class Sample:
    """Points that were looked at, in blocks, and how long it took to read them."""

    blocks: Blocks
    seconds: float
    whole: bool  # they are all points of the pool

    def __len__(self) -> int:
        return sum(len(positions) for _, positions in self.blocks)

    @property
    def bytes(self) -> int:
        """Of one point, on average."""
        return sum(nbytes(batch) for batch, _ in self.blocks) // max(1, len(self))


def looked_at(source: Source, most: int) -> Iterator[tuple[Batch, Indices]]:
    """Blocks of at most `most` points: chosen by a hash of their number, or the first ones of a stream."""
    left = BYTES
    for batch, positions in _chosen(source, most) if adapt.rereadable(source) else _first(source, most):
        yield batch, positions
        left -= nbytes(batch)
        if left <= 0:
            return


def _chosen(source: Rereadable, most: int) -> Iterator[tuple[Batch, Indices]]:
    for part in _some(source, most).split(BLOCK):
        if len(part):
            yield source.at(part), part


def _some(source: Rereadable, most: int) -> Indices:
    """Positions, in the order of the pool."""
    points = source.size or 0
    ranks = torch.arange(points) if points <= most else (mixed(KEY, torch.arange(most)) % points).unique()
    found, before = [torch.empty(0, dtype=torch.int64)], 0
    for piece in adapt.pieces(source):
        here = ranks[(ranks >= before) & (ranks < before + len(piece))]
        found.append(piece[here - before])
        before += len(piece)
    return torch.cat(found)


def _first(source: Source, most: int) -> Iterator[tuple[Batch, Indices]]:
    for batch, positions in source.blocks(BLOCK):
        yield take(batch, slice(0, most)), positions[:most]
        most -= len(positions)
        if most <= 0:
            return


def nbytes(batch: Batch) -> int:
    """How large a batch is; of other things than numbers, a guess of 100 bytes each."""
    columns = [*batch.values()] if isinstance(batch, dict) else [batch]
    return sum(int(c.nbytes) if isinstance(c, Tensor | np.ndarray) else 100 * size(c) for c in columns)
