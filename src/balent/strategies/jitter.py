"""The k best after the noise that independent draws would have had.

With masks shared by the pool, duplicates have equal scores and are queried together; with masks
per point, Monte-Carlo noise separates them. `Jitter` adds that noise to shared masks: to each score a
deviate with its standard error, estimated from the point's own draws. Where a measure jumps at a zero (BalEntAcq), the
noise is added to the quantity that passes zero there (BalEnt).
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from balent import adapt
from balent.maths.error import GROUPS, deviates, merged
from balent.maths.facts import facts
from balent.maths.measures import zero_first
from balent.maths.scored import scored
from balent.strategies.top_k import Top
from balent.types import Batch, Indices, Measure, Needs, Picks, Pool, Sampled, Scores


@dataclass(frozen=True)
class Jitter:
    """The k points of the largest scores, each score with its own Monte-Carlo noise."""

    measure: Measure
    needs: ClassVar[Needs] = Needs(noise=True, separates=True)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        return pool.scan(sampled, Top(Jittered(self.measure, generator.initial_seed()), k)).best.picks()


@dataclass(frozen=True)
class Jittered:
    """The score, and a normal deviate of the point with the score's standard error."""

    measure: Measure
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Scores:
        balance = facts(self.measure).balance
        inner = balance or self.measure
        groups = adapt.groups(sampled, batch, positions, GROUPS)
        scores = (
            scored(inner, merged(groups)) + deviates(groups, inner, self.seed, adapt.keys(sampled, positions))
        ).cpu()
        return zero_first(scores) if balance else scores
