"""k points at random: what every other strategy has to beat."""

from dataclasses import dataclass

import torch
from torch import Generator

from balent import checks
from balent.strategies.top_k import Best
from balent.types import Picks, Pool, Sampled


@dataclass(frozen=True)
class Uniform:
    """k points, each as likely as any other. Looks at no point of the pool."""

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, len(pool))
        best = Best(k)
        scores = torch.rand(len(pool), dtype=torch.float64, generator=generator)
        best.add(scores, torch.arange(len(pool)))
        return best.picks()
