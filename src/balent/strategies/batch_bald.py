"""BatchBALD (Kirsch et al., 2019): the batch whose labels together are most informative about the model.

    BatchBALD(x_1..x_b) = I(Y_1..Y_b; ω) = H(Y_1..Y_b) - Σ_i E_ω H(Y_i | ω)

It grows with every point, by less the more are there (it is submodular), so taking the point of the largest gain,
one after the other, reaches 1 - 1/e of the best batch. And gains only shrink: the last gain computed of a point,
at first its BALD, bounds its next one from above. Points are tried in the order of these bounds until none
can beat the best (Minoux, 1978), so most are never looked at after the first pass. Where configurations of labels are
many, merged ones give a closer bound at a small part of the cost.

M draws carry at most log M nats. When the gains add up to that, what is left is noise of the draws, and no bound
excludes a point. From there on points are drawn in proportion to their BALD, as in PowerBALD. More draws carry more.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from balent import adapt
from balent.maths import noise
from balent.maths.measures import bald
from balent.strategies import joint
from balent.strategies.column import of_all
from balent.strategies.configurations import Configurations
from balent.strategies.top_k import ByMeasure
from balent.types import Indices, Needs, Picks, Pool, Probabilities, Sampled

SATURATED = 0.95  # of what draws can tell
FEWEST, MOST = 32, 256  # candidates that are tried together
TOGETHER = 1 << 20  # configurations times classes of candidates that are tried together
CHEAPER = 4  # times as many configurations as merged ones make it worth while to ask these first
NUMBER = 8  # bytes, of float32 half


@dataclass(frozen=True)
class Plan:
    """How a batch is found: `exact` picks exactly, the others from `samples` configurations. `str` describes it."""

    exact: int  # picks whose gains are exact, at least
    samples: int  # configurations of labels, at most
    kept: int  # candidates whose draws are kept in memory
    k: int

    def __str__(self) -> str:
        configurations = f"{self.samples:,} configurations of labels"
        if self.exact >= self.k:
            how = f"exact: the gains of all {self.k} picks take no more than {configurations}"
        else:
            how = f"exact for the first {self.exact} of {self.k} picks, then {configurations}, the likely and a sample"
        return f"{how}; draws of up to {self.kept:,} candidates in memory"


@dataclass(frozen=True)
class BatchBALD:
    """k points one after the other, each of the largest gain in I(labels; ω); scores are the gains.

    `samples`: the most configurations of labels to use. If there are more, the likely ones and a sample of the rest are
    used (unbiased for a given batch; the best of many estimates is a little too high). `memory`: bytes for
    configurations and for draws of candidates; less memory means fewer of both, and `plan` reports how many. Once
    configurations are sampled, bounds hold up to the sampling error, so a pick may miss one that is better by that
    little. When the batch then carries 95 % of log M nats, the rest of it is drawn in proportion to BALD, with scores
    of 0.

    Needs draws shared by the pool (masks="shared") and a pool that can be read twice. Time: one pass over the pool
    for BALD, then 2·samples·M·C operations per candidate tried, some dozens per pick where points differ. Memory:
    `memory`, and 24 bytes per point. Random: the sample of configurations, and the points drawn at the end.
    """

    samples: int = 4096
    memory: int = 1 << 30
    needs: ClassVar[Needs] = Needs(shared=True, again=True, noise=True)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples must be a positive number of configurations, but is {self.samples}")

    def plan(self, k: int, draws: int, classes: int) -> Plan:
        """Half of the memory is for configurations, half for candidates.

        >>> print(BatchBALD().plan(10, draws=100, classes=10))
        exact for the first 4 of 10 picks, then 4,096 configurations of labels, the likely and a sample; \
draws of up to 67,108 candidates in memory
        """
        each, candidate = NUMBER * (3 * draws + 4 * classes), NUMBER * draws * classes
        samples, kept = min(self.samples, self.memory // 2 // each), self.memory // 2 // candidate
        if min(samples, kept) < 1:
            raise ValueError(
                f"memory for one configuration and one candidate is {2 * max(each, candidate):,} bytes with {draws} "
                f"draws of {classes} classes, but {self.memory:,} are allowed; allow more memory, or use fewer draws"
            )
        exact = 1
        while exact < k and classes**exact <= samples:
            exact += 1
        return Plan(exact, samples, kept, k)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        one = pool.read(sampled, adapt.first(pool, 1), joint.drawn)
        _, draws, classes = one.shape
        plan, seed = self.plan(k, draws, classes), generator.initial_seed()
        positions, alone = of_all(sampled, pool, ByMeasure(bald, seed))
        shelf, labels = Shelf(sampled, pool, positions, classes, plan.kept), Configurations.before_any(draws, one.dtype)
        bounds = alone.clone()
        rows: list[int] = []
        gains: list[float] = []
        while len(rows) < k and (len(gains) < plan.exact or sum(gains) <= SATURATED * math.log(draws)):
            if rows:
                labels = labels.extended(shelf[torch.tensor(rows[-1:])][0], plan.samples, generator)
            row, gain = best(bounds, labels, shelf)
            bounds[row] = -torch.inf  # never again
            rows.append(row)
            gains.append(gain)
        rest = in_proportion(alone, rows, k - len(rows), noise.gumbel(seed, pool.keys(positions)))
        scores = torch.tensor([*gains, *[0.0] * len(rest)], dtype=torch.float64)
        return Picks(positions[torch.tensor([*rows, *rest])], scores)


def in_proportion(gains: Tensor, taken: list[int], k: int, gumbel: Tensor) -> list[int]:
    """k of the other rows, one after the other with probability ∝ gain: the largest of log gain + Gumbel noise."""
    order = gains.clamp(min=torch.finfo(gains.dtype).tiny).log() + gumbel
    order[taken] = -torch.inf
    return order.topk(k).indices.tolist()


def best(bounds: Tensor, labels: Configurations, shelf: "Shelf") -> tuple[int, float]:
    """The point of the largest gain and that gain, the first of those that tie; `bounds` become the gains computed."""
    merged = labels.merged()
    closer = len(merged) * CHEAPER <= len(labels)
    size, leader = group_size(len(labels), shelf), Leader(bounds, labels.rounding)
    together = min(shelf.capacity, MOST) if closer else size
    waiting = in_order(bounds, (bounds > -torch.inf).nonzero()[:, 0])
    while len(waiting):
        group, waiting = waiting[:together], waiting[together:]
        if closer:
            bounds[group] = torch.minimum(bounds[group], merged.gains(shelf[group]))
        for few in in_order(bounds, group).split(size):
            few = leader.rivals(few)
            if len(few):
                bounds[few] = labels.gains(shelf[few])
                leader.tried(few)
        waiting = leader.rivals(waiting)
    return leader.first, float(bounds[leader.first])


def in_order(bounds: Tensor, points: Tensor) -> Tensor:
    """The largest bound first, ties by position."""
    return points[bounds[points].argsort(descending=True, stable=True)]


def group_size(configurations: int, shelf: "Shelf") -> int:
    """Candidates to try together: many while that is cheap. The blocks of the pool must not decide who is tried."""
    cheap = TOGETHER // (configurations * shelf.classes)
    return min(shelf.capacity, max(FEWEST, min(MOST, cheap)))


class Leader:
    """The point of the largest gain of those tried; of those that tie, the first."""

    def __init__(self, bounds: Tensor, rounding: float) -> None:
        self.bounds, self.rounding = bounds, rounding
        self.gain, self.first = -torch.inf, len(bounds)
        self._tried = torch.empty(0, dtype=torch.int64)

    def tried(self, points: Indices) -> None:
        """The bounds of these points are their gains now."""
        self._tried = torch.cat([self._tried, points])
        gains = self.bounds[self._tried]
        self.gain = float(gains.max())
        self.first = int(self._tried[gains >= self.gain - self.rounding].min())

    def rivals(self, points: Tensor) -> Tensor:
        """Those of the points that may gain more, or the same at an earlier position."""
        bounds = self.bounds[points]
        ties = (bounds >= self.gain - self.rounding) & (points < self.first)
        return points[(bounds > self.gain + self.rounding) | ties]


class Shelf:
    """Draws of candidates. Those used last are kept, as many as fit; others are read again when they are needed."""

    def __init__(self, sampled: Sampled, pool: Pool, positions: Indices, classes: int, capacity: int) -> None:
        self.sampled, self.pool, self.positions, self.classes = sampled, pool, positions, classes
        self.capacity = capacity
        self._kept: dict[int, Tensor] = {}

    def __getitem__(self, rows: Indices) -> Probabilities:
        wanted = rows.tolist()
        missing = sorted(i for i in wanted if i not in self._kept)
        if missing:
            found = self.pool.read(self.sampled, self.positions[torch.tensor(missing)], joint.drawn)
            self._kept |= {i: draws.clone() for i, draws in zip(missing, found, strict=True)}  # no views of all of them
        for i in wanted:
            self._kept[i] = self._kept.pop(i)  # to the end: used last
        for i in list(self._kept)[: max(0, len(self._kept) - self.capacity)]:
            del self._kept[i]
        return torch.stack([self._kept[i] for i in wanted])
