"""The nearest points of a pool: exact, whatever the blocks, and the nearest centre of each point."""

import pytest
import torch
from helpers.examples import f64, normal
from reference import features as reference

from balent import Draws
from balent.geometry.clusters import centres, nearest_centre
from balent.geometry.distances import Points, apart, rounding, squared
from balent.geometry.k_nearest import KNearest


def near(h, known, n, block=16, order=None):
    """The n nearest rows of h to each known row, scanned in blocks."""
    sampled = Draws(torch.full((len(h), 1, 2), 0.5), features=h)
    fold = KNearest(Points.of(known.float()), n)
    for positions in (torch.arange(len(h)) if order is None else order).split(block):
        fold.add(sampled, positions, positions)
    centre, _, position = fold.pairs()
    return [position[centre == i].tolist() for i in range(len(known))]


def test_points_on_a_line_by_hand():
    """2 is 1 away from 1 and from 3, which tie, and 2 from 0; 8 is 1 away from 9, 3 from 5, 5 from 3."""
    h = f64([[0.0], [1.0], [3.0], [5.0], [9.0]])
    assert near(h, f64([[2.0], [8.0]]), 3) == [[1, 2, 0], [4, 3, 2]]


@pytest.mark.parametrize("width", [1, 3, 40])
@pytest.mark.parametrize("n", [1, 7, 300, 400])
def test_they_are_those_of_all_distances(width, n):
    h, known = normal(300, width, dtype=torch.float32), normal(17, width, seed=1, dtype=torch.float32)
    assert near(h, known, n) == reference.k_nearest(h, known, n)


@pytest.mark.parametrize("block", [1, 5, 300])
def test_duplicates_tie_by_position_in_blocks_of_any_size_and_order(block):
    """Products of matrices of different shapes round differently, which would mix up equal distances."""
    h = normal(50, 33, dtype=torch.float32).repeat(6, 1)
    known = torch.cat([h[:3], normal(5, 33, seed=1, dtype=torch.float32)])
    expected = reference.k_nearest(h, known, 20)
    assert near(h, known, 20, block) == near(h, known, 20, block, torch.arange(300).flip(0)) == expected


def test_far_from_zero_distances_are_still_exact():
    """At 1,000 from zero, ‖g‖² + ‖g'‖² - 2⟨g, g'⟩ in float32 has no digit left of a distance of 1."""
    h = 1000 + normal(200, 8, dtype=torch.float32)
    known = 1000 + normal(9, 8, seed=1, dtype=torch.float32)
    assert near(h, known, 5) == reference.k_nearest(h, known, 5)
    assert nearest_centre(Points.of(h), Points.of(known)).tolist() == reference.nearest_centre(h, known)


def test_more_centres_than_are_compared_at_a_time():
    h, known = normal(60, 4, dtype=torch.float32), normal(1100, 4, seed=1, dtype=torch.float32)
    assert near(h, known, 2) == reference.k_nearest(h, known, 2)
    assert nearest_centre(Points.of(h), Points.of(known)).tolist() == reference.nearest_centre(h, known)


def test_memory_is_bounded_by_the_pairs_that_are_kept():
    """2·n per centre and those of a block; also where each point is nearer than all before."""
    h = torch.arange(1000, 0, -1, dtype=torch.float32)[:, None]
    sampled, fold = Draws(torch.full((1000, 1, 2), 0.5), features=h), KNearest(Points.of(torch.zeros(3, 1)), 4)
    for positions in torch.arange(1000).split(10):
        fold.add(sampled, positions, positions)
        assert len(fold._centre) <= 3 * (2 * 4 + 10)
    assert fold.positions.tolist() == [996, 997, 998, 999]


@pytest.mark.parametrize("width", [2, 64, 2048])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_rounding_is_a_bound_on_the_error_of_products(width, shift):
    a, b = (Points.of(shift + normal(40, width, seed=seed, dtype=torch.float32)) for seed in (0, 1))
    i, j = torch.cartesian_prod(torch.arange(40), torch.arange(40)).unbind(1)
    error = (squared(a, b).flatten().double() - apart(a, i, b, j)).abs().view(40, 40)
    assert (error.amax(1) <= rounding(a, b)).all()


# ── centres ──────────────────────────────────────────────────────────────────────────────────────


def test_a_point_between_two_centres_belongs_to_the_first():
    points, among = Points.of(torch.tensor([[1.0], [3.0], [-9.0]])), Points.of(torch.tensor([[2.0], [0.0], [4.0]]))
    assert nearest_centre(points, among).tolist() == [0, 0, 1]


@pytest.mark.parametrize("block", [1, 7, 300])
def test_the_nearest_centre_does_not_depend_on_the_block(block):
    """Each point is half way between many duplicates of centres."""
    h, among = normal(300, 33, dtype=torch.float32), normal(20, 33, seed=1, dtype=torch.float32).repeat(5, 1)
    found = torch.cat([nearest_centre(Points.of(part), Points.of(among)) for part in h.split(block)])
    assert found.tolist() == reference.nearest_centre(h, among)
    assert int(found.max()) < 20


def test_centres_differ_and_each_blob_has_one():
    """Ten blobs far apart: ten centres of 1,000 points find all of them; no two are the same of five points."""
    h = 1000 * normal(10, 4, seed=2, dtype=torch.float32).repeat(100, 1) + normal(1000, 4, dtype=torch.float32)
    among = centres(h, 10, seed=0, keys=torch.arange(1000))
    assert len(nearest_centre(among, Points.of(h[:10])).unique()) == 10
    assert len(centres(h[:5].repeat(40, 1), 50, seed=0, keys=torch.arange(200))) == 5
    assert len(centres(torch.zeros(9, 3), 4, seed=0, keys=torch.arange(9))) == 1
