"""Which points a label goes for too: near-duplicates of the point that got it."""

import torch
from jaxtyping import Bool
from torch import Tensor

from balent.geometry.distances import Points, squared
from balent.geometry.rows import CHUNK
from balent.types import Indices


def covered(points: Points, picks: Indices, new: Bool[Tensor, " chosen"], near: float) -> list[Tensor]:
    """For each new pick, the other points that are near it, and nearer to it than to any other pick."""
    reach, chosen = near**2 * typical(points), new.nonzero().flatten()
    owner = torch.full((len(points),), -1)
    if len(chosen):
        parts = [squared(points[i : i + CHUNK], points[picks[chosen]]).min(1) for i in range(0, len(points), CHUNK)]
        distance, nearest = (torch.cat(column) for column in zip(*parts, strict=True))
        owner = torch.where(distance <= reach, chosen[nearest], owner)
    owner[picks] = -1
    return [(owner == i).nonzero().flatten() for i in range(len(picks))]


def typical(points: Points) -> float:
    """The mean squared distance of two points: twice that to their mean."""
    h = points.features.double()
    return float(2 * (h - h.mean(0)).square().sum(1).mean())
