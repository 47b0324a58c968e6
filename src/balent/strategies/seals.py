"""SEALS (Coleman et al., 2022): only the neighbours of labelled points are candidates, for rare classes.

If one point in 10,000 is of the class that matters, the points that a strategy finds best in the whole pool are almost
all of other classes. In good features such a class lies together, though. So candidates are the nearest neighbours
of the labelled points, and any strategy chooses among them as if they were the pool. As labels grow, so does the
part of the pool that is looked at. The draws are made at candidates alone.

The paper searches an approximate index. Here neighbours are exact: one scan compares features of all points with the
labelled ones. They are the nearest points that have no label yet, so a neighbourhood widens as its points get labels.
"""

from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from balent import adapt
from balent.geometry.embedded import of_labelled
from balent.geometry.k_nearest import KNearest
from balent.strategies.reservoir import at_random
from balent.types import Indices, Needs, Picks, Pool, Sampled, Strategy

FILL = (1 << 10) + 1  # purpose of random numbers


@dataclass(frozen=True)
class Seals:
    """What a strategy picks among the `neighbours` nearest points of each labelled point.

    Where these are fewer than the batch, random points make up for it. Without labelled points the strategy sees the
    whole pool. Time beyond the strategy's own: L·D per point of the pool, L labelled points. Memory: L·D numbers, and
    48 bytes for each neighbour of each labelled point, whatever the pool. Needs a pool that can be read again.
    """

    strategy: Strategy
    neighbours: int = 100

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise ValueError(f"neighbours must be 1 or more, but are {self.neighbours}")

    @property
    def needs(self) -> Needs:
        own = adapt.needs(self.strategy)
        return replace(own, features=True, again=True, labelled=True, noise=True, model=True)  # features are a model's

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        known = of_labelled(sampled, pool)
        if known is None:
            picks = self.strategy(sampled, pool, k, generator=generator)
            return _told(picks, "the whole pool, since no point is labelled")
        near = pool.scan(sampled, KNearest(known, self.neighbours)).positions
        added = fill(pool, near, k, generator.initial_seed())
        candidates = torch.cat([near, added]).sort().values
        picks = self.strategy(sampled, pool.only(candidates), k, generator=generator)
        how = f"{len(near):,} candidates, the {self.neighbours:,} nearest of each of {len(known):,} labelled points"
        return _told(picks, f"{how}, and {len(added):,} random points" if len(added) else how)


def fill(pool: Pool, near: Tensor, k: int, seed: int) -> Indices:
    """Random points beside those that are near, as many as are missing for a batch of k."""
    if len(near) >= k:
        return near[:0]
    others = at_random(pool, seed, FILL, k)  # of which at most len(near) are near
    return others[~torch.isin(others, near)][: k - len(near)]


def _told(picks: Picks, how: str) -> Picks:
    return replace(picks, plan=f"{how}; {picks.plan}" if picks.plan else how)
