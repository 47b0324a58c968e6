"""Clusters of a pool: centres drawn from a random sample, and each point in the cluster of its nearest centre.

Centres are k-means++ seeds of the sample: rows of it, far from each other, more where points are many. A point is
compared with the centres alone, so clusters of N points cost N·centres·D operations and no memory but the centres.
"""

import torch

from balent.geometry.distances import CENTRES, Embedded, Points, apart, rounding, squared, within
from balent.geometry.group_ranks import group_ranks
from balent.geometry.k_means_pp import Positions, seeds
from balent.geometry.rows import Rows
from balent.types import Features, Indices


def centres(sample: Features, count: int, *, seed: int, keys: Positions) -> Points:
    """k-means++ seeds of the sample, the first row first; fewer than `count` if fewer rows differ."""
    rows = Rows(sample.nbytes, expected=len(sample))
    points = Points.of(rows.add(sample))
    found = Embedded(rows, None, points.norms)
    chosen, scores = seeds(found, min(count, len(points)), 0, seed=seed, positions=keys)
    new = scores > 0  # not a duplicate of an earlier one
    new[0] = True
    return points[chosen[new]]


def nearest_centre(points: Points, among: Points) -> Indices:
    """The number of the nearest centre of each point, the first of those that tie.

    Float32 products leave the few centres that can be the nearest; these are compared exactly. So the answer does not
    depend on the block that a point comes in.

    >>> points, among = (Points.of(torch.tensor(rows)) for rows in ([[1.0], [7.0]], [[0.0], [9.0]]))
    >>> nearest_centre(points, among)
    tensor([0, 1])
    """
    found = torch.cat([squared(points, among[i : i + CENTRES]) for i in range(0, len(among), CENTRES)], 1)
    point, centre = within(found, found.amin(1).double() + 2 * rounding(points, among))
    order = apart(points, point, among, centre).argsort(stable=True)
    first = order[group_ranks(point[order]) == 0]
    return torch.empty(len(points), dtype=torch.int64).scatter_(0, point[first], centre[first])
