"""Two folds in one pass: what a strategy looks for, and a table of scores for a file. Moments are computed once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from balent import adapt
from balent.maths.error import merged
from balent.maths.moments import Moments
from balent.strategies.top_k import ByMeasure
from balent.types import Batch, Fold, Indices, Probabilities, Sampled


@dataclass
class Both:
    """A fold of two."""

    one: Fold
    other: Fold

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        known = Known(sampled)
        self.one.add(known, batch, positions)
        self.other.add(known, batch, positions)

    def merge(self, other: "Both") -> "Both":
        return Both(self.one.merge(other.one), self.other.merge(other.other))


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
    """A fold that hands the scores of each block to a writer: for a file in this process, so it is not merged."""

    measures: Mapping[str, Any]
    seed: int
    write: Callable[[Indices, Tensor], None]

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        scores = [ByMeasure(f, self.seed)(sampled, batch, positions).cpu() for f in self.measures.values()]
        self.write(positions, torch.stack(scores, 1))

    def merge(self, other: "ScoreTable") -> "ScoreTable":
        raise TypeError("a table of scores is written by one process; it cannot be merged")
