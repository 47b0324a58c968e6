"""Squared distances: matrix products where they are exact enough, differences where they are not."""

import pytest
import torch
from helpers.examples import normal

from balent.geometry.distances import CACHED, Points, squared


@pytest.mark.parametrize("points", [1, CACHED - 1, CACHED, 2 * CACHED + 3])
def test_distances_by_their_definition_whatever_the_block(points):
    a, b = (normal(n, 3, seed=seed, dtype=torch.float32) for seed, n in enumerate((points, 40)))
    expected = (a[:, None].double() - b[None].double()).square().sum(-1)
    torch.testing.assert_close(squared(Points.of(a), Points.of(b)).double(), expected, rtol=1e-4, atol=0)


def test_duplicates_are_at_distance_zero_in_every_block():
    """Products alone leave some 1e-6 of the squared norms."""
    a = 100 * normal(2 * CACHED + 3, 7, dtype=torch.float32)
    assert squared(Points.of(a), Points.of(a)).diagonal().tolist() == [0] * len(a)


def test_near_points_keep_their_digits():
    a = torch.tensor([[1.0, 0.0]])
    b = a + torch.tensor([[1e-5, 0.0]])
    step = float(b[0, 0].double() - 1)
    assert float(squared(Points.of(a), Points.of(b))) == pytest.approx(step**2, rel=1e-6)
