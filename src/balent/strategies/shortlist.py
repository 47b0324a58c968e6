"""The best points by a measure, several times as many as are wanted, with their features."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from balent import checks
from balent.geometry.distances import Points
from balent.geometry.embedded import LARGEST, features
from balent.geometry.rows import CHUNK
from balent.strategies.blocks import blocks, length
from balent.strategies.joint import points_at
from balent.strategies.top_k import Best
from balent.types import Batches, Indices, Measure, Pool, Sampled, Scores


@dataclass(frozen=True)
class Shortlist:
    """Points in the order of a measure, best first."""

    positions: Indices
    scores: Scores
    points: Points


def shortlist(sampled: Sampled, pool: Pool | Batches, k: int, candidates: int, measure: Measure) -> Shortlist:
    """The best points, k at least. Those of a pool are read again for their features; a stream's are kept."""
    total = length(pool)
    checks.batch_size(k, total)
    best, kept = Best(candidates if total is None else min(candidates, total)), Kept(isinstance(pool, Pool))
    for batch, positions in blocks(sampled, pool):
        best.add(measure(sampled.moments(batch, positions)), positions)
        kept.add(sampled, batch, positions, best)
    checks.batch_size(k, len(best.positions))  # a stream tells only now how long it was
    h = kept.features(sampled, pool, best.positions)
    points = Points.of(h)
    checks.features(h, points.norms, LARGEST["float32"], best.positions)
    return Shortlist(best.positions, best.scores, points)


class Kept:
    """Features of the best of a stream. Of a pool that can be read again, none are needed before the end."""

    def __init__(self, again: bool) -> None:
        self.again = again
        self.rows: dict[int, Tensor] = {}

    def add(self, sampled: Any, batch: Any, positions: Tensor, best: Best) -> None:
        if not self.again:
            new = dict(zip(positions.tolist(), features(sampled, batch, positions), strict=True))
            self.rows = {i: self.rows[i] if i in self.rows else new[i].clone() for i in best.positions.tolist()}

    def features(self, sampled: Any, pool: Any, positions: Tensor) -> Tensor:
        if not self.again:
            return torch.stack([self.rows[i] for i in positions.tolist()])
        parts = positions.split(min(CHUNK, getattr(sampled, "block", CHUNK)))
        return torch.cat([features(sampled, points_at(pool, part), part) for part in parts])
