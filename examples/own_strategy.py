"""A strategy of your own, used by name. It takes the least certain of several random points, k times.

balent run digits --strategies examples/own_strategy.py:Tournament,balentacq,random --seeds 1
balent run digits --strategies "examples/own_strategy.py:Tournament(size=16),random" --seeds 1
balent.Learner(predictor, pool, strategy="examples/own_strategy.py:Tournament")
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

import balent
from balent.types import Needs, Pool, Sampled


def uncertainty(sampled: Sampled, batch: object, positions: torch.Tensor) -> torch.Tensor:
    """One number per point: 1 less the largest mean probability."""
    return 1 - sampled.moments(batch, positions).mean.amax(-1)


@dataclass(frozen=True)
class Tournament:
    """Each pick is the most uncertain of `size` points that are drawn at random, none of them twice."""

    size: int = 8
    needs: ClassVar[Needs] = Needs(again=True, noise=True)  # it reads some points only, and draws random numbers

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: torch.Generator) -> balent.Picks:
        order = torch.randperm(len(pool.positions), generator=generator)
        groups = pool.positions[order[: k * min(self.size, len(order) // k)]].reshape(k, -1)
        scores = pool.read(sampled, groups.flatten(), uncertainty).reshape(k, -1)
        best, at = scores.max(1)
        rank = best.argsort(descending=True, stable=True)
        return balent.Picks(groups.gather(1, at[:, None])[rank, 0], best[rank])


def main() -> None:
    draws = np.random.default_rng(0).dirichlet(np.ones(5), (1000, 20))  # [pool, draws, classes]
    for strategy in (Tournament(), f"{__file__}:Tournament(size=64)"):
        picks = balent.acquire(balent.Draws(draws), np.arange(1000), 5, strategy, seed=0)
        print(picks.indices.tolist(), [round(score, 2) for score in picks.scores.tolist()])


if __name__ == "__main__":
    main()
