"""k-means++ by clocks: its distribution, and what it must not depend on."""

from collections import Counter

import pytest
import torch
from helpers.examples import f64, normal
from helpers.statistics import p_value
from reference.features import seeding_probabilities

from balent.geometry.distances import Embedded, Points
from balent.geometry.k_means_pp import Seeding, seeds
from balent.geometry.rows import Rows


def points_of(h):
    rows = Rows(1 << 30)
    return Embedded(rows, None, Points.of(rows.add(h.float())).norms)


def seeded(h, k, first=0, seed=0, positions=None, weights=None):
    positions = torch.arange(len(h)) if positions is None else positions
    return seeds(points_of(h), k, first, seed=seed, positions=positions, weights=weights)


@pytest.mark.parametrize("weights", [None, [1.0, 4.0, 0.5, 2.0]])
def test_the_second_and_the_third_centre_are_drawn_in_proportion_to_weighted_squared_distances(weights):
    """All 6 orders of 2 more of 4 points on a line, w·d²/Σ by hand in the reference: Pearson's test on 400 seeds.

    Error rate 10⁻⁴ for each case. Drawing uniformly is refused by the same test.
    """
    h, w = f64([[0.0], [1.0], [3.0], [4.0]]), None if weights is None else f64(weights)
    shares = seeding_probabilities(h, 0, 3, w)
    counts = Counter(tuple(seeded(h, 3, seed=seed, weights=w)[0].tolist()) for seed in range(400))
    assert set(counts) <= set(shares)
    assert p_value([counts[order] for order in shares], list(shares.values())) > 1e-4
    assert p_value([counts[order] for order in shares], [1 / 6] * 6) < 1e-8


def clusters():
    """Six heaps far apart, 100 points each, in whole numbers: float32 has their distances exactly, in any order."""
    return (1000 * normal(6, 3, seed=1)).round().repeat_interleave(100, 0) + (4 * normal(600, 3)).round()


@pytest.mark.parametrize("seed", range(3))
def test_centres_do_not_depend_on_the_order_of_the_pool(seed):
    """Positions travel with their points, as in a pool that is read in other parts."""
    h, order = clusters(), torch.randperm(600, generator=torch.Generator().manual_seed(seed))
    chosen, scores = seeded(h, 50, first=0, seed=seed)
    first = int((order == 0).nonzero())
    again, same = seeded(h[order], 50, first=first, seed=seed, positions=order)
    assert order[again].tolist() == chosen.tolist()
    torch.testing.assert_close(same, scores, rtol=1e-6, atol=0)


def test_bounds_are_made_anew_where_they_are_far_off(monkeypatch):
    """A centre in a heap takes its hundred points away: their clocks ring for nothing until bounds are renewed."""
    times, refresh = [], Seeding._refresh

    def counted(self):
        before, bounds = self.now, self.bounds
        refresh(self)
        assert (self.bounds <= bounds).all()
        assert (self.times >= before).all()
        times.append(before)

    monkeypatch.setattr(Seeding, "_refresh", counted)
    chosen, scores = seeded(clusters(), 40)
    assert len(times) > 1
    assert len(set(chosen.tolist())) == 40
    assert {int(i) // 100 for i in chosen[:6]} == set(range(6))
    assert (scores[1:] > 0).all()


@pytest.mark.parametrize("points", [2, 20, 500])
def test_where_all_distances_are_zero_points_are_drawn_by_their_noise(points):
    chosen, scores = seeded(f64([[1.0, 2.0]]).expand(points, 2), min(points, 12), first=1)
    assert len(set(chosen.tolist())) == min(points, 12)
    assert scores.tolist() == [5.0] + [0.0] * (len(chosen) - 1)


@pytest.mark.parametrize("copies", [2, 50, 300])
def test_copies_of_centres_do_not_ring_for_ever(copies):
    """Bug: once both places had a centre, the clocks of their copies rang without end in pools of fewer than 128."""
    chosen, scores = seeded(f64([[0.0], [4.0]]).repeat_interleave(copies, 0), 4)
    assert len(set(chosen.tolist())) == 4
    assert scores.tolist() == [0.0, 16.0, 0.0, 0.0]


def test_as_many_as_there_are():
    chosen, _ = seeded(normal(30, 2), 30)
    assert sorted(chosen.tolist()) == list(range(30))
