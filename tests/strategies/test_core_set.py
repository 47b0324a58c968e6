"""CoreSet: greedy k-centre, lazily, with the picks that all distances at every step would give."""

import math

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import blobs, network
from reference import features as reference
from torch.testing import assert_close

from balent import CoreSet, Draws, Learner, MCDropout, acquire
from balent.geometry.distances import nearest


def pick(h, k, labelled=None, **settings):
    """Labelled points are further rows, which are no part of the pool."""
    rows = h if labelled is None else torch.cat([h, labelled])
    sampled = Draws(torch.full((len(rows), 1, 2), 0.5), features=rows)
    known = None if labelled is None else np.arange(len(h), len(rows))
    return acquire(sampled, np.arange(len(h)), k, CoreSet(**settings), labelled=known)


def assert_same(picks, expected):
    chosen, distances = expected
    assert picks.indices.tolist() == chosen
    assert_close(picks.scores, f64(distances), rtol=1e-5, atol=1e-12)


def test_points_on_a_line_by_hand():
    """The mean of 0, 1, 2, 3, 10 is 3.2: first 3, then 10 (7 away), then 0 (3 away), then 1 and 2 (1 away)."""
    picks = pick(f64([[0.0], [1.0], [2.0], [3.0], [10.0]]), 5)
    assert picks.indices.tolist() == [3, 4, 0, 1, 2]
    assert picks.scores.tolist() == [math.inf, 7.0, 3.0, 1.0, 1.0]


def test_labelled_points_are_centres_from_the_start():
    """With 9 and 1 labelled, 5 is 4 away from either, and nothing else is farther than 1."""
    picks = pick(f64([[0.0], [5.0], [2.0], [9.0]]), 3, labelled=f64([[9.0], [1.0]]))
    assert picks.indices.tolist() == [1, 0, 2]
    assert picks.scores.tolist() == [4.0, 1.0, 1.0]


@pytest.mark.parametrize("width", [1, 3, 40])
@pytest.mark.parametrize("labels", [0, 1, 17])
def test_picks_are_those_of_all_distances(width, labels):
    h, labelled = normal(300, width), normal(labels, width, seed=1)
    assert_same(pick(h, 60, labelled), reference.farthest_first(h, 60, labelled))


def test_clusters_copies_and_outliers():
    """Where bounds are far off: each centre takes a whole cluster away."""
    h = 100 * normal(12, 4, seed=2).repeat_interleave(40, 0) + normal(480, 4)
    h = torch.cat([h, h[::7], 1e4 * normal(3, 4, seed=3)])
    assert_same(pick(h, 200), reference.farthest_first(h, 200))


@pytest.mark.parametrize("k", [1, 20, 49])
def test_ties_go_to_the_smaller_position(k):
    """A grid of whole numbers, whose distances float32 has exactly: most of them tie."""
    side = torch.arange(7, dtype=torch.float64)
    h = torch.cartesian_prod(side, side)
    assert_same(pick(h, k), reference.farthest_first(h, k))


@pytest.fixture
def compared(monkeypatch):
    """How many distances each call took, while the test runs."""
    counts = []

    def counted(points, centres):
        counts.append(len(points) * len(centres))
        return nearest(points, centres)

    monkeypatch.setattr("balent.geometry.k_centre.nearest", counted)
    return counts


def test_copies_come_last_by_position_and_no_point_twice():
    h = f64([[0.0], [4.0], [0.0], [4.0], [1.0], [0.0]])
    picks = pick(h, 6)
    assert picks.indices.tolist() == [4, 1, 0, 2, 3, 5]
    assert picks.scores.tolist() == [math.inf, 3.0, 1.0, 0.0, 0.0, 0.0]


def test_where_only_copies_are_left_nothing_is_compared(compared):
    """Once every distance is 0, none can shrink: 400 more copies cost no comparison."""
    h = normal(5, 3).repeat(100, 1)
    picks = pick(h, 405)
    assert len(set(picks.indices.tolist())) == 405
    assert sum(compared) < 5000  # of 500 · 405


def test_copies_of_labelled_points_come_last():
    h = f64([[3.0], [3.0], [0.0], [5.0]])
    assert pick(h, 4, labelled=f64([[3.0]])).indices.tolist() == [2, 3, 0, 1]


def test_few_points_are_compared_with_new_centres(compared):
    """Without clusters most bounds stay below the farthest distance: laziness saves most of N·K comparisons."""
    pick(normal(20_000, 64), 100)
    assert sum(compared) < 0.3 * 20_000 * 100


def test_rows_in_a_file_give_the_same_picks():
    h = normal(500, 9)
    assert_same(pick(h, 50, memory=0), reference.farthest_first(h, 50))


# ── what is labelled ─────────────────────────────────────────────────────────────────────────────


def test_acquire_tells_what_is_labelled():
    h = f64([[0.0], [5.0], [2.0], [9.0], [9.0], [1.0]])
    sampled = Draws(torch.full((6, 1, 2), 0.5), features=h)
    picks = acquire(sampled, np.arange(4), k=3, strategy="core_set", labelled=np.array([4, 5]))
    assert picks.indices.tolist() == [1, 0, 2]


def test_strategies_that_do_not_look_at_labelled_points_are_not_disturbed():
    sampled = Draws(probabilities(30, 5, 3))
    one, other = (acquire(sampled, np.arange(30), 5, "bald", labelled=known) for known in (None, np.array([1])))
    assert one.indices.tolist() == other.indices.tolist()


def test_labelled_points_cannot_come_as_a_stream():
    with pytest.raises(TypeError, match=r"labelled must have a length, .* but it is a stream"):
        acquire(Draws(probabilities(9, 5, 3)), np.arange(9), 2, "core_set", labelled=iter([[1]]))


def test_a_bad_labelled_point_is_named():
    h = normal(5, 2)
    with pytest.raises(ValueError, match="but one is inf at labelled point 1; look at the model's features"):
        pick(h, 2, labelled=f64([[0.0, 1.0], [math.inf, 1.0]]))


def test_the_learner_keeps_away_from_what_it_was_told_and_from_what_is_pending():
    """Its picks are those of the greedy cover that begins at all told and pending points."""
    x, y = blobs(40)
    learner = Learner(MCDropout(network(), epochs=2), x, "core_set", draws=4, start=[0, 1, 2, 20])
    learner.ask(3)
    learner.tell([0, 1, 2], y[:3])
    pending = learner.ask(1).indices.tolist()
    assert pending == [20]
    picks = learner.ask(5)
    h = learner.sampled().features(x).double()
    known = [0, 1, 2, *pending]
    left = [i for i in range(40) if i not in known]
    chosen, distances = reference.farthest_first(h[left], 5, h[known])
    assert_same(picks, ([left[i] for i in chosen], distances))


def test_progress_counts_the_pool_and_not_what_is_labelled():
    seen = []
    sampled = Draws(torch.full((3000, 1, 2), 0.5), features=normal(3000, 4))
    pool, known = np.arange(2500), np.arange(2500, 3000)
    acquire(sampled, pool, 5, "core_set", labelled=known, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2500, 2500)
    assert len(seen) > 2
