"""The k best points by a measure, from a stream of blocks: memory for k points, whatever the pool."""

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from balent import checks
from balent.maths.measures import ranked
from balent.strategies.blocks import blocks, length
from balent.types import Batches, Measure, Picks, Pool, Sampled


@dataclass
class Best:
    """The k best of all scores seen so far. Ties go to the smaller position, in whatever order blocks come."""

    k: int
    scores: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    def add(self, scores: Tensor, positions: Tensor) -> None:
        """Scores of the points at these positions."""
        checks.scores(scores, positions)
        full = len(self.scores) == self.k
        hopeful = scores >= self.scores[-1].to(scores.device) if full else torch.ones_like(scores, dtype=torch.bool)
        scores = torch.cat([self.scores, scores[hopeful].to("cpu", torch.float64)])
        positions = torch.cat([self.positions, positions[hopeful.cpu()]])
        by_position = positions.argsort()
        order = by_position[scores[by_position].argsort(descending=True, stable=True)][: self.k]
        self.scores, self.positions = scores[order], positions[order]

    def picks(self) -> Picks:
        checks.batch_size(self.k, len(self.scores))  # a stream tells only now how long it was
        return Picks(self.positions, self.scores)


@dataclass(frozen=True)
class TopK:
    """The k points of the largest scores, best first."""

    measure: Measure

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, length(pool))
        best, measure = Best(k), ranked(self.measure, generator)
        for batch, positions in blocks(sampled, pool):
            best.add(measure(sampled.moments(batch, positions)), positions)
        return best.picks()
