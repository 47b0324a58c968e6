"""Two views of a point: as a direction from the middle of the pool, and moved towards its nearest neighbours there.

    x̂ = unit(x − mean of the anchors)        x̃ = unit(x̂ + unit(Σ_j cos(x̂, â_j)³ â_j))        over the 15 nearest anchors

Points of one class lie together in good features, so a few labels reach further in x̃ than in x̂. Anchors are rows of
the pool, at most `ANCHORS` of them, so the view of a point costs the same whatever the pool. Features that are never
negative, as most backbones have them, all point the same way until their mean is taken off.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from balent.geometry.distances import unit
from balent.geometry.rows import Rows
from balent.kernels.hashing import mixed
from balent.types import Features

ANCHORS = 10_000
NEAREST = 15
POWER = 3  # of the cosine
BLOCK = 512  # rows whose cosines with all anchors are held at a time: 20 MB
MEMORY = 1 << 29  # bytes of views that are remembered


class Neighbours:
    """x̃ of rows x̂, from anchors that are such rows themselves, and from the centre that was taken off.

    Views are remembered, by the rows themselves: a pool is looked through once, not every round.
    """

    def __init__(self, anchors: Features, centre: Float[Tensor, " features"], memory: int = MEMORY) -> None:
        self.anchors, self.centre, self.memory = anchors, centre, memory
        self._forget()

    @classmethod
    def among(cls, rows: Features, memory: int = MEMORY) -> "Neighbours":
        """Of rows as they are."""
        centre = rows.double().mean(0).to(rows)
        return cls(unit(rows - centre), centre, memory)

    @torch.inference_mode()
    def __call__(self, x: Features) -> Features:
        keys = hashes(x).tolist()
        views, new = self._remembered(x, torch.tensor([self._at.get(key, -1) for key in keys]))
        for part in new.split(BLOCK) if len(new) else ():
            views[part] = self._view(x[part])
        self._remember([keys[i] for i in new.tolist()], x[new], views[new])
        return views

    def remember(self, x: Features, views: Features) -> None:
        """Views of unit rows that were computed before, with the same anchors."""
        self._remember(hashes(x).tolist(), x, views)

    def _view(self, x: Features) -> Features:
        cosines, nearest = (x @ self.anchors.T).topk(min(NEAREST, len(self.anchors)))
        weights = cosines.clamp(min=0) ** POWER
        return unit(x + unit((weights[:, None] @ self.anchors[nearest])[:, 0]))

    def _remembered(self, x: Features, at: Int[Tensor, " pool"]) -> tuple[Features, Int[Tensor, " new"]]:
        """Views that are known, and which are not. Rows are compared: equal keys do not prove equal rows."""
        views, new = torch.empty_like(x), at < 0
        old = (~new).nonzero().flatten()
        if len(old):
            rows, found = self._kept[at[old]].chunk(2, 1)
            views[old], new[old] = found, (rows != x[old]).any(1)
        return views, new.nonzero().flatten()

    def _remember(self, keys: list[int], x: Features, views: Features) -> None:
        first, fits = len(self._kept), self.memory // (2 * x.shape[1] * x.itemsize) - len(self._kept)
        if keys and len(keys) <= fits:
            self._kept.add(torch.cat([x, views], 1))
            self._at.update((key, first + i) for i, key in enumerate(keys))

    def _forget(self) -> None:
        self._kept, self._at = Rows(self.memory), dict[int, int]()

    def __getstate__(self) -> tuple[Features, Tensor, int]:
        """Workers remember for themselves."""
        return self.anchors, self.centre, self.memory

    def __setstate__(self, state: tuple[Features, Tensor, int]) -> None:
        self.anchors, self.centre, self.memory = state
        self._forget()


def hashes(x: Features) -> Tensor:
    """A whole number for each row, of its bits."""
    words = x.contiguous().view(torch.int32).long()
    return (words * mixed(0, torch.arange(words.shape[1]))).sum(1)
