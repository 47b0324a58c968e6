"""Several folds in one pass over the pool: for example a strategy's fold, and a table of scores for a file.

The moments of a block are computed once, for all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from balent import adapt
from balent.maths.error import merged
from balent.maths.moments import Moments
from balent.strategies.top_k import ByMeasure
from balent.types import Batch, Fold, Indices, Measure, Probabilities, Sampled


@dataclass
class Together:
    """A fold that consists of several folds."""

    folds: Sequence[Fold]

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        known = Known(sampled)
        for fold in self.folds:
            fold.add(known, batch, positions)

    def merge(self, other: "Together") -> "Together":
        return Together([mine.merge(theirs) for mine, theirs in zip(self.folds, other.folds, strict=True)])


@dataclass
class Known:
    """A Sampled that remembers the moments of one block."""

    sampled: Sampled
    found: list[Moments] | None = None

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        return self.sampled(batch, positions)

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return merged(self.found or self.groups(batch, positions, 1))

    def groups(self, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        if self.found is None or len(self.found) != count:
            self.found = adapt.groups(self.sampled, batch, positions, count)
        return self.found


@dataclass(frozen=True)
class ScoreTable:
    """A fold that passes the scores of each block to a writer in this process, so it cannot be merged."""

    measures: Mapping[str, Measure]
    seed: int
    write: Callable[[Indices, Tensor], None]

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        scores = [ByMeasure(f, self.seed)(sampled, batch, positions).cpu() for f in self.measures.values()]
        self.write(positions, torch.stack(scores, 1))

    def merge(self, other: "ScoreTable") -> "ScoreTable":
        raise TypeError("a file of scores is written by one process, so it cannot be merged; use the local engine")
