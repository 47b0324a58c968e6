"""Adaptive numbers of draws: few for every point, more for those that can still be among the k best.

Every point starts with a few draws. Its score and the Monte-Carlo error give the probability
that it is among the k best of all draws. The least likely points are dropped, as many as are
expected to cost `loss` of the k picks; the rest get more draws, and so on to the last. For a measure
that jumps at a zero (BalEntAcq) the region of the best is two-sided: BalEnt between 0 and the value of
the k-th. Draws add up; those of a stage are made again for the next only where too many points are left to keep their
moments in memory.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Generator, Tensor

from balent import adapt, checks
from balent.maths.facts import facts
from balent.maths.measures import zero_first
from balent.maths.moments import Moments
from balent.strategies.column import of_all
from balent.strategies.top_k import Best
from balent.types import Batch, Indices, Measure, Needs, Picks, Pool, Sampled

FEWEST = 4  # draws, of which two halves differ
FIRST = 16  # draws at least before a point may be dropped: with fewer, rare disagreement is not seen
TAILS = 1.3  # errors are not quite normal: intervals this much wider keep the stated confidence
KEPT = 1 << 22  # points times classes whose moments are kept between stages: 100 MB
BINS = 50  # of points with like scores, which share an estimate of the error


@dataclass(frozen=True)
class Race:
    """The k best by a measure of all draws of `sampled`, made in stages; each may lose this share of the k."""

    measure: Measure
    stages: tuple[float, ...] = (0.032, 0.1, 0.3, 1.0)  # of the draws
    loss: float = 0.06
    needs: ClassVar[Needs] = Needs(parts=True, again=True)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        adapt.check_points(sampled, 'draws="auto"')
        total = adapt.traits(sampled).n or 0
        checks.enough_draws(total, FEWEST)
        ends = sorted({min(total, max(FIRST, round(share * total))) for share in self.stages})
        first = Estimate(self._inner, ends[0] // 2, ends[0], total)
        positions, found = of_all(sampled, pool, first)
        runners, (value, error) = Runners(positions), smoothed(found)
        used, lost = float(len(value) * ends[0]), 0.0
        for start, end in pairwise(ends):
            keep, missed = still_in(chances(self.measure, value, error, k), k, self.loss * k)
            runners, lost = runners[keep], lost + missed
            used += len(runners.positions) * (end if runners.moments is None else end - start)
            runners, found = self._more(sampled, pool, runners, Estimate(self._inner, start, end, total))
            value, error = smoothed(found)
        best = Best(k)
        best.add(zero_first(value) if facts(self.measure).balance else value, runners.positions)
        return Picks(best.positions, best.scores, draws=used / len(positions), confidence=max(0.0, 1 - lost / k))

    @property
    def _inner(self) -> Measure:
        return facts(self.measure).balance or self.measure

    def _more(self, sampled: Sampled, pool: Pool, runners: "Runners", stage: "Estimate") -> tuple["Runners", Tensor]:
        """The same points with the draws of this stage as well; their moments are kept if they are few."""
        at = runners.positions
        few = pool.read(adapt.part(sampled, 0, 1), at[:1], packed)
        if few.shape[1] * len(at) > KEPT:
            return Runners(at), pool.read(sampled, at, stage)
        before = runners.moments or unpacked(pool.read(adapt.part(sampled, 0, stage.start), at, packed), stage.start)
        after = unpacked(pool.read(adapt.part(sampled, stage.start, stage.end), at, packed), stage.end - stage.start)
        return Runners(at, before + after), stage.of(before, after)


@dataclass(frozen=True)
class Estimate:
    """A reading: from draws 0..start and start..end, an estimate of the score of all draws, and its error.

    A measure of n draws is biased by c/n, that of its parts, weighted by their draws, by 2c/n on the mean: the
    difference gives c. Half of the difference of the parts gives the standard error, for parts of one size.
    """

    measure: Measure
    start: int
    end: int
    total: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        parts = adapt.part(sampled, 0, self.start), adapt.part(sampled, self.start, self.end)
        return self.of(*(part.moments(batch, positions) for part in parts))

    def of(self, a: Moments, b: Moments) -> Tensor:
        """[points, 2]: the value, and the size of its error."""
        both = a + b
        value, one, other = (self.measure(m).cpu() for m in (both, a, b))
        bias = (a.n * one + b.n * other) / both.n - value
        error = (one - other).abs() * (a.n * b.n) ** 0.5 / both.n
        return torch.stack([value - bias * (1 - both.n / self.total), error], 1)


def packed(sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
    """A reading: moments as one row of numbers per point."""
    m = sampled.moments(batch, positions)
    return torch.cat([m.mean, m.var, m.within, m.entropy[:, None]], 1).cpu()


def unpacked(rows: Tensor, n: int) -> Moments:
    """The moments of n draws that `packed` made."""
    classes = (rows.shape[1] - 1) // 3
    mean, var, within, entropy = rows.split([classes, classes, classes, 1], 1)
    return Moments(n, mean, var, within, entropy[:, 0])


@dataclass(frozen=True)
class Runners:
    """Points still in the race, with their moments so far where those are kept."""

    positions: Tensor
    moments: Moments | None = None

    def __getitem__(self, points: Tensor | slice) -> "Runners":
        return Runners(self.positions[points], None if self.moments is None else self.moments[points])


def smoothed(found: Tensor) -> tuple[Tensor, Tensor]:
    """The values, and the standard error of each: the root mean square over points with similar values."""
    value, difference = found.unbind(1)
    order = value.argsort()
    error = torch.empty_like(value)
    for part in order.tensor_split(min(BINS, max(1, len(order) // 20))):
        error[part] = TAILS * difference[part].square().mean().sqrt()
    return value, error


def chances(measure: Measure, value: Tensor, error: Tensor, k: int) -> Tensor:
    """How likely each point is among the k best of all draws, its true value being normal around the one seen.

    They add up to k, which determines where the region of the best ends (bisection).
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
    """The points to keep, at least k, and the expected number of the k best among those that are dropped."""
    order = chance.argsort()
    lost = chance[order].cumsum(0)
    dropped = order[: len(order) - k][lost[: len(order) - k] <= affordable]
    keep = torch.ones_like(chance, dtype=torch.bool)
    keep[dropped] = False
    return keep, float(chance[dropped].sum())


def _below(x: Tensor) -> Tensor:
    """The standard normal distribution function."""
    return 0.5 * torch.erfc(-x / 2**0.5)
