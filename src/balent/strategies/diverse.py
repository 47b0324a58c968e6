"""The best points by a measure, but no two alike: near-copies are kept out of a batch, in linear time.

Candidates are the best by the measure, a multiple of k. Among them the best comes first, then always the one that
stands for most of the others: it brings the candidates nearest, in feature space, to what is picked or labelled
(greedy facility location). Copies of a point come last, and outliers late. Only the order of the measure counts, so it
may jump (BalEntAcq) or be infinite.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Generator, Tensor

from balent.geometry.distances import Points, squared
from balent.geometry.embedded import of_labelled
from balent.geometry.facility_location import STORED, Facilities
from balent.geometry.rows import CHUNK
from balent.maths.measures import random
from balent.strategies.shortlist import shortlist
from balent.strategies.top_k import ByMeasure
from balent.types import Indices, Measure, Needs, Picks, Pool, Sampled


@dataclass(frozen=True)
class Diverse:
    """k of the `times`·k best points by a measure, which stand for the others beside the `labelled` ones; best first.

    Of more than some thousands of candidates the best are taken, twice as many as are wanted at least: all are
    compared with each other.
    `covers` of the picks says which candidates a label goes for too: those within `near` times the typical distance of
    candidates (the root of the mean square) from a pick, each at its nearest one. 0 leaves exact copies alone.
    """

    measure: Measure
    times: int = 10
    near: float = 0.2

    def __post_init__(self) -> None:
        if self.times < 1 or self.near < 0:
            raise ValueError(f"times must be 1 or more and near 0 or more, but are {self.times} and {self.near}")

    @property
    def needs(self) -> Needs:
        return Needs(features=True, labelled=True, noise=self.measure is random)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        candidates = min(self.times * k, max(2 * k, STORED))
        found = shortlist(sampled, pool, k, candidates, ByMeasure(self.measure, generator.initial_seed()))
        known = of_labelled(sampled, pool)
        facilities = Facilities(found.points, known)
        while len(facilities.chosen) < k:
            facilities.choose()
        rows, order = torch.tensor(facilities.chosen).sort()
        new = torch.tensor(facilities.scores)[order] > 0  # no copies of what is picked or labelled
        covers = [found.positions[near] for near in covered(found.points, rows, new, self.near)]
        return Picks(found.positions[rows], found.scores[rows], covers=covers)


def covered(points: Points, picks: Indices, new: Bool[Tensor, " chosen"], near: float) -> list[Tensor]:
    """For each new pick, the points that are no picks, nearer to it than to any other, and near."""
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
