"""The nearest points of a pool to each of some centres, exactly, in one pass.

Float32 products tell which pairs of centre and point can be among the nearest; these pairs are compared by distances
without rounding errors that depend on blocks. So the result is the same however the pool is cut and merged.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from balent import adapt, checks
from balent.geometry.distances import CENTRES, Points, apart, rounding, squared, within
from balent.geometry.embedded import LARGEST
from balent.geometry.group_ranks import group_ranks
from balent.types import Batch, Indices, Sampled


@dataclass
class KNearest:
    """A fold: of each centre the n nearest points of the pool. Of those that tie, the smaller position is nearer.

    Pairs are collected and sorted out once there are 2·n per centre: memory for these, 24 bytes each, and for those of
    one block.
    """

    centres: Points
    n: int
    _centre: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    _distance: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    _position: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    _reach: Tensor = field(init=False)  # no point farther than this is among the n nearest of a centre

    def __post_init__(self) -> None:
        self._reach = torch.full((len(self.centres),), torch.inf, dtype=torch.float64)

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        h = adapt.features(sampled, batch)
        points = Points.of(h)
        checks.features(h, points.norms, LARGEST["float32"], positions)
        parts = [self._hopeful(points, some) for some in torch.arange(len(self.centres)).split(CENTRES)]
        centre, point, distance = (torch.cat(column) for column in zip(*parts, strict=True))
        self._take(centre, distance, positions[point])

    def merge(self, other: "KNearest") -> "KNearest":
        self._reach = torch.minimum(self._reach, other._reach)
        self._take(other._centre, other._distance, other._position)
        return self

    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Centre, squared distance and position of each pair; by centre, the nearest first."""
        self._sort_out()
        order = self._centre.argsort(stable=True)
        return self._centre[order], self._distance[order], self._position[order]

    @property
    def positions(self) -> Indices:
        """All points that are near a centre, in the order of the pool."""
        self._sort_out()
        return self._position.unique()

    def state(self) -> dict[str, Tensor]:
        centre, distance, position = self.pairs()
        return {"centre": centre, "distance": distance, "position": position}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._take(state["centre"], state["distance"], state["position"])

    def _hopeful(self, points: Points, some: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pairs of these centres and points that may be among the nearest, and their exact distances."""
        centres, reach = self.centres[some], self._reach[some]
        row, point = within(squared(centres, points), reach + rounding(centres, points))
        distance = apart(centres, row, points, point)
        near = distance <= reach[row]
        return some[row[near]], point[near], distance[near]

    def _take(self, centre: Tensor, distance: Tensor, position: Tensor) -> None:
        self._centre = torch.cat([self._centre, centre])
        self._distance = torch.cat([self._distance, distance])
        self._position = torch.cat([self._position, position])
        if len(self._centre) > 2 * self.n * len(self.centres):
            self._sort_out()

    def _sort_out(self) -> None:
        """The n nearest of each centre, the nearest first."""
        order = self._position.argsort()
        order = order[self._distance[order].argsort(stable=True)]
        rank = group_ranks(self._centre[order])
        kept, last = order[rank < self.n], order[rank == self.n - 1]
        self._reach[self._centre[last]] = self._distance[last]
        self._centre, self._distance, self._position = self._centre[kept], self._distance[kept], self._position[kept]
