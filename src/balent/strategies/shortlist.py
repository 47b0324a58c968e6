"""Candidates: the best points by a measure, several times k, with their features."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from balent import adapt, checks
from balent.geometry.distances import Points
from balent.geometry.embedded import LARGEST
from balent.strategies.top_k import Best, Scorer, Top
from balent.types import Batch, Indices, Pool, Sampled, Scores


@dataclass(frozen=True)
class Shortlist:
    """Points in the order of a measure, best first."""

    positions: Indices
    scores: Scores
    points: Points


def shortlist(sampled: Sampled, pool: Pool, k: int, candidates: int, score: Scorer) -> Shortlist:
    """The best points by a score, with their features.

    sampled     gives scores and features
    pool        is scanned once; features of the best points are read again, or kept if the pool is a stream
    k           points that will be picked: a shorter stream is refused
    candidates  points in the shortlist, at most
    score       one number per point; larger is better
    """
    if pool.size is None:
        kept = pool.scan(sampled, Kept(score, candidates))
        best, h = kept.best, torch.stack([kept.rows[i] for i in kept.best.positions.tolist()])
    else:
        best = pool.scan(sampled, Top(score, min(candidates, pool.size))).best
        h = pool.read(sampled, best.positions, adapt.features)
    checks.batch_size(k, len(best.positions))  # only now is it known how long a stream was
    points = Points.of(h)
    checks.features(h, points.norms, LARGEST["float32"], best.positions)
    return Shortlist(best.positions, best.scores, points)


@dataclass
class Kept:
    """A fold: the best points of a stream, and their features."""

    score: Scorer
    k: int
    best: Best = field(init=False)
    rows: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.best = Best(self.k)

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        scores, h = self.score(sampled, batch, positions), adapt.features(sampled, batch)
        self.best.add(scores, positions)
        self._keep(dict(zip(positions.tolist(), h, strict=True)))

    def merge(self, other: "Kept") -> "Kept":
        self.best.add(other.best.scores, other.best.positions)
        self._keep(other.rows)
        return self

    def _keep(self, new: dict[int, Tensor]) -> None:
        self.rows = {i: self.rows[i] if i in self.rows else new[i].clone() for i in self.best.positions.tolist()}
