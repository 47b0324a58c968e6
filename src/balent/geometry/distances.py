"""Squared distances between embedded points, by inner products: a pass over a pool is a matrix product.

A point is embedded as its features h, or as q ⊗ h with factors q (BADGE's gradients), which is never
multiplied out: ⟨q ⊗ h, q' ⊗ h'⟩ = ⟨q, q'⟩⟨h, h'⟩, so N points take N (C + D) numbers instead of N·C·D.
Where two points are so near that ‖g‖² + ‖g'‖² - 2⟨g, g'⟩ cancels, the distance is computed once more,
from differences, in float64: duplicates have distance 0 exactly.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from balent.geometry.rows import Rows

Nearest = Float[Tensor, " points"]
NEAR = 0.01  # of ‖g‖² + ‖g'‖²: below it float32 products leave fewer than four digits
PAIRS = 4096  # that are near, at a time
CENTRES = 512  # at a time
CACHED = 128  # points whose squares do not leave the cache


@dataclass(frozen=True)
class Points:
    """Some embedded points, in memory."""

    features: Float[Tensor, "points features"]
    factors: Float[Tensor, "points classes"] | None
    norms: Float[Tensor, " points"]  # ‖q‖²‖h‖²

    @classmethod
    def of(cls, features: Tensor, factors: Tensor | None = None) -> "Points":
        norms = torch.cat([part.square().sum(1) for part in features.split(CACHED)]).double()
        return cls(features, factors, norms if factors is None else norms * factors.double().square().sum(1))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, at: Tensor | slice) -> "Points":
        return Points(self.features[at], None if self.factors is None else self.factors[at], self.norms[at])


@dataclass(frozen=True)
class Embedded:
    """A pool of embedded points, wherever they are kept."""

    features: Rows
    factors: Rows | None
    norms: Float[Tensor, " pool"]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, at: Tensor | slice) -> Points:
        return Points(self.features[at], None if self.factors is None else self.factors[at], self.norms[at])

    def nearest(self, centres: Points) -> Nearest:
        """The squared distance of each point to the nearest centre."""
        return torch.cat([nearest(self[chunk], centres) for chunk in self.features.chunks()])


def unit(h: Float[Tensor, "*axes features"]) -> Float[Tensor, "*axes features"]:
    """Rows of length 1; a row of zeros stays one."""
    return torch.nn.functional.normalize(h, dim=-1, eps=torch.finfo(h.dtype).tiny)


def nearest(points: Points, centres: Points) -> Nearest:
    """The squared distance of each of few points to the nearest of any number of centres."""
    parts = (centres[i : i + CENTRES] for i in range(0, len(centres), CENTRES))
    return torch.stack([squared(points, part).amin(1) for part in parts]).amin(0).double()


def squared(a: Points, b: Points, out: Tensor | None = None) -> Float[Tensor, "points others"]:
    """‖g - g'‖² of every point of a and every point of b; in `out`, if it is given."""
    found = torch.mm(a.features, b.features.T, out=out)
    if a.factors is not None and b.factors is not None:
        found *= a.factors @ b.factors.T
    for rows in torch.arange(len(a)).split(CACHED):
        _subtract(found[int(rows[0]) : int(rows[-1]) + 1], a[rows], b)
    return found


def _subtract(found: Float[Tensor, "points others"], a: Points, b: Points) -> None:
    """From inner products to squared distances, in place."""
    scale = a.norms.float()[:, None] + b.norms.float()
    torch.sub(scale, found, alpha=2, out=found)
    rows, columns = _below(found, scale.mul_(NEAR))
    for i, j in zip(rows.split(PAIRS), columns.split(PAIRS), strict=True):
        found[i, j] = between(a[i], b[j]).float()


def _below(found: Float[Tensor, "points others"], limit: Float[Tensor, "points others"]) -> tuple[Tensor, Tensor]:
    """Rows and columns of the few numbers that are below the limit. By numpy: torch takes seven times as long."""
    at = torch.from_numpy(np.flatnonzero(found.numpy() < limit.numpy()))
    return at // found.shape[1], at % found.shape[1]


def rounding(a: Points, b: Points) -> Nearest:
    """How far `squared` can be from the exact distance of each point of a to any point of b, at most.

    A float32 sum of D products is off by D·2⁻²⁴ of Σ|x_i y_i| at most (Higham, 2002), and Σ|x_i y_i| ≤ ‖g‖² + ‖g'‖².
    There are two such sums, the product and the norms, and a few roundings beside them.
    """
    return (a.features.shape[1] + 8) * 2.0**-23 * (a.norms + b.norms.max())


def within(found: Float[Tensor, "points others"], limits: Nearest) -> tuple[Tensor, Tensor]:
    """Rows and columns of the distances that are no larger than the limit of their row, in order."""
    at = torch.from_numpy(np.flatnonzero(found.numpy() <= limits.float().numpy()[:, None]))
    return at // found.shape[1], at % found.shape[1]


def apart(a: Points, i: Tensor, b: Points, j: Tensor) -> Nearest:
    """Exact distances of pairs, few at a time: the same bits in whatever block a pair comes."""
    parts = [between(a[x], b[y]) for x, y in zip(i.split(PAIRS), j.split(PAIRS), strict=True)]
    return torch.cat([torch.empty(0, dtype=torch.float64), *parts])


def between(a: Points, b: Points) -> Nearest:
    """‖g - g'‖² of each point of a and its partner in b, without cancellation.

    q ⊗ h - q' ⊗ h' = Δq ⊗ h + q' ⊗ Δh
    """
    h, step = a.features.double(), a.features.double() - b.features.double()
    if a.factors is None or b.factors is None:
        return step.square().sum(1)
    q, turn = b.factors.double(), a.factors.double() - b.factors.double()
    turned, moved = turn.square().sum(1) * h.square().sum(1), q.square().sum(1) * step.square().sum(1)
    both = (turn * q).sum(1) * (h * step).sum(1)
    return (turned + 2 * both + moved).clamp(min=0)  # a square, but for rounding
