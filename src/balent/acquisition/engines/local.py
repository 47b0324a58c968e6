"""The engine of one process: blocks that fit in memory, the next one read while this one is scored.

Its loop owns everything around a fold: how many points a block has, reading ahead, counting for a progress bar,
and a second try in halves where a block does not fit in memory.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from balent import adapt
from balent.batches import take
from balent.predictors.inputs import as_tensor
from balent.types import Batch, Folded, Indices, Reading, Rereadable, Sampled, Source

MEMORY = 1 << 27  # bytes: 128 MB of logits, moments and inputs at a time
LARGEST = 1024  # points at a time: more is not faster
Done = TypeVar("Done")


@dataclass
class Local:
    """One process.

    memory  bytes for one block
    count   is called with the number of new points, in the first scan
    block   points per block; None: as many as fit in memory
    """

    memory: int = MEMORY
    count: Callable[[int], None] | None = None
    block: int | None = None
    _scanned: bool = field(default=False, init=False)
    _sizes: tuple[int, int] | None = field(default=None, init=False)

    def scan(self, sampled: Sampled, source: Source, fold: Folded) -> Folded:
        """One pass over the pool."""
        first, self._scanned = not self._scanned, True
        known = adapt.at_keys(sampled, source)
        for batch, positions in ahead(source.blocks(self.block_of(sampled, source))):
            halved(partial(fold.add, known), batch, positions)
            if first and self.count is not None:
                self.count(len(positions))
        return fold

    def stream(self, sampled: Sampled, source: Source, what: Reading) -> Iterator[tuple[Indices, Tensor]]:
        """A reading of all points, block by block."""
        known = adapt.at_keys(sampled, source)
        for batch, positions in ahead(source.blocks(self.block_of(sampled, source))):
            yield positions, what(known, batch, positions)
            if self.count is not None:
                self.count(len(positions))

    def read(self, sampled: Sampled, source: Rereadable, positions: Indices, what: Reading) -> Tensor:
        """A reading of some points, in the order given; they are read in the order of the pool."""
        if not len(positions):
            raise ValueError("the pool is empty, so there are no points to read")
        order, known = positions.argsort(stable=True), adapt.at_keys(sampled, source)
        parts = positions[order].split(self.block_of(sampled, source))
        found = [halved(partial(what, known), source.at(part), part) for part in parts]
        return torch.cat([rows.cpu() for block in found for rows in block])[order.argsort()]

    def try_out(self, sampled: Sampled, source: Source) -> None:
        """Evaluates two points, so that a pool that does not fit the model is refused before any work."""
        if self._sizes is None and adapt.rereadable(source):
            few = adapt.first(source, 2)
            self._sizes = tried(adapt.at_keys(sampled, source), source.at(few), few)

    def close(self) -> None:
        """There is nothing to end."""

    def block_of(self, sampled: Sampled, source: Source) -> int:
        """Points whose logits, moments and inputs fit in the memory of a block: a power of 2.

        So blocks divide the spans of a cluster, and its workers evaluate the blocks that one process would.
        """
        if self.block is not None:
            return self.block
        traits = adapt.traits(sampled)
        most = min(traits.block, LARGEST)
        self.try_out(sampled, source)
        classes, inputs = self._sizes or (1, 1)
        each = 8 * (traits.n or 1) * classes + 24 * classes + 16 * inputs
        fitting = int(max(1, min(most, self.memory // each)))
        return 1 << (fitting.bit_length() - 1)


def tried(sampled: Sampled, batch: Batch, few: Indices) -> tuple[int, int]:
    """The number of probabilities and the numbers per point. If the model refuses whole numbers, that is reported."""
    values = batch.values() if isinstance(batch, Mapping) else [batch]
    numbers = sum(int(np.prod(np.shape(x)[1:])) for x in values)
    if not adapt.trained(sampled):
        return 1, numbers
    try:
        return adapt.tried(sampled).moments(batch, few).mean.numel() // len(few), numbers
    except RuntimeError as error:
        whole = isinstance(batch, np.ndarray | Tensor) and not torch.is_floating_point(as_tensor(batch))
        if not whole or _out_of_memory(error):
            raise
        raise TypeError(
            f"the model does not take a pool of {batch.dtype}: {error}; if it was trained on floating-point numbers, "
            "convert the pool in the same way, as in x.astype('float32')"
        ) from error


def halved(work: Callable[[Batch, Indices], Done], batch: Batch, positions: Indices) -> list[Done]:
    """The work on the block; if memory runs out, on its halves one after the other."""
    try:
        return [work(batch, positions)]
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if len(positions) == 1 or not _out_of_memory(error):
            raise
    middle = len(positions) // 2
    halves = (slice(0, middle), slice(middle, None))
    return [done for half in halves for done in halved(work, take(batch, half), positions[half])]


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "not enough memory" in str(error)


def ahead(items: Iterator[tuple[Batch, Indices]]) -> Iterator[tuple[Batch, Indices]]:
    """The same items, each made in another thread while the one before is in use."""
    done = object()
    with ThreadPoolExecutor(1) as reader:
        upcoming = reader.submit(next, items, done)
        while (item := upcoming.result()) is not done:
            upcoming = reader.submit(next, items, done)
            yield item  # type: ignore[misc]  # not `done`
