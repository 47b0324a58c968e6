"""k-means (Lloyd, 1957), from k-means++ seeds."""

import torch
from jaxtyping import Float
from torch import Tensor

from balent.geometry.clusters import centres, nearest_centre
from balent.geometry.distances import Points
from balent.geometry.k_means_pp import Positions
from balent.types import Features

ROUNDS = 30  # later ones hardly move a centre
Means = Float[Tensor, "clusters features"]


def k_means(x: Features, k: int, *, seed: int, keys: Positions) -> Points:
    """The means of k clusters; fewer if fewer rows differ.

    keys   numbers that identify the rows, by which seeds are drawn

    >>> x = torch.tensor([[0.0], [1.0], [8.0], [9.0]])
    >>> k_means(x, 2, seed=0, keys=torch.arange(4)).features.flatten().sort().values
    tensor([0.5000, 8.5000])
    """
    points, means = Points.of(x), centres(x, k, seed=seed, keys=keys)
    before = None
    for _ in range(ROUNDS):
        cluster = nearest_centre(points, means)
        if before is not None and torch.equal(cluster, before):
            break
        means, before = Points.of(averages(x, cluster, means.features)), cluster
    return means


def averages(x: Features, cluster: Tensor, old: Means) -> Means:
    """The mean of each cluster; an empty one keeps its centre."""
    size = torch.bincount(cluster, minlength=len(old))
    total = torch.zeros(old.shape, dtype=torch.float64).index_add_(0, cluster, x.double())
    return torch.where(size[:, None] > 0, (total / size.clamp(min=1)[:, None]).to(old.dtype), old)
