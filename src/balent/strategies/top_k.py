"""The k best points by a measure: memory for k points, whatever the pool."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from balent import adapt, checks
from balent.maths import noise
from balent.maths.error import merged
from balent.maths.measures import check_draws, random
from balent.maths.moments import Moments
from balent.maths.scored import scored
from balent.strategies.nesting import nested, unnested
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

    def state(self) -> dict[str, Tensor]:
        return {"scores": self.scores, "positions": self.positions}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.scores, self.positions = state["scores"], state["positions"]

    def picks(self) -> Picks:
        checks.batch_size(self.k, len(self.scores))  # only now is it known how long a stream was
        return Picks(self.positions, self.scores)


@dataclass
class Top:
    """A fold: the k best points by a scorer. Scores wait until there are k of them: each is sorted a few times only."""

    score: Scorer
    k: int
    _best: Best = field(init=False)
    _waiting: list[tuple[Tensor, Tensor]] = field(default_factory=list, init=False)
    _count: int = field(default=0, init=False)  # of those that wait

    def __post_init__(self) -> None:
        self._best = Best(self.k)

    @property
    def best(self) -> Best:
        self._sort()
        return self._best

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        scores = self.score(sampled, batch, positions)
        checks.scores(scores, positions)
        self._wait(scores.to("cpu", torch.float64), positions)

    def merge(self, other: "Top") -> "Top":
        self._wait(other.best.scores, other.best.positions)
        return self

    def state(self) -> dict[str, Tensor]:
        return self.best.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.best.load_state(state)

    def _wait(self, scores: Tensor, positions: Tensor) -> None:
        self._waiting.append((scores, positions))
        self._count += len(positions)
        if self._count >= self.k:
            self._sort()

    def _sort(self) -> None:
        if self._waiting:
            scores, positions = (torch.cat(column) for column in zip(*self._waiting, strict=True))
            self._waiting, self._count = [], 0
            self._best.add(scores, positions)


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
        found = [scored(self.measure, m) for m in (merged(halves), *halves)]
        for best, scores in zip(self.best, found, strict=False):
            best.add(scores, positions)

    def merge(self, other: "Halves") -> "Halves":
        for mine, theirs in zip(self.best, other.best, strict=True):
            mine.add(theirs.scores, theirs.positions)
        return self

    def state(self) -> dict[str, Tensor]:
        return nested(best.state() for best in self.best)

    def load_state(self, state: dict[str, Tensor]) -> None:
        for best, own in zip(self.best, unnested(state, len(self.best)), strict=True):
            best.load_state(own)

    @property
    def stability(self) -> float:
        """The share of the k best that two halves of the draws agree on."""
        _, one, other = self.best
        return float(torch.isin(one.positions, other.positions).double().mean())


@dataclass(frozen=True)
class ByMeasure:
    """Points scored by a measure; the random one by (seed, key)."""

    measure: Measure
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        return self.of(sampled.moments(batch, positions), adapt.keys(sampled, positions))

    def of(self, m: Moments, keys: Indices) -> Tensor:
        """The scores of points whose moments are known."""
        if self.measure is random:
            return noise.uniform(self.seed, keys)
        check_draws(self.measure, m.n)
        return scored(self.measure, m)


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
