"""The k best after the noise that independent draws would have had.

Under masks shared by the pool, copies of a point tie and are bought together; under masks of their
own the Monte-Carlo noise tells them apart. `Jitter` adds that noise to shared masks: for each point a
normal deviate with the standard error of its score. Where a measure jumps at a zero (BalEntAcq), the
noise is added to what passes zero there (BalEnt).
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from balent import checks
from balent.measures import BALANCES, zero_first
from balent.strategies.blocks import blocks, length
from balent.strategies.error import groups_of, jackknife, merged
from balent.strategies.top_k import Best
from balent.types import Batches, Measure, Picks, Pool, Sampled


@dataclass(frozen=True)
class Jitter:
    """The k points of the largest scores, each score with Monte-Carlo noise of its own."""

    measure: Measure

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, length(pool))
        best, inner = Best(k), BALANCES.get(self.measure, self.measure)
        for batch, positions in blocks(sampled, pool):
            groups = groups_of(sampled, batch, positions)
            scores = inner(merged(groups)).cpu() + jackknife(groups, inner).cpu() * normal(len(positions), generator)
            best.add(zero_first(scores) if self.measure in BALANCES else scores, positions)
        return best.picks()


def normal(n: int, generator: Generator) -> Tensor:
    """Standard normal numbers, the same in blocks of any size: torch.randn has others for other sizes."""
    uniform = torch.rand(n, dtype=torch.float64, generator=generator)
    return torch.special.ndtri(uniform.clamp(min=2.0**-54))  # 0 would be -∞
