"""k-means: groups that are apart are found, and no step makes the clusters wider."""

import torch
from helpers.examples import normal
from torch.testing import assert_close

from balent.geometry.distances import Points, nearest
from balent.geometry.k_means import averages, k_means


def spread(x, means):
    return float(nearest(Points.of(x), means).sum())


def test_groups_that_are_apart_are_found():
    """Groups 100 apart, each with an odd point: means are those of the groups, for every seed."""
    groups = [torch.tensor([[100.0 * i], [100.0 * i + 1], [100.0 * i + 5]]) for i in range(4)]
    for seed in range(10):
        means = k_means(torch.cat(groups), 4, seed=seed, keys=torch.arange(12))
        assert_close(means.features.flatten().sort().values, torch.tensor([2.0, 102.0, 202.0, 302.0]))


def test_means_are_a_fixed_point():
    """Lloyd's rounds end where every mean is the mean of its cluster: no other step can narrow the clusters."""
    x = normal(200, 3, seed=1).float()
    means = k_means(x, 7, seed=0, keys=torch.arange(200))
    cluster = torch.cdist(x, means.features).argmin(1)
    assert_close(averages(x, cluster, means.features), means.features)


def test_fewer_different_rows_than_clusters():
    x = torch.tensor([[1.0, 0.0]] * 5 + [[0.0, 1.0]] * 5)
    assert len(k_means(x, 4, seed=0, keys=torch.arange(10))) == 2


def test_an_empty_cluster_keeps_its_centre():
    old = torch.tensor([[0.0], [50.0]])
    assert_close(averages(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 0]), old), torch.tensor([[2.0], [50.0]]))
