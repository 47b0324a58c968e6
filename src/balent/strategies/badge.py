"""BADGE (Ash et al., 2020): points whose gradients are large and point in different directions.

g(x) = (p - onehot(argmax p)) ⊗ h(x) is the gradient of the loss in the last layer's weights, had the
model's best guess been the label; p the mean probabilities over draws, h the features. k-means++ seeding
of the gradients picks large ones (uncertainty), far from each other (diversity).
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from balent.geometry.embedded import MEMORY, embedded
from balent.geometry.k_means_pp import seeds
from balent.geometry.rows import Storage
from balent.maths.moments import Moments
from balent.types import ByClass, Needs, Picks, Pool, Sampled


@dataclass(frozen=True)
class Badge:
    """The largest gradient, then points drawn in proportion to the squared distance to the nearest one picked.

    Reads the pool once and keeps classes + features numbers of each point: up to `memory` bytes of either in memory,
    more in a temporary file. storage="float16" takes half. Scores are those squared distances, the first the squared
    norm.
    """

    memory: int = MEMORY
    storage: Storage = "float32"
    needs: ClassVar[Needs] = Needs(features=True, noise=True)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        with embedded(sampled, pool, k, factors=uncertainty, memory=self.memory, storage=self.storage) as (
            rows,
            positions,
        ):
            first, seed = int(rows.norms.argmax()), generator.initial_seed()
            chosen, scores = seeds(rows, k, first, seed=seed, positions=pool.keys(positions))
            return Picks(positions[chosen], scores)


def uncertainty(m: Moments) -> ByClass:
    """p - onehot(argmax p), whose largest entry is what the others sum to: p - 1 would have no digits near 1."""
    top = m.mean.argmax(-1, keepdim=True)
    return m.mean.scatter(-1, top, -m.rest.gather(-1, top))
