"""Random points of a stream, kept as they pass: the same points as of an array, in one pass."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from balent import adapt
from balent.batches import joined, take
from balent.maths import noise
from balent.types import Batch, Folded, Indices, Pool, Reading, Sampled

TOGETHER = 256  # points that are read together


@dataclass
class Reservoir:
    """A fold: the points of the smallest random numbers, with their inputs."""

    seed: int
    purpose: int
    size: int
    positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    batch: Batch = None
    seen: int = 0

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        together = batch if self.batch is None else joined(self.batch, batch)
        self._keep(together, torch.cat([self.positions, positions]))
        self.seen += len(positions)

    def merge(self, other: "Reservoir") -> "Reservoir":
        if other.batch is not None:
            together = other.batch if self.batch is None else joined(self.batch, other.batch)
            self._keep(together, torch.cat([self.positions, other.positions]))
        self.seen += other.seen
        return self

    def _keep(self, batch: Batch, positions: Indices) -> None:
        kept = smallest(self.seed, positions, self.purpose, self.size)
        self.batch, self.positions = take(batch, kept), positions[kept]


@dataclass
class Held:
    """The points of a reservoir as a pool: they are read from memory."""

    reservoir: Reservoir
    labelled: Pool | None

    @property
    def size(self) -> int:
        return len(self.positions)

    @property
    def positions(self) -> Indices:
        return self.reservoir.positions

    def keys(self, positions: Indices) -> Indices:
        return positions

    def scan(self, sampled: Sampled, fold: Folded) -> Folded:
        fold.add(sampled, self.reservoir.batch, self.positions)
        return fold

    def read(self, sampled: Sampled, positions: Indices, what: Reading) -> Tensor:
        parts = zip(self._rows(positions).split(TOGETHER), positions.split(TOGETHER), strict=True)
        return torch.cat([what(sampled, take(self.reservoir.batch, at), some) for at, some in parts])

    def only(self, positions: Indices) -> "Held":
        batch = take(self.reservoir.batch, self._rows(positions))
        return Held(replace(self.reservoir, positions=positions, batch=batch), self.labelled)

    def _rows(self, positions: Indices) -> Indices:
        order = self.positions.argsort()
        return order[torch.searchsorted(self.positions[order], positions)]


def at_random(pool: Pool, seed: int, purpose: int, n: int) -> Indices:
    """The positions of n points at random, in random order: those of the smallest random numbers of their keys."""
    positions, drawn = torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64)
    for piece in adapt.pieces(pool):
        positions = torch.cat([positions, piece])
        drawn = torch.cat([drawn, noise.uniform(seed, pool.keys(piece), purpose)])
        kept = drawn.topk(min(n, len(drawn)), largest=False, sorted=True).indices
        positions, drawn = positions[kept], drawn[kept]
    return positions


def smallest(seed: int, keys: Tensor, purpose: int, n: int) -> Indices:
    """Where the n smallest random numbers of these keys are, smallest first: n points at random, in random order."""
    drawn = noise.uniform(seed, keys, purpose)
    return drawn.topk(min(n, len(drawn)), largest=False, sorted=True).indices
