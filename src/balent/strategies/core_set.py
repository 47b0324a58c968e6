"""CoreSet (Sener & Savarese, 2018): cover the feature space. The next pick is the point farthest from all centres."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from balent.geometry.distances import Embedded, Points
from balent.geometry.embedded import MEMORY, embedded, of_labelled
from balent.geometry.k_centre import Cover
from balent.geometry.rows import Storage
from balent.types import Needs, Picks, Pool, Sampled


@dataclass(frozen=True)
class CoreSet:
    """k points, one after the other, each farthest from the `labelled` points and from those picked before.

    Without labelled points it begins with the point nearest to the mean of all. Ties go to the smaller position.
    Scores are distances to the nearest centre before, +∞ for the first of all. Reads the pool once and keeps the
    features: `memory` bytes of them in memory, more in a temporary file; storage="float16" takes half.
    """

    memory: int = MEMORY
    storage: Storage = "float32"
    needs: ClassVar[Needs] = Needs(features=True, labelled=True)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        with embedded(sampled, pool, k, memory=self.memory, storage=self.storage) as (points, positions):
            cover, known = Cover(points), of_labelled(sampled, pool)
            if known is not None:
                cover.begin(known)
            else:
                cover.choose(central(points))
            while len(cover.chosen) < k:
                cover.choose(cover.farthest())
        return Picks(positions[torch.tensor(cover.chosen)], torch.tensor(cover.scores, dtype=torch.float64).sqrt())


def central(points: Embedded) -> int:
    """The point nearest to the mean of all, the first of them."""
    sums = [points[chunk].features.double().sum(0) for chunk in points.features.chunks()]
    mean = torch.stack(sums).sum(0) / len(points)
    return int(points.nearest(Points.of(mean[None].float())).argmin())
