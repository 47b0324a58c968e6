"""Greedy facility location: centres that represent as many points, as closely, as possible.

Every point is assigned to the nearest centre, at the cost of the squared distance d². The next centre is the point that
reduces the sum of these costs most. So centres lie where points are. An outlier represents only itself and is chosen
late; greedy k-centre would choose it first. What a further centre would save is kept for every point, and brought up to
date by the points alone that the last centre has brought nearer: some N·log k rows of distances in all, instead of N·k.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from balent.geometry.distances import Points, nearest, squared

ROWS = 256  # of distances at a time
STORED = 8192  # points whose distances to each other are kept: 256 MB. Of more they are computed again


class Facilities:
    """The centres so far, d² of each point to the nearest of them, and what each point would save as a further one."""

    def __init__(self, points: Points, known: Points | None = None) -> None:
        """The first centre is the first point; `known` ones from elsewhere serve from the beginning."""
        self.points = points
        self.chosen: list[int] = []
        self.scores: list[float] = []  # d² of each when it was chosen
        every = torch.arange(len(points))
        self.table = table(points) if len(points) <= STORED else None
        self.costs = torch.full((len(points),), torch.inf, dtype=torch.float64)
        if known is not None:
            self.costs = torch.cat([nearest(points[at], known) for at in every.split(ROWS)])
        self.savings = torch.zeros(len(points), dtype=torch.float64)
        self._add(0)
        self.savings += self._saved(every, self.costs)

    def choose(self) -> None:
        """The point that saves most; the first of them. If none saves anything, the first that is not a centre."""
        before = self.costs
        self._add(int(self.savings.argmax()))
        nearer = (self.costs < before).nonzero().flatten()
        self.savings -= self._saved(nearer, before) - self._saved(nearer, self.costs)

    def _add(self, centre: int) -> None:
        self.chosen.append(centre)
        self.scores.append(float(self.costs[centre]))
        self.savings[centre] = -torch.inf  # never again
        self.costs = torch.minimum(self.costs, self._apart(torch.tensor([centre]))[0].double())

    def _saved(self, served: Tensor, costs: Tensor) -> Float[Tensor, " points"]:
        """By how much each point, as a centre, would lower the costs of these."""
        parts = [(costs[at, None] - self._apart(at)).clamp_min(0).sum(0) for at in served.split(ROWS)]
        return torch.stack(parts).sum(0)

    def _apart(self, at: Tensor) -> Float[Tensor, "some points"]:
        """d² of some points to all."""
        return squared(self.points[at], self.points) if self.table is None else self.table[at]


def table(points: Points) -> Float[Tensor, "points points"]:
    """d² of all points to all."""
    found = torch.empty(len(points), len(points))
    for i in range(0, len(points), ROWS):
        found[i : i + ROWS] = squared(points[i : i + ROWS], points)
    return found
