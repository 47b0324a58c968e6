"""Several folds in one pass over the pool: for example a strategy's fold, and a table of scores for a file.

The moments of a block are computed once, for all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from balent import adapt
from balent.maths.error import merged
from balent.maths.moments import Moments
from balent.strategies.column import Column
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


@dataclass
class ScoreTable:
    """A fold that passes the scores of each block to a writer. Sent to a worker it has none, and keeps them."""

    measures: Mapping[str, Measure]
    seed: int
    write: Callable[[Indices, Tensor], None] | None = field(repr=False)
    column: Column = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.column = Column(self.scores)

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        if self.write is None:
            self.column.add(sampled, batch, positions)
        else:
            self.write(positions, self.scores(sampled, batch, positions))

    def scores(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        """A column for each measure."""
        found = [ByMeasure(f, self.seed)(sampled, batch, positions).cpu() for f in self.measures.values()]
        return torch.stack(found, 1)

    def merge(self, other: "ScoreTable") -> "ScoreTable":
        """The writer is here; what comes from workers is written."""
        if self.write is None:
            self.column.merge(other.column)
        elif other.column.count:
            self.write(other.column.positions, other.column.values)
        return self

    def state(self) -> dict[str, Tensor]:
        return self.column.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.column.load_state(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "write": None}
