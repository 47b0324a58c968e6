"""Exact duplicates and near-duplicates in the pool: a label of one of them says nothing new of the others.

Exact ones have equal content. A near-duplicate is a point whose nearest other one is within NEAR of the 90 % quantile
of such distances, and within NEAR of the typical distance of two points: both, because in a few dimensions nearest
points are near by nature. Both are looked for among the points that are looked at, so of a large pool the share of
near-duplicates is a lower bound, and that of exact ones is worked out from the pairs that were found.
"""

from collections.abc import Iterator
from math import isqrt

import torch
from jaxtyping import Float
from torch import Tensor

from balent.apps.doctor.finding import NOTE, OK, OPEN, WARNING, Figure, Finding
from balent.apps.doctor.patient import Equal, Patient
from balent.geometry.covers import typical
from balent.geometry.distances import Points, squared
from balent.project.audit import wilson
from balent.types import Features

MANY = 0.05  # of the pool: from here on a warning
NEAR = 0.1
TYPICALLY = 0.9  # quantile of the distances to the nearest point
FEWEST = 50  # points, for near-duplicates
TOGETHER = 512
OPERATIONS = 20_000_000_000  # points² · features, at most
ONCE = "nothing is lost: equal ones are labelled once"
REMOVE = "remove them, or use strategies that keep them apart (auto, diverse:<measure>) and masks per point"


def duplicates(patient: Patient) -> Iterator[Finding]:
    """Which share of the pool has been seen before?"""
    found, size = patient.equal, patient.evidence.size
    share, points = redundant(found, size), patient.evidence.points
    of = f"{found.looked:,} {points}" if size == found.looked else f"{found.looked:,} of {_number(size)} {points}"
    says = f"{share:.1%} are exact duplicates of others ({of} compared)"
    if share >= MANY:
        yield Finding(NOTE if found.once else WARNING, says, ONCE if found.once else REMOVE, Figure(share))
    else:
        yield Finding(
            NOTE if share else OK, says, (ONCE if found.once else "few enough") if share else "", Figure(share)
        )


def redundant(found: Equal, size: int | None) -> float:
    """The share of the pool that repeats other points.

    A sample of the share f has f² of the pairs, so each point has m = 2 · pairs / (looked · f) duplicates on average,
    and m / (1 + m) of the points are redundant: exactly so if all are repeated equally often, else less.
    """
    if not found.looked:
        return 0.0
    if size is None or size <= found.looked:
        return found.redundant / found.looked
    each = 2 * found.pairs / found.looked * size / found.looked
    return each / (1 + each)


def near_duplicates(patient: Patient) -> Iterator[Finding]:
    """Which share has a point very near to it?"""
    x = patient.vectors
    x = x[: isqrt(OPERATIONS // max(1, x.shape[1]))].unique(dim=0)
    if len(x) < FEWEST or x.shape[1] < 2:
        yield Finding(OPEN, f"not looked for: {len(x):,} different points in {x.shape[1]} dimensions are too few")
        return
    near = int(are_near(x).sum())
    low, high = wilson(near, len(x))
    least = "" if patient.evidence.size == len(patient.sample) else "at least "
    says = f"{least}{near / len(x):.1%} of {len(x):,} different {patient.evidence.points} have a near-duplicate"
    numbers = Figure(near / len(x), low, high)
    if low >= MANY:
        yield Finding(WARNING, says, REMOVE, figure=numbers)
    else:
        yield Finding(NOTE if near else OK, says, "few enough" if near else "", figure=numbers)


def are_near(x: Features) -> Tensor:
    """Which points are near-duplicates of others."""
    points, nearest = Points.of(x), nearest_other(x)
    reach = NEAR * torch.minimum(nearest.quantile(TYPICALLY), torch.tensor(typical(points)).sqrt())
    return nearest <= reach


def nearest_other(x: Features) -> Float[Tensor, " points"]:
    """The distance of each point to the nearest other one."""
    points, found = Points.of(x), []
    for rows in torch.arange(len(x)).split(TOGETHER):
        distances = squared(points[rows], points)
        distances[torch.arange(len(rows)), rows] = torch.inf
        found.append(distances.amin(1))
    return torch.cat(found).clamp(min=0).sqrt().double()


def _number(size: int | None) -> str:
    return "a stream of" if size is None else f"{size:,}"
