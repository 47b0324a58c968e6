"""Dropout masks as pure functions: seed, layer, draw (and position) in, the same bits out, for ever.

So a draw is one network for the whole pool (`shared`), or one for each point (`per-point`), whatever
the batches, their order, or the process that asks.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from balent import kernels
from balent.kernels.hashing import mixed, uniform
from balent.types import Indices

Design = Literal["independent", "stratified"]


@dataclass(frozen=True)
class Masks:
    """The masks of n draws of a network; `per_point`: one for each position as well.

    Stratified: over all draws, each unit is dropped the same number of times, up to rounding.
    """

    seed: int
    n: int
    per_point: bool = False
    design: Design = "independent"
    first: int = 0  # of a part of the draws
    whole: int = 0  # draws in all, of which these are a part; 0: these are all

    def part(self, start: int, stop: int) -> "Masks":
        """The masks of some of the draws."""
        return replace(self, first=self.first + start, n=stop - start, whole=self.whole or self.n)

    def kept(self, layer: int, units: int, p: float, positions: Indices | None = None) -> Tensor:
        """1 where a unit is kept: [draws, units], or [draws, points, units] where masks are per point."""
        if self.design == "stratified":
            return self._stratified(layer, units, p)
        return kernels.kept(self.keys(layer, positions), units, p)

    def keys(self, layer: int, positions: Indices | None = None) -> Tensor:
        """What the bits of a mask follow from: [draws], or [draws, points] where masks are per point."""
        keys = mixed(mixed(self.seed, layer), torch.arange(self.first, self.first + self.n))
        if not self.per_point:
            return keys
        if positions is None:
            raise ValueError("masks per point need the positions of the points: sampled(batch, positions)")
        return mixed(keys[:, None], positions)

    def _stratified(self, layer: int, units: int, p: float) -> Tensor:
        """Drop each unit in p·n of all n draws (rounded up or down at random); which ones, by the order of hashes."""
        whole = self.whole or self.n
        rank = uniform(mixed(mixed(self.seed, layer), torch.arange(whole)), units).argsort(0).argsort(0)
        dropped = (p * whole + uniform(mixed(self.seed, ~layer), units)).floor()
        return (rank >= dropped).float()[self.first : self.first + self.n]
