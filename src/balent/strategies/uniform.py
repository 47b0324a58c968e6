"""k points at random: what every other strategy has to beat."""

from dataclasses import dataclass

import torch
from torch import Generator

from balent import checks
from balent.strategies.blocks import blocks, length
from balent.strategies.top_k import Best
from balent.types import Batches, Picks, Pool, Sampled


@dataclass(frozen=True)
class Uniform:
    """k points, each as likely as any other. Looks at no point of the pool; a stream is read to its end."""

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks:
        points = length(pool)
        checks.batch_size(k, points)
        best = Best(k)
        everywhere = [torch.arange(points)] if points is not None else (at for _, at in blocks(sampled, pool))
        for positions in everywhere:
            best.add(torch.rand(len(positions), dtype=torch.float64, generator=generator), positions)
        return best.picks()
