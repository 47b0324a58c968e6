"""The best points by a measure, without near-duplicates in a batch, in linear time.

Candidates are the best points by the measure, a multiple of k. The first pick is the best candidate. Each further
pick is the candidate that represents most of the others: it reduces most the distances, in feature space, from
candidates to the nearest picked or labelled point (greedy facility location). Duplicates are picked last, and outliers
late. Only the order of the scores matters, so the measure may jump (BalEntAcq) or be infinite.
"""

from dataclasses import dataclass

import torch
from torch import Generator

from balent.geometry.covers import covered
from balent.geometry.embedded import of_labelled
from balent.geometry.facility_location import STORED, Facilities
from balent.maths.measures import random
from balent.strategies.shortlist import shortlist
from balent.strategies.top_k import ByMeasure
from balent.types import Measure, Needs, Picks, Pool, Sampled


@dataclass(frozen=True)
class Diverse:
    """k of the `times`·k best points by a measure that represent the others, given the `labelled` points; best first.

    All candidates are compared with each other, so their number is limited to some thousands, but is at least 2·k.
    `covers` of the picks lists, for each pick, the candidates that its label also fits: those for which it is the
    nearest pick, within `near` times the typical (root mean square) distance of candidates. 0 covers only duplicates.
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
        new = torch.tensor(facilities.scores)[order] > 0  # not a duplicate of a picked or labelled point
        covers = [found.positions[near] for near in covered(found.points, rows, new, self.near)]
        return Picks(found.positions[rows], found.scores[rows], covers=covers)
