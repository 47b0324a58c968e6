"""Draws in shards: each row of a pool is the draws of a point, [draws, classes]. They are scored as they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch import Tensor

from balent import adapt, checks
from balent.acquisition.draws import BLOCK
from balent.data.damage import Damaged
from balent.data.shards import Shards
from balent.maths.moments import Moments
from balent.types import Batch, Indices, Traits


@dataclass(frozen=True)
class DrawnShards:
    """Shards of probabilities or logits, as a table that is read in blocks."""

    shards: Shards

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Points, draws and classes."""
        if not self.shards.size:
            raise ValueError("shards of probabilities must have points, but these have none")
        first = self._first()
        if first.ndim != 3:
            raise ValueError(
                f"each row must be the draws of a point, [draws, classes], but has the shape {first.shape[1:]}; a "
                "table in long form (point, draw, class, probability) must be one file"
            )
        checks.draws(first)
        return self.shards.size, first.shape[1], first.shape[2]

    def _first(self) -> np.ndarray:
        """The first row that can be read."""
        while True:
            try:
                return self.shards.at(adapt.first(self.shards, 1))
            except Damaged as error:
                if not self.shards.leave_out(error):
                    raise

    def __len__(self) -> int:
        return self.shards.size

    def named(self, positions: Indices) -> Sequence[str]:
        return self.shards.ids(positions)


@dataclass(frozen=True)
class DrawnRows:
    """A Sampled whose points are draws already."""

    draws: int
    classes: int
    logits: bool = False

    @property
    def traits(self) -> Traits:
        return Traits(self.draws, max(1, BLOCK // (self.draws * self.classes)), plan="draws computed elsewhere")

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Tensor:
        rows = checks.draws(batch)
        return rows.softmax(-1) if self.logits else rows

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return Moments.of(checks.draws(batch), logits=self.logits, positions=positions)

    def groups(self, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        rows = checks.draws(batch)
        return Moments.groups(rows, min(count, self.draws), logits=self.logits, positions=positions)
