"""The k best points by a measure: memory for k points, whatever the pool."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from balent import adapt, checks
from balent.maths import noise
from balent.maths.error import merged
from balent.maths.measures import check_draws, random
from balent.types import Batch, Indices, Measure, Needs, Picks, Pool, Sampled

FEWEST = 4  # draws of which two halves can disagree
Scorer = Callable[[Sampled, Batch, Indices], Tensor]  # one number per point: checked where they are compared


@dataclass
class Best:
    """The k best of all scores seen so far. Ties go to the smaller position, whatever the order of the blocks."""

    k: int
    scores: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))

    def add(self, scores: Tensor, positions: Tensor) -> None:
        """Scores of the points at these positions."""
        checks.scores(scores, positions)
        full = len(self.scores) == self.k
        hopeful = scores >= self.scores[-1].to(scores.device) if full else torch.ones_like(scores, dtype=torch.bool)
        scores = torch.cat([self.scores, scores[hopeful].to("cpu", torch.float64)])
        positions = torch.cat([self.positions, positions[hopeful.cpu()]])
        by_position = positions.argsort()
        order = by_position[scores[by_position].argsort(descending=True, stable=True)][: self.k]
        self.scores, self.positions = scores[order], positions[order]

    def picks(self) -> Picks:
        checks.batch_size(self.k, len(self.scores))  # only now is it known how long a stream was
        return Picks(self.positions, self.scores)


@dataclass
class Top:
    """A fold: the k best points by a scorer."""

    score: Scorer
    k: int
    best: Best = field(init=False)

    def __post_init__(self) -> None:
        self.best = Best(self.k)

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        self.best.add(self.score(sampled, batch, positions), positions)

    def merge(self, other: "Top") -> "Top":
        self.best.add(other.best.scores, other.best.positions)
        return self


@dataclass
class Halves:
    """A fold: the k best by a measure, and those that each half of the draws would have picked."""

    measure: Measure
    k: int
    best: list[Best] = field(init=False)

    def __post_init__(self) -> None:
        self.best = [Best(self.k) for _ in range(3)]

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        halves = adapt.groups(sampled, batch, positions, 2)
        found = [self.measure(m) for m in (merged(halves), *halves)]
        for best, scores in zip(self.best, found, strict=False):
            best.add(scores, positions)

    def merge(self, other: "Halves") -> "Halves":
        for mine, theirs in zip(self.best, other.best, strict=True):
            mine.add(theirs.scores, theirs.positions)
        return self

    @property
    def stability(self) -> float:
        """The share of the k best that two halves of the draws agree on."""
        _, one, other = self.best
        return float(torch.isin(one.positions, other.positions).double().mean())


@dataclass(frozen=True)
class ByMeasure:
    """Points scored by a measure; the random one by (seed, position)."""

    measure: Measure
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        m = sampled.moments(batch, positions)
        if self.measure is random:
            return noise.uniform(self.seed, positions)
        check_draws(self.measure, m.n)
        return self.measure(m)


@dataclass(frozen=True)
class TopK:
    """The k points of the largest scores, best first. `stable`: also compare the picks of two halves of the draws."""

    measure: Measure
    stable: bool = field(default=False, repr=False)

    @property
    def needs(self) -> Needs:
        return Needs(noise=self.measure is random)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        if not self.stable or self.measure is random or (adapt.traits(sampled).n or FEWEST) < FEWEST:
            return pool.scan(sampled, Top(ByMeasure(self.measure, generator.initial_seed()), k)).best.picks()
        found = pool.scan(sampled, Halves(self.measure, k))
        best = found.best[0].picks()
        return Picks(best.indices, best.scores, stability=found.stability)
