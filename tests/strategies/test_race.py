"""Who can still be among the k best, and what it costs to drop the others."""

import math

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.in_parts import InParts
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from balent import Moments, Race, acquire
from balent.maths.facts import facts
from balent.maths.measures import MEASURES, bald, balent, balentacq, entropy
from balent.strategies.race import FIRST, TAILS, chances, smoothed, still_in


def race(measure, p, k, **settings):
    sampled = InParts(p)
    picks = acquire(sampled, np.arange(len(p)), k, Race(measure, **settings))
    return picks, sampled.looked[0]


def best(measure, p, k):
    return measure(Moments.of(p)).argsort(descending=True, stable=True)[:k]


# ── chances ──────────────────────────────────────────────────────────────────────────────────────


def test_two_equal_points_have_equal_chances_of_one_place():
    assert_close(chances(bald, f64([0.3, 0.3, -9.0]), f64([0.1, 0.1, 0.1]), 1), f64([0.5, 0.5, 0.0]))


def test_the_chance_is_the_normal_probability_of_passing_the_border_by_hand():
    """Values 1 and 0, errors 1, one place: the border is ½ by symmetry, so the chances are Φ(½) and Φ(-½)."""
    above = 0.5 * (1 + math.erf(0.5 / math.sqrt(2)))
    assert_close(chances(bald, f64([1.0, 0.0]), f64([1.0, 1.0]), 1), f64([above, 1 - above]))


def test_the_region_of_balent_is_two_sided():
    """The best is the smallest of those above zero: .2 here, and not what is farther up or below."""
    chance = chances(balentacq, f64([0.9, 0.2, -0.3, 0.6]), f64([0.01] * 4), 1)
    assert_close(chance, f64([0.0, 1.0, 0.0, 0.0]), rtol=0, atol=1e-6)


def test_a_point_at_zero_may_be_the_best_or_among_the_worst():
    """Half of its distribution is below zero, where it is behind all that are above."""
    chance = chances(balentacq, f64([0.0, 0.5, 0.6, 0.7]), f64([0.1] * 4), 1)
    assert_close(chance[0], f64(0.5), rtol=0, atol=0.01)


def test_where_few_are_above_zero_the_next_best_are_just_below():
    """Bug: only points above zero had chances, and the race ended with fewer than k."""
    chance = chances(balentacq, f64([0.5, -0.1, -0.2, -0.9]), f64([0.001] * 4), 3)
    assert_close(chance, f64([1.0, 1.0, 1.0, 0.0]), rtol=0, atol=1e-6)


values = st.lists(st.floats(-3, 3), min_size=3, max_size=30)


@pytest.mark.parametrize("measure", [bald, balentacq])
@given(values=values, share=st.floats(0.05, 0.95), error=st.floats(1e-3, 2))
def test_chances_are_probabilities_that_add_up_to_k(measure, values, share, error):
    k = max(1, int(share * len(values)))
    chance = chances(measure, f64(values), torch.full((len(values),), error, dtype=torch.float64), k)
    assert ((chance >= -1e-12) & (chance <= 1 + 1e-12)).all()
    assert abs(float(chance.sum()) - k) < 1e-6


@pytest.mark.parametrize("measure", [bald, balentacq])
def test_certain_points_are_in_or_out(measure):
    """Errors of zero: the k best by rank, with chance 1."""
    value = f64([0.4, 0.1, -0.2, 0.3, -0.5])
    rank = value if measure is bald else torch.where(value >= 0, 1 / value, value)
    chance = chances(measure, value, torch.zeros(5, dtype=torch.float64), 2)
    assert_close(chance.round(), torch.zeros(5, dtype=torch.float64).scatter(0, rank.argsort(descending=True)[:2], 1.0))


def test_chances_are_frequencies():
    """How often each point is among the 5 best of values redrawn 20,000 times around those seen.

    `chances` holds the border fixed, which in truth moves a little: it may be off by .05, sampling by 4.9 · .0035.
    """
    value, error = normal(60), 0.3 * torch.ones(60, dtype=torch.float64)
    drawn = value + error * normal(20_000, 60, seed=1)
    often = torch.zeros(60, dtype=torch.float64)
    for row in drawn.topk(5, 1).indices.T:
        often += torch.bincount(row, minlength=60) / 20_000
    assert_close(chances(bald, value, error, 5), often, rtol=0, atol=0.05 + 4.9 * 0.0035)


# ── who stays ────────────────────────────────────────────────────────────────────────────────────


@given(values=values, share=st.floats(0.05, 0.95), affordable=st.floats(0, 2))
def test_no_more_is_lost_than_affordable_and_k_points_stay(values, share, affordable):
    k = max(1, int(share * len(values)))
    chance = chances(bald, f64(values), torch.full((len(values),), 0.3, dtype=torch.float64), k)
    keep, lost = still_in(chance, k, affordable)
    assert lost <= affordable + 1e-9
    assert_close(lost, float(chance[~keep].sum()))
    assert int(keep.sum()) >= k
    assert chance[keep].min() >= (chance[~keep].max() if (~keep).any() else 0)


def test_a_certain_winner_stays():
    keep, lost = still_in(f64([0.0, 1.0, 0.02, 0.98]), 2, 0.03)
    assert keep.tolist() == [False, True, False, True]
    assert lost == 0.02


def test_errors_of_like_points_are_shared():
    """Root mean squares: 40 points in two bins of 20; and a little wider."""
    value = torch.arange(40, dtype=torch.float64)
    difference = torch.where(value < 20, 3.0, 4.0).double()
    difference[:2] = f64([0.0, 3 * 2**0.5])
    assert_close(smoothed(torch.stack([value, difference], 1))[1] / TAILS, torch.where(value < 20, 3.0, 4.0).double())


# ── the race ─────────────────────────────────────────────────────────────────────────────────────


def test_points_far_from_the_best_are_not_looked_at_again():
    """2 of 400 coins are of unknown bias; the others have one draw like another."""
    p = f64([0.9, 0.1]).expand(400, 100, 2).clone()
    p[[7, 300], ::2] = f64([0.1, 0.9])
    picks, looked = race(bald, p, 2)
    assert picks.indices.tolist() == [7, 300]
    assert_close(picks.scores, bald(Moments.of(p[[7, 300]])))
    assert looked < 400 * FIRST + 40 * 100
    assert picks.confidence > 0.8


@pytest.mark.parametrize("measure", [bald, balentacq, entropy])
def test_the_draws_that_were_made_are_those_that_are_told(measure):
    p = probabilities(500, 200, 4)
    picks, looked = race(measure, p, 10)
    probed = 2 * 200 + 3  # two points tell the engine how large blocks may be, one draw each later stage
    assert picks.draws == pytest.approx((looked - probed) / 500)
    assert looked < 500 * 200
    assert len(picks.indices) == 10


@pytest.mark.parametrize("measure", [bald, balentacq, entropy])
def test_scores_of_the_picks_are_those_of_all_draws(measure):
    p = probabilities(300, 100, 3)
    picks, _ = race(measure, p, 10)
    assert_close(picks.scores, measure(Moments.of(p[picks.indices])))


@pytest.mark.parametrize("measure", [bald, balentacq, entropy], ids=lambda f: f.__name__)
def test_the_race_finds_what_all_draws_find_as_often_as_it_says(measure):
    """The mean recall over 30 pools is at least the mean of the stated confidence, less 4.9 standard errors.

    So a race whose confidence is right on average fails once in a million. Bug: recall was .74 where .92 was stated,
    as points were dropped after 6 draws.
    """
    recall, confidence = [], []
    for seed in range(30):
        p = probabilities(400, 150, 4, seed=10 * seed)
        picks, _ = race(measure, p, 20)
        recall.append(float(torch.isin(picks.indices, best(measure, p, 20)).double().mean()))
        confidence.append(picks.confidence)
    recall, confidence = f64(recall), f64(confidence)
    assert recall.mean() > confidence.mean() - 4.9 * recall.std() / 30**0.5
    assert recall.mean() > 0.75


@pytest.mark.parametrize("measure", [bald, balentacq])
@pytest.mark.parametrize("n", [4, 5, 8, 20, 25, 30])
@pytest.mark.parametrize("k", [1, 30])
def test_few_draws_and_many_picks_are_served(measure, n, k):
    """Bug: at fewer than 25 draws a stage had none at all; and 3 % of 30 picks could leave 29 points."""
    p = probabilities(30, n, 3)
    picks, _ = race(measure, p, k)
    assert len(set(picks.indices.tolist())) == k
    if k == 30:
        assert_close(picks.indices, best(measure, p, 30))


def test_where_no_point_has_a_balent_above_zero_there_are_still_k():
    p = (f64([0.2, -0.1]) + 0.01 * normal(200, 100, 2)).softmax(-1)
    assert (balent(Moments.of(p)) < 0).all()
    picks, _ = race(balentacq, p, 20)
    assert len(picks.indices) == 20


def test_fewer_draws_than_can_differ_are_refused():
    with pytest.raises(ValueError, match="needs at least 4 draws, but the number of draws is 3"):
        race(bald, probabilities(30, 3, 3), 2)


def test_every_balance_is_raced_by_what_passes_zero():
    jump = {name for name, f in MEASURES.items() if facts(f).balance}
    assert jump == {name for name in MEASURES if name.removesuffix("_released").endswith("acq")}
