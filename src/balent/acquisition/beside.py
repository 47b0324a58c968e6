"""Several folds in one pass over the pool: for example a strategy's fold, and one that passes scores to a file.

The moments of a block are computed once, for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from balent import adapt
from balent.maths.error import merged
from balent.maths.moments import Moments
from balent.strategies.nesting import nested, unnested
from balent.strategies.top_k import ByMeasure
from balent.types import Batch, Fold, HasState, Indices, Measure, Probabilities, Sampled


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

    def state(self) -> dict[str, Tensor]:
        return nested(_stored(fold).state() for fold in self.folds)

    def load_state(self, state: dict[str, Tensor]) -> None:
        for fold, own in zip(self.folds, unnested(state, len(self.folds)), strict=True):
            _stored(fold).load_state(own)


def _stored(fold: Fold) -> HasState:
    if not isinstance(fold, HasState):
        raise TypeError(
            f"scores=… on a cluster needs a fold with state() and load_state(state), but {type(fold).__name__} has "
            "none; give it both, or use engine='local'"
        )
    return fold


@dataclass
class Known:
    """A Sampled that remembers the moments of one block."""

    sampled: Sampled
    found: list[Moments] | None = None

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        return self.sampled(batch, positions)

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return merged(self.found or self.groups(batch, positions, 1))

    def keys(self, positions: Indices) -> Indices:
        return adapt.keys(self.sampled, positions)

    def groups(self, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        if self.found is None or len(self.found) != count:
            self.found = adapt.groups(self.sampled, batch, positions, count)
        return self.found


@dataclass(frozen=True)
class ScoresBy:
    """A reading: the scores of each point, a column for each measure. `seed` is that of random scores."""

    measures: Mapping[str, Measure]
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        found = [ByMeasure(f, self.seed)(sampled, batch, positions).cpu() for f in self.measures.values()]
        return torch.stack(found, 1)
