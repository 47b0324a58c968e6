"""k-means++ seeding (Arthur & Vassilvitskii, 2007), exact in distribution, without a pass for each centre.

The next centre is drawn in proportion to w·d², d the distance to the nearest centre so far. Every point has a clock
that rings at the times of a Poisson process whose rate is a bound on its w·d²; a ring counts with probability
(w·d² now) / bound. The first ring that counts then has exactly that distribution (thinning; Lewis & Shedler, 1979), and
so has the next one after it. Distances only shrink, so the ones known from an earlier pass are bounds: a ring takes a
comparison with the centres since that pass, of one point instead of all. Bounds are made anew, for all those
centres in one product, once the rings that did not count have cost as much as that would. Clocks then run
slower: the time left until a ring grows as its bound shrinks.

Times and decisions are functions of (seed, position, number of the ring), so the centres do not depend on the order of
the pool, nor on how it was read.
"""

import heapq

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from balent.geometry.distances import Embedded, Points, squared
from balent.maths import noise
from balent.types import Indices, Scores

TOGETHER = 128  # clocks at a time: compared with the centres, and with each other, by one product
CLOCKS = 1 << 20  # of the purposes of noise: those from here on
AHEAD = 4  # rings of a clock whose random numbers are made together
NARROW = 8  # columns: a product with fewer is no faster, since it waits for memory
Positions = Int[Tensor, " pool"]  # of all points, where `Indices` are those of the chosen ones


def seeds(
    points: Embedded, k: int, first: int, *, seed: int, positions: Positions, weights: Scores | None = None
) -> tuple[Indices, Float[Tensor, " chosen"]]:
    """k different rows of `points`, and w·d² of each when it was drawn. The first row has the score w·‖g‖².

    points     embedded points
    k          the number of rows
    first      the row of the first centre
    seed       of the noise, which is keyed by (seed, position)
    positions  of the rows in the pool, or other numbers that identify them
    weights    w of each row; None: 1

    If all distances left are 0, the remaining rows are drawn with equal probability.
    """
    w = torch.ones(len(points), dtype=torch.float64) if weights is None else weights.double()
    seeding = Seeding(points, w, first, seed, positions)
    while len(seeding.chosen) < k and seeding.left:
        seeding.more(k)
    chosen, scores = torch.tensor(seeding.chosen), torch.tensor(seeding.scores, dtype=torch.float64)
    if len(chosen) == k:
        return chosen, scores
    order = noise.uniform(seed, positions, purpose=CLOCKS - 1)
    order[chosen] = torch.inf
    rest = order.argsort()[: k - len(chosen)]
    return torch.cat([chosen, rest]), torch.cat([scores, torch.zeros(len(rest), dtype=torch.float64)])


class Seeding:
    """The centres so far, bounds on the weighted squared distances to them, and when each clock rings next."""

    def __init__(self, points: Embedded, weights: Tensor, first: int, seed: int, positions: Positions) -> None:
        self.points, self.weights, self.seed, self.positions = points, weights, seed, positions
        self.chosen, self.scores = [first], [float(weights[first] * points.norms[first])]
        self.rings = torch.zeros(len(points), dtype=torch.int64)  # of each clock, so far
        self.now, self.compared, self.rejected = 0.0, 1, 0  # compared: centres that the bounds know
        self.bounds = self._distances(torch.tensor([first]))
        self.bounds[first] = 0.0
        self.times = noise.exponential(seed, positions, CLOCKS) / self.bounds  # infinite where nothing is left

    @property
    def left(self) -> bool:
        return bool(self.times.isfinite().any())

    def more(self, k: int) -> None:
        """The rings of the clocks that come next, in order, up to k centres."""
        next_times, at = self.times.topk(min(TOGETHER, len(self.times)), largest=False)
        at, horizon = at[next_times.isfinite()], float(next_times.max())
        ringing = Ringing(self, at)
        queue = [(float(self.times[row]), int(self.positions[row]), i) for i, row in enumerate(at.tolist())]
        heapq.heapify(queue)
        while queue and len(self.chosen) < k and not self._is_dear():  # copies of centres would ring for ever
            self.now, position, i = heapq.heappop(queue)
            again = ringing.ring(i)
            if again is not None and again <= horizon:
                heapq.heappush(queue, (again, position, i))
        if self._is_dear():
            self._refresh()

    def noise(self, at: Tensor) -> list[list[tuple[float, float]]]:
        """Of the next rings of these clocks, the next one last: what decides if it counts, and the time to the next."""
        rings = self.rings[at, None] + torch.arange(AHEAD).flip(0)
        here, purposes = self.positions[at].repeat_interleave(AHEAD), CLOCKS + 2 * rings.flatten()
        chances = noise.uniform(self.seed, here, purposes + 1).view(-1, AHEAD)
        waits = noise.exponential(self.seed, here, purposes + 2).view(-1, AHEAD)
        return [list(zip(*both, strict=True)) for both in zip(chances.tolist(), waits.tolist(), strict=True)]

    def _distances(self, centres: Tensor) -> Tensor:
        return self.weights * self.points.nearest(self.points[centres])

    def _is_dear(self) -> bool:
        recent = len(self.chosen) - self.compared
        return recent > 0 and self.rejected * (recent + TOGETHER) >= len(self.points) * max(recent, NARROW)

    def _refresh(self) -> None:
        """One pass over the pool: the bounds are distances again, and clocks slow down with them."""
        recent = torch.tensor(self.chosen[self.compared :])
        bounds = torch.minimum(self.bounds, self._distances(recent))
        bounds[recent] = 0.0
        left = self.times - self.now
        self.times = torch.where(bounds > 0, self.now + left * (self.bounds / bounds), torch.inf)
        self.bounds, self.compared, self.rejected = bounds, len(self.chosen), 0


class Ringing:
    """Some clocks: their distances to the nearest centre as it is now."""

    def __init__(self, seeding: Seeding, at: Tensor) -> None:
        self.seeding, self.at = seeding, at.tolist()
        rows, weights = seeding.points[at], seeding.weights[at]
        self.distances = np.minimum(seeding.bounds[at].numpy(), _recent(seeding, rows, weights))
        self.apart = (weights[:, None] * squared(rows, rows)).double().numpy()
        self.bounds, self.noise = seeding.bounds[at].tolist(), seeding.noise(at)

    def ring(self, i: int) -> float | None:
        """The point becomes a centre, or its clock is set again: to this time."""
        s, row = self.seeding, self.at[i]
        chance, wait = self.noise[i].pop()
        if chance * self.bounds[i] < self.distances[i]:
            s.chosen.append(row)
            s.scores.append(float(self.distances[i]))
            s.times[row] = torch.inf
            self.distances = np.minimum(self.distances, self.apart[:, i])
            return None
        s.rejected += 1
        s.rings[row] += 1
        s.times[row] += wait / self.bounds[i]
        self.noise[i] = self.noise[i] or s.noise(torch.tensor([row]))[0]
        return float(s.times[row])


def _recent(seeding: Seeding, rows: Points, weights: Tensor) -> np.ndarray:
    """Weighted squared distances to the nearest of the centres that the bounds do not know."""
    recent = seeding.chosen[seeding.compared :]
    if not recent:
        return np.full(len(rows), np.inf)
    return (weights * squared(rows, seeding.points[torch.tensor(recent)]).amin(1)).double().numpy()
