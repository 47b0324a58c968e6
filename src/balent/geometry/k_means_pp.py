"""k-means++ seeding (Arthur & Vassilvitskii, 2007), exact in distribution, without a pass for each centre.

The next centre is drawn in proportion to w·d², d the distance to the nearest centre so far. Distances
only shrink, so the ones known from an earlier pass are bounds: a candidate drawn in proportion to its
bound, and accepted with probability (distance now) / bound, has exactly that distribution (rejection;
von Neumann, 1951). Its distance now takes a comparison with the centres since that pass, of one
point instead of all. Bounds are made anew, for all those centres in one product, once the rejected
candidates have cost as much as that would: so a pool of a few tight clusters costs about twice what passes
would at worst, and one without them next to nothing.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from balent.geometry.distances import Embedded, Points, squared
from balent.types import Indices, Scores

CANDIDATES = 128  # at a time: compared with the centres, and with each other, by one product
NARROW = 8  # columns: a product with fewer is no faster, since it waits for memory


def seeds(
    points: Embedded, k: int, first: int, *, generator: Generator, weights: Scores | None = None
) -> tuple[Indices, Float[Tensor, " chosen"]]:
    """k different points, and w·d² of each when it was drawn. The first is given, and has w·‖g‖².

    Where every distance left is 0, points are drawn from what remains, each as likely as any other.
    """
    w = torch.ones(len(points), dtype=torch.float64) if weights is None else weights.double()
    seeding = Seeding(points, w, first, generator)
    while len(seeding.chosen) < k and seeding.total > 0:
        seeding.more(k)
    chosen, scores = torch.tensor(seeding.chosen), torch.tensor(seeding.scores, dtype=torch.float64)
    left = k - len(chosen)
    rest = _without(len(points), chosen)[torch.randperm(len(points) - len(chosen), generator=generator)[:left]]
    return torch.cat([chosen, rest]), torch.cat([scores, torch.zeros(left, dtype=torch.float64)])


class Seeding:
    """The centres so far, and bounds on the weighted squared distances to them."""

    def __init__(self, points: Embedded, weights: Tensor, first: int, generator: Generator) -> None:
        self.points, self.weights, self.generator = points, weights, generator
        self.chosen, self.scores = [first], [float(weights[first] * points.norms[first])]
        self.bounds = torch.full((len(points),), torch.inf, dtype=torch.float64)
        self.compared = 0  # centres that the bounds know
        self._refresh()

    @property
    def total(self) -> float:
        return float(self.upto[-1])

    def more(self, k: int) -> None:
        """Some candidates, accepted or not, up to k centres."""
        u = torch.rand(2, CANDIDATES, dtype=torch.float64, generator=self.generator)
        at = torch.searchsorted(self.upto, u[0] * self.upto[-1], right=True).clamp(max=len(self.upto) - 1)
        rows, w, bound = self.points[at], self.weights[at], self.bounds[at].numpy()
        now = np.minimum(bound, self._recent(rows, w))
        apart = (w[:, None] * squared(rows, rows)).double().numpy()
        for i, threshold in enumerate(u[1].numpy() * bound):
            if threshold < now[i]:
                self.chosen.append(int(at[i]))
                self.scores.append(float(now[i]))
                now = np.minimum(now, apart[:, i])
            else:
                self.rejected += 1
            if len(self.chosen) == k:
                return
        if self._is_dear():
            self._refresh()

    def _recent(self, rows: Points, weights: Tensor) -> np.ndarray:
        """Weighted squared distances to the nearest of the centres since the last pass."""
        recent = self.chosen[self.compared :]
        if not recent:
            return np.full(len(rows), np.inf)
        return (weights * squared(rows, self.points[torch.tensor(recent)]).amin(1)).double().numpy()

    def _is_dear(self) -> bool:
        recent = len(self.chosen) - self.compared
        return recent > 0 and self.rejected * (recent + CANDIDATES) >= len(self.points) * max(recent, NARROW)

    def _refresh(self) -> None:
        """One pass over the pool: the bounds are distances again."""
        recent = torch.tensor(self.chosen[self.compared :])
        self.bounds = torch.minimum(self.bounds, self.weights * self.points.nearest(self.points[recent]))
        self.bounds[recent] = 0.0
        self.upto = self.bounds.cumsum(0)
        self.compared, self.rejected = len(self.chosen), 0


def _without(points: int, chosen: Tensor) -> Tensor:
    left = torch.ones(points, dtype=torch.bool)
    left[chosen] = False
    return left.nonzero().flatten()
