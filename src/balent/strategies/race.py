"""Draws where they matter: few for every point, more for those that can still be among the k best.

Every point begins with a few draws. From its score and the Monte-Carlo error of that follows how
likely it is among the k best of all draws. The least likely points are dropped, as many as are
expected to cost `loss` of the k picks; the rest get more draws, and so on to the last. For a measure
that jumps at a zero (BalEntAcq) the region of the best is two-sided: BalEnt between 0 and the value of
the k-th. Draws add up; those of a stage are made again for the next only where too many points are left to keep their
moments in memory.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Generator, Tensor

from balent import checks
from balent.maths.facts import facts
from balent.maths.measures import zero_first
from balent.maths.moments import Moments
from balent.strategies.blocks import blocks, length
from balent.strategies.top_k import Best
from balent.types import Measure, Picks, Pool, Sampled

FEWEST = 4  # draws, of which two halves differ
FIRST = 16  # draws at least before a point may go: fewer tell too little of those that seldom disagree
TAILS = 1.3  # errors are not quite normal, nor alike at like values: so much wider, no more is lost than is said
KEPT = 1 << 22  # points times classes whose moments are kept between stages: 100 MB
BINS = 50  # of points with like scores, which share an estimate of the error


@dataclass(frozen=True)
class Race:
    """The k best by a measure of all draws of `sampled`, made in stages; each may lose this share of the k."""

    measure: Measure
    stages: tuple[float, ...] = (0.032, 0.1, 0.3, 1.0)  # of the draws
    loss: float = 0.06

    def __call__(self, sampled: Sampled, pool: Any, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, length(pool))
        total: int = sampled.n  # type: ignore[attr-defined]  # sampled by a predictor, in parts
        checks.enough_draws(total, FEWEST)
        ends = sorted({min(total, max(FIRST, round(share * total))) for share in self.stages})
        value, error = self._first(sampled, pool, ends[0])
        runners = Runners(torch.arange(len(value)))
        used, lost = float(len(value) * ends[0]), 0.0
        for start, end in pairwise(ends):
            keep, missed = still_in(chances(self.measure, value, error, k), k, self.loss * k)
            runners, lost = runners[keep], lost + missed
            used += len(runners.positions) * (end if runners.moments is None else end - start)
            runners, value, error = self._more(sampled, pool, runners, start, end)
        best = Best(k)
        best.add(zero_first(value) if facts(self.measure).balance else value, runners.positions)
        return Picks(best.positions, best.scores, draws=used / len(pool), confidence=max(0.0, 1 - lost / k))

    @property
    def _inner(self) -> Measure:
        return facts(self.measure).balance or self.measure

    def _first(self, sampled: Any, pool: Pool, draws: int) -> tuple[Tensor, Tensor]:
        """Values and errors of all points, from few draws."""
        halves = (sampled.part(0, draws // 2), sampled.part(draws // 2, draws))
        values, differences = [], []
        for batch, positions in blocks(sampled, pool):
            one, other = (half.moments(batch, positions) for half in halves)
            value, difference = self._estimate(one, other, sampled.n)
            values.append(value)
            differences.append(difference)
        return torch.cat(values), smoothed(torch.cat(values), torch.cat(differences))

    def _estimate(self, a: Moments, b: Moments, total: int) -> tuple[Tensor, Tensor]:
        """From two sets of draws, what all would give and how far off that may be.

        A measure of n draws is biased by c/n, that of its parts, weighted by their draws, by 2c/n on the mean: the
        difference tells c. Half of the difference of the parts tells the standard error, for parts of one size.
        """
        both = a + b
        value, one, other = (self._inner(m).cpu() for m in (both, a, b))
        bias = (a.n * one + b.n * other) / both.n - value
        return value - bias * (1 - both.n / total), (one - other).abs() * (a.n * b.n) ** 0.5 / both.n

    def _more(
        self, sampled: Any, pool: Pool, runners: "Runners", start: int, end: int
    ) -> tuple["Runners", Tensor, Tensor]:
        """The same points with draws start..end as well: their values and errors, and their moments if they are few."""
        earlier, later = sampled.part(0, start), sampled.part(start, end)
        found: list[tuple[Tensor, Tensor]] = []
        kept: list[Moments] = []
        for batch in runners.split(sampled.block):
            points = pool[batch.positions]
            before = earlier.moments(points, batch.positions) if batch.moments is None else batch.moments
            after = later.moments(points, batch.positions)
            found.append(self._estimate(before, after, sampled.n))
            if before.mean.shape[1] * len(runners.positions) <= KEPT:
                kept.append(before + after)
        value, difference = (torch.cat(column) for column in zip(*found, strict=True))
        return Runners(runners.positions, Moments.cat(kept) if kept else None), value, smoothed(value, difference)


@dataclass(frozen=True)
class Runners:
    """Points still in the race, with their moments so far where those are kept."""

    positions: Tensor
    moments: Moments | None = None

    def __getitem__(self, points: Tensor | slice) -> "Runners":
        return Runners(self.positions[points], None if self.moments is None else self.moments[points])

    def split(self, size: int) -> "list[Runners]":
        return [self[i : i + size] for i in range(0, len(self.positions), size)]


def smoothed(value: Tensor, difference: Tensor) -> Tensor:
    """The standard error of each value: the root mean square over points with like values, as one alone says little."""
    order = value.argsort()
    error = torch.empty_like(value)
    for part in order.tensor_split(min(BINS, max(1, len(order) // 20))):
        error[part] = TAILS * difference[part].square().mean().sqrt()
    return error


def chances(measure: Measure, value: Tensor, error: Tensor, k: int) -> Tensor:
    """How likely each point is among the k best of all draws, its true value being normal around the one seen.

    They add up to k: that tells where the region of the best ends (bisection).
    """
    error = error.clamp(min=1e-12 * float(value.abs().max()) + 1e-300)  # certain points: a step instead of a slope
    below_zero = _below(-value / error)
    # BalEnt from zero upwards, if so many are above; other measures, and BalEnt then, from their largest downwards.
    upwards = facts(measure).balance is not None and float((1 - below_zero).sum()) > k
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
