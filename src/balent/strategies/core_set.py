"""CoreSet (Sener & Savarese, 2018): cover the feature space, greedily (k-centre).

Next comes the point that is farthest from all that is labelled or picked. Distances only shrink, so
those known from earlier are bounds, and the farthest point by bounds that are up to date is the farthest of
all: only points whose bound stands above it are compared with the latest centres (lazily; Minoux, 1978).
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, Tensor

from balent.strategies.distances import Embedded, Points, nearest
from balent.strategies.embedding import MEMORY, embedded, of_labelled
from balent.strategies.rows import CHUNK, Storage
from balent.types import Batches, Picks, Pool, Sampled

FEWEST = 64  # points whose bounds are renewed together; four times as many each time that is not enough


@dataclass(frozen=True)
class CoreSet:
    """The k points that come farthest from the `labelled` ones and from each other, one after the other.

    Without labelled points it begins with the point nearest to the mean of all. Ties go to the smaller position.
    Scores are distances to the nearest centre before; +∞ for the first of all. `memory` and `storage` as for Badge.
    """

    labelled: Any = field(default=None, repr=False, compare=False)  # a batch, or a pool, of inputs
    memory: int = MEMORY
    storage: Storage = "float32"

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks:
        with embedded(sampled, pool, k, memory=self.memory, storage=self.storage) as points:
            cover = Cover(points)
            if self.labelled is not None and len(self.labelled):
                cover.bounds = points.nearest(of_labelled(sampled, self.labelled))
            else:
                cover.choose(central(points))
            while len(cover.chosen) < k:
                cover.choose(cover.farthest())
        return Picks(torch.tensor(cover.chosen), torch.tensor(cover.scores, dtype=torch.float64).sqrt())


class Cover:
    """The centres so far, and a bound on each point's squared distance to the nearest of them."""

    def __init__(self, points: Embedded) -> None:
        self.points = points
        self.chosen: list[int] = []
        self.scores: list[float] = []
        self.bounds = torch.full((len(points),), torch.inf, dtype=torch.float64)
        self.compared = torch.zeros(len(points), dtype=torch.int64)  # centres that each bound knows

    def choose(self, point: int) -> None:
        self.chosen.append(point)
        self.scores.append(float(self.bounds[point]))
        self.bounds[point] = -1  # never again

    def farthest(self) -> int:
        """The first of the points with the largest distance."""
        renewed = FEWEST
        while self.compared[best := int(self.bounds.argmax())] < len(self.chosen):
            known = torch.where(self.compared < len(self.chosen), self.bounds, -1.0)
            at = known.topk(min(renewed, len(known))).indices
            self._renew(torch.cat([at[known[at] >= 0], torch.tensor([best])]).unique())
            renewed *= 4
        return best

    def _renew(self, at: Tensor) -> None:
        """Bounds of these points, up to the last centre."""
        unknown = self.points[torch.tensor(self.chosen[int(self.compared[at].min()) :])]
        for part in at.split(CHUNK):
            self.bounds[part] = torch.minimum(self.bounds[part], nearest(self.points[part], unknown))
        self.compared[at] = len(self.chosen)


def central(points: Embedded) -> int:
    """The point nearest to the mean of all, the first of them."""
    chunks = list(points.features.chunks())
    mean = torch.stack([points[chunk].features.double().sum(0) for chunk in chunks]).sum(0) / len(points)
    return int(points.nearest(Points.of(mean[None].float())).argmin())
