"""Greedy k-centre, lazily: the farthest point next, without a pass for each centre.

Distances to the nearest centre only shrink, so those known from earlier are bounds, and a point whose distance is
up to date and beats every bound is the farthest of all. Only points whose bound stands above it are compared
with the latest centres (Minoux, 1978). The picks are those of a pass for each centre.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from balent.geometry.distances import Embedded, Points, nearest
from balent.geometry.rows import CHUNK

FEWEST = 64  # points whose bounds are renewed together; four times as many each time that this is not enough


class Cover:
    """The centres so far, and a bound on w·d² of each point, d the distance to the nearest of them."""

    def __init__(self, points: Points | Embedded, weights: Float[Tensor, " points"] | None = None) -> None:
        self.points, self.weights = points, weights
        self.chosen: list[int] = []
        self.scores: list[float] = []  # w·d² of each when it was chosen
        self.bounds = torch.full((len(points),), torch.inf, dtype=torch.float64)
        self.compared = torch.zeros(len(points), dtype=torch.int64)  # centres that each bound knows

    def begin(self, known: Points) -> None:
        """Centres from elsewhere, before any is chosen."""
        every = torch.arange(len(self.points))
        self._compare(every, known)

    def choose(self, point: int) -> None:
        self.chosen.append(point)
        self.scores.append(float(self.bounds[point]))
        self.bounds[point] = -1  # never again

    def farthest(self) -> int:
        """The first of the points with the largest w·d². A bound of 0 cannot shrink: only copies are left then."""
        size = FEWEST
        while self.compared[best := int(self.bounds.argmax())] < len(self.chosen) and self.bounds[best] > 0:
            behind = torch.where(self.compared < len(self.chosen), self.bounds, -1.0)
            at = behind.topk(min(size, len(behind))).indices
            self._renew(torch.cat([at[behind[at] >= 0], torch.tensor([best])]).unique())
            size *= 4
        return best

    def _renew(self, at: Tensor) -> None:
        """Bounds of these points, up to the last centre."""
        unknown = self.chosen[int(self.compared[at].min()) :]
        self._compare(at, self.points[torch.tensor(unknown)])
        self.compared[at] = len(self.chosen)

    def _compare(self, at: Tensor, centres: Points) -> None:
        for part in at.split(CHUNK):
            found = nearest(self.points[part], centres)
            weighted = found if self.weights is None else found * self.weights[part]
            self.bounds[part] = torch.minimum(self.bounds[part], weighted)
