"""Sums that do not depend on the order of their terms, nor on how they were put together from parts.

A float64 sum rounds at every step, so a pool summed in spans would not give the bits of one pass. Here every number is
cut into three, multiples of 2⁻¹⁰, of 2⁻⁴⁰ and of 2⁻⁷⁰, and each of them has a sum of its own, in which nothing is
rounded (Demmel & Nguyen, 2013, with fixed bins). What is below 2⁻⁷¹ is lost. Exact for terms up to 2²⁰ in size and
2²³ of them: 8·10⁹ points in blocks of 1,024.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

QUANTA = (2.0**-10, 2.0**-40, 2.0**-70)


def _nothing() -> Tensor:
    return torch.zeros(len(QUANTA), dtype=torch.float64)


@dataclass
class ExactSum:
    """The sum of tensors of one shape.

    >>> small, large = torch.tensor(1e-8), torch.tensor(1e8)
    >>> one, other = ExactSum(), ExactSum()
    >>> for x in (small, large, -large):
    ...     one.add(x)
    >>> for x in (-large, large, small):
    ...     other.add(x)
    >>> bool(one.value == other.value)
    True
    """

    bins: Tensor = field(default_factory=_nothing)

    def add(self, x: Tensor) -> None:
        self._plus(binned(x.double()))

    def merge(self, other: "ExactSum") -> "ExactSum":
        self._plus(other.bins)
        return self

    def _plus(self, bins: Tensor) -> None:
        empty = self.bins.ndim < bins.ndim
        self.bins = bins if empty else self.bins if bins.ndim < self.bins.ndim else self.bins + bins

    @property
    def value(self) -> Tensor:
        """The small parts first, so that they count."""
        large, middle, small = self.bins
        return large + (middle + small)


def binned(x: Tensor) -> Tensor:
    """[3, …]: multiples of each quantum that add up to x."""
    parts = []
    for quantum in QUANTA:
        parts.append((x / quantum).round() * quantum)
        x = x - parts[-1]
    return torch.stack(parts)
