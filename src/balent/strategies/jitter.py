"""The k best after the noise that independent draws would have had.

Under masks shared by the pool, copies of a point tie and are bought together; under masks of their
own the Monte-Carlo noise tells them apart. `Jitter` adds that noise to shared masks, for each point a
deviate with the standard error of its score, from its own draws. Where a measure jumps at a zero (BalEntAcq), the
noise is added to what passes zero there (BalEnt).
"""

from dataclasses import dataclass

from torch import Generator

from balent import checks
from balent.maths.error import groups_of, merged, noise
from balent.maths.facts import facts
from balent.maths.measures import zero_first
from balent.strategies.blocks import blocks, length
from balent.strategies.top_k import Best
from balent.types import Batches, Measure, Picks, Pool, Sampled


@dataclass(frozen=True)
class Jitter:
    """The k points of the largest scores, each score with Monte-Carlo noise of its own."""

    measure: Measure

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, length(pool))
        best, balance = Best(k), facts(self.measure).balance
        inner = balance or self.measure
        for batch, positions in blocks(sampled, pool):
            groups = groups_of(sampled, batch, positions)
            scores = (inner(merged(groups)) + noise(groups, inner, generator)).cpu()
            best.add(zero_first(scores) if balance else scores, positions)
        return best.picks()
