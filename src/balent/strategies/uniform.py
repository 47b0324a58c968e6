"""k points at random: the baseline of every comparison."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from balent import adapt
from balent.maths import noise
from balent.strategies.top_k import Best, Top
from balent.types import Batch, Indices, Needs, Picks, Pool, Sampled, Scores


@dataclass(frozen=True)
class AtRandom:
    """A random number per point; what is in them is not used."""

    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Scores:
        return noise.uniform(self.seed, adapt.keys(sampled, positions))


@dataclass(frozen=True)
class Uniform:
    """k points, each as likely as any other. Points are not evaluated; only a stream is read, to its end."""

    needs: ClassVar[Needs] = Needs(noise=True)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        seed = generator.initial_seed()
        if pool.size is None:
            return pool.scan(sampled, Top(AtRandom(seed), k)).best.picks()
        best = Best(k)
        for piece in adapt.pieces(pool):
            best.add(noise.uniform(seed, pool.keys(piece)), piece)
        return best.picks()
