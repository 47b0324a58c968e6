"""Draws where they matter: few for every point, more for those that can still be among the k best.

Every point begins with a few draws. From its score and the Monte-Carlo error of that follows how
likely it is among the k best of all draws. The least likely points are dropped, as many as are
expected to cost `loss` of the k picks; the rest get more draws, and so on to the last. For a measure
that jumps at a zero (BalEntAcq) the region of the best is two-sided: BalEnt between 0 and the value of
the k-th. The draws of a point add up; none is made twice.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Generator, Tensor

from balent import checks
from balent.measures import BALANCES
from balent.moments import Moments
from balent.strategies.blocks import blocks, length
from balent.strategies.top_k import Best
from balent.types import Measure, Picks, Pool, Sampled

FEWEST = 4  # draws, of which two halves differ
BINS = 50  # of points with like scores, which share an estimate of the error


@dataclass(frozen=True)
class Race:
    """The k best by a measure of all draws of `sampled`, made in stages; each may lose this share of the k."""

    measure: Measure
    stages: tuple[float, ...] = (0.04, 0.12, 0.36, 1.0)  # of the draws
    loss: float = 0.03

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, length(pool))
        total: int = sampled.n  # type: ignore[attr-defined]  # sampled by a predictor, in parts
        checks.enough_draws(total, FEWEST)
        ends = sorted({min(total, max(FEWEST, round(share * total))) for share in self.stages})
        moments, positions, value, error = self._first(sampled, pool, ends[0])
        used, lost = float(len(positions) * ends[0]), 0.0
        for start, end in pairwise(ends):
            keep, missed = still_in(chances(self.measure, value, error, k), k, self.loss * k)
            lost, moments, positions = lost + missed, moments[keep], positions[keep]
            used += len(positions) * (end - start)
            moments, value, error = self._more(sampled, pool, moments, positions, start, end)
        best = Best(k)
        best.add(self.measure(moments), positions)
        size = length(pool) or int(used)
        return Picks(best.positions, best.scores, draws=used / size, confidence=max(0.0, 1 - lost / k))

    def _first(self, sampled: Any, pool: Pool, draws: int) -> tuple[Moments, Tensor, Tensor, Tensor]:
        """All points, few draws. Points that are far from the k best are not worth keeping their moments, but cheap."""
        inner, halves = (
            BALANCES.get(self.measure, self.measure),
            (sampled.part(0, draws // 2), sampled.part(draws // 2, draws)),
        )
        found: list[tuple[Moments, Tensor, Tensor]] = []
        for batch, positions in blocks(sampled, pool):
            a, b = (half.moments(batch, positions) for half in halves)
            found.append((a + b, positions, (inner(a) - inner(b)).abs() / 2))
        moments, positions = Moments.cat(m for m, _, _ in found), torch.cat([p for _, p, _ in found])
        value = inner(moments)
        return moments, positions, value, smoothed(value, torch.cat([d for _, _, d in found]))

    def _more(
        self, sampled: Any, pool: Pool, before: Moments, positions: Tensor, start: int, end: int
    ) -> tuple[Moments, Tensor, Tensor]:
        """The same points with draws start..end as well."""
        inner, part, size = BALANCES.get(self.measure, self.measure), sampled.part(start, end), sampled.block
        found = [part.moments(pool[at], at) for at in positions.split(size)]
        after = Moments.cat(found)
        both = before + after
        # Half of the difference of two estimates from n₁ and n₂ draws has this share of the variance of both together.
        share = (before.n * after.n) ** 0.5 / both.n
        return both, inner(both), smoothed(inner(both), (inner(before) - inner(after)).abs() * share)


def smoothed(value: Tensor, difference: Tensor) -> Tensor:
    """The standard error of each value: the root mean square over points with like values, as one alone says little."""
    order = value.argsort()
    error = torch.empty_like(value)
    for part in order.tensor_split(min(BINS, max(1, len(order) // 20))):
        error[part] = difference[part].square().mean().sqrt()
    return error


def chances(measure: Measure, value: Tensor, error: Tensor, k: int) -> Tensor:
    """How likely each point is among the k best of all draws, its true value being normal around the one seen.

    They add up to k: that tells where the region of the best ends (bisection).
    """
    error = error.clamp(min=1e-12 * float(value.abs().max()) + 1e-300)  # certain points: a step instead of a slope
    below_zero = _below(-value / error)
    # BalEnt from zero upwards, if so many are above; other measures, and BalEnt then, from their largest downwards.
    upwards = measure in BALANCES and float((1 - below_zero).sum()) > k
    floor, sign = (below_zero, 1) if upwards else (0, -1)
    high = float(value.abs().max() + 9 * error.max())
    low = 0.0 if upwards else -high
    for _ in range(60):
        end = (low + high) / 2
        p = _below((end - sign * value) / error) - floor
        low, high = (low, end) if float(p.sum()) > k else (end, high)
    return p


def still_in(chance: Tensor, k: int, affordable: float) -> tuple[Tensor, float]:
    """Who stays in the race, at least k, and how many of the k best are expected to be lost with the others."""
    order = chance.argsort()
    lost = chance[order].cumsum(0)
    dropped = order[: len(order) - k][lost[: len(order) - k] <= affordable]
    keep = torch.ones_like(chance, dtype=torch.bool)
    keep[dropped] = False
    return keep, float(chance[dropped].sum())


def _below(x: Tensor) -> Tensor:
    """The standard normal distribution function."""
    return 0.5 * torch.erfc(-x / 2**0.5)
