"""Exact duplicates and near-duplicates in the pool: a label of one of them says nothing new of the others.

Exact ones have equal content. A point is a near-duplicate if one to nine others are ten times nearer to it than the
next one is: a rule that needs no scale, and that by chance holds for 1 % of points in two dimensions and fewer in more.
Both are looked for among the points that are looked at, so of a large pool the share of near-duplicates is a lower
bound, and that of exact ones is worked out from the pairs that were found.
"""

from collections.abc import Iterator
from math import isqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from balent.apps.doctor.finding import NOTE, OK, WARNING, Figure, Finding, Missing
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.tallies import Equal
from balent.geometry.distances import Points, squared
from balent.project.audit import wilson
from balent.types import Features

MANY, MANY_NEAR = 0.05, 0.15  # of the pool: from here on a warning; along a curve 10 % are near by chance
NEAR, GROUP = 0.1, 10
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
    if not share:
        yield Finding(OK, says, figure=Figure(share))
    elif share >= MANY and not found.once:
        yield Finding(WARNING, says, REMOVE, Figure(share))
    else:
        yield Finding(NOTE, says, ONCE if found.once else "few enough", Figure(share))


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
    if not x.isfinite().all():
        raise Missing("features that are no numbers cannot be compared")
    some = x[: isqrt(OPERATIONS // max(1, x.shape[1]))]
    different = some.unique(dim=0)
    if len(different) < FEWEST or x.shape[1] < 2:
        raise Missing(f"too few to say: {len(different):,} different points in {x.shape[1]} dimensions")
    near = int(are_near(different).sum())
    low, high = wilson(near, len(different))
    share = Figure(near / len(different), low, high)
    least = "" if patient.sample.whole and len(some) == len(x) else "at least "
    of = f"{len(different):,} different {patient.evidence.points}"
    says = f"{least}{share.value:.1%} of {of} have a near-duplicate"
    if low >= MANY_NEAR:
        yield Finding(WARNING, says, REMOVE, figure=share)
    else:
        yield Finding(NOTE if near else OK, says, "few enough" if near else "", figure=share)


def are_near(x: Features) -> Bool[Tensor, " points"]:
    """Which points are near-duplicates of others."""
    distances = nearest_others(x)
    return (distances[:, :-1] <= NEAR * distances[:, 1:]).any(1)


def nearest_others(x: Features) -> Float[Tensor, "points nearest"]:
    """The distances of each point to the GROUP nearest other ones, in order."""
    points, found = Points.of(x), []
    for rows in torch.arange(len(x)).split(TOGETHER):
        distances = squared(points[rows], points)
        distances[torch.arange(len(rows)), rows] = torch.inf
        found.append(distances.topk(min(GROUP, len(x) - 1), largest=False).values)
    return torch.cat(found).clamp(min=0).sqrt()


def _number(size: int | None) -> str:
    return "a stream of" if size is None else f"{size:,}"
