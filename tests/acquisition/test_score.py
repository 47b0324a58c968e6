"""Scores and picks of probabilities from anywhere, and how far they can be trusted."""

import math

import numpy as np
import pytest
import torch
from helpers.examples import draws, f64, logits, normal, probabilities
from hypothesis import given
from torch.testing import assert_close

import balent
from balent import MEASURES, Moments, Picks
from balent.maths.measures import balent as balance
from balent.maths.measures import random
from balent.strategies.top_k import FEWEST

FUNCTIONS = [name for name in MEASURES if name != "random"]


# ── score ────────────────────────────────────────────────────────────────────────────────────────


def test_two_points_by_hand():
    """BALD of (.9, .1) and (.5, .5): H(.7, .3) - (H(.9, .1) + log 2) / 2; draws that agree have none."""

    def h(p):
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    scores = balent.score(f64([[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.7, 0.3]]]), "bald")
    assert_close(scores, f64([h(0.7) - (h(0.9) + h(0.5)) / 2, 0.0]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_score_is_the_measure_of_the_moments(name):
    p = probabilities(30, 12, 4)
    assert torch.equal(balent.score(p, name), MEASURES[name](Moments.of(p)))


def test_balentacq_is_what_is_meant_when_nothing_is_said():
    p = probabilities(30, 12, 4)
    assert torch.equal(balent.score(p), balent.score(p, "balentacq"))
    assert balent.select(p).indices.tolist() == [int(balent.score(p).argmax())]


def test_a_measure_may_be_a_function_of_your_own():
    p = probabilities(30, 12, 4)
    assert_close(balent.score(p, lambda m: m.mean[:, 0]), p.mean(1)[:, 0])
    assert_close(balent.score(p, lambda m: balance(m, precision=3.0)), balance(Moments.of(p), 3.0))


def test_logits_score_as_their_softmax():
    z = logits(30, 12, 4)
    assert_close(balent.score(z, "bald", logits=True), balent.score(z.softmax(-1), "bald"))
    assert_close(balent.select(z, "bald", 5, logits=True).indices, balent.select(z.softmax(-1), "bald", 5).indices)


@given(draws(min_draws=2))
def test_the_answer_is_of_the_kind_of_the_question(p):
    of_torch, of_numpy = balent.score(p, "bald"), balent.score(p.numpy(), "bald")
    assert isinstance(of_torch, torch.Tensor)
    assert isinstance(of_numpy, np.ndarray)
    assert of_numpy.dtype == np.float64
    assert np.array_equal(of_torch.numpy(), of_numpy)
    picks = balent.select(p.numpy(), "bald", 1)
    assert isinstance(picks.indices, np.ndarray)
    assert isinstance(picks.scores, np.ndarray)


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("name", MEASURES)
def test_scores_do_not_depend_on_the_size_of_blocks(name, block, monkeypatch):
    """Authors' code: masks are redrawn for each scoring batch, so that scores depend on its size."""
    p = probabilities(100, 6, 3)
    whole, picks = balent.score(p, name), balent.select(p, name, 10)
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", block * 6 * 3)
    assert torch.equal(balent.score(p, name), whole)
    in_blocks = balent.select(p, name, 10)
    assert torch.equal(in_blocks.indices, picks.indices)
    assert in_blocks.stability == picks.stability


def test_random_scores_are_those_of_the_seed():
    p = probabilities(30, 4, 2)
    one, again, other = (balent.score(p, "random", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


# ── select ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", FUNCTIONS)
def test_picks_are_the_best_scores_first_and_ties_by_position(name):
    p = probabilities(40, 8, 3)
    p[30:] = p[:10]
    scores = balent.score(p, name)
    picks = balent.select(p, name, k=40)
    assert_close(picks.scores, scores.sort(descending=True).values, rtol=1e-9, atol=1e-12)
    place = {int(i): rank for rank, i in enumerate(picks.indices)}
    assert all(place[i] < place[i + 30] for i in range(10))


def test_picks_unpack_as_indices_and_scores():
    indices, scores = balent.select(probabilities(10, 8, 3), "bald", 3)
    assert len(indices) == len(scores) == 3
    assert Picks(indices, scores).stability is None


@pytest.mark.parametrize("measure", ["random", random, "power_bald", "power:balentacq"])
def test_random_picks_are_those_of_the_seed(measure):
    p = probabilities(200, 8, 3)
    one, again, other = (balent.select(p, measure, 10, seed=seed).indices.tolist() for seed in (0, 0, 1))
    assert one == again
    assert one != other


def test_every_pick_is_made_once():
    p = probabilities(1, 8, 3).expand(50, 8, 3)
    for name in ("balentacq", "random", "power_bald"):
        assert sorted(balent.select(p, name, 50).indices.tolist()) == list(range(50))


# ── stability ────────────────────────────────────────────────────────────────────────────────────


def test_identical_draws_agree_on_everything():
    """Both halves are the same draws: all picks are shared."""
    p = probabilities(60, 1, 3).expand(60, 8, 3)
    assert balent.select(p, "balentacq", 9).stability == 1


def test_halves_that_say_opposite_things_agree_on_nothing():
    """Even draws find points 0 to 4 doubtful, odd ones points 5 to 9: the halves are draws 0, 2, … and 1, 3, …"""
    sure, unsure = [0.99, 0.01], [0.5, 0.5]
    even = f64([unsure] * 5 + [sure] * 5)
    p = torch.stack([even, even.flip(0)] * 4, 1)
    assert balent.select(p, "aleatoric", 5).stability == 0


def test_stability_is_the_share_of_their_top_k_that_two_halves_of_the_draws_have_in_common():
    p = probabilities(60, 10, 3)
    halves = [set(balent.select(half, "balentacq", 12).indices.tolist()) for half in (p[:, ::2], p[:, 1::2])]
    shared = len(halves[0] & halves[1]) / 12
    assert 0 < shared < 1
    assert balent.select(p, "balentacq", 12).stability == shared


@pytest.mark.parametrize("name", ["random", "power_bald"])
def test_what_is_random_has_no_stability(name):
    assert balent.select(probabilities(20, 8, 3), name, 5).stability is None


def test_too_few_draws_have_no_stability():
    """With two draws, halves of one draw each said 100 %: every BALD is 0 there, and ties agree."""
    assert balent.select(probabilities(20, 1, 3), "entropy", 5).stability is None
    assert balent.select(probabilities(20, FEWEST - 1, 3), "balentacq", 5).stability is None
    assert balent.select(probabilities(20, FEWEST, 3), "balentacq", 5).stability is not None


def test_the_whole_pool_is_a_stable_choice():
    assert balent.select(probabilities(20, 8, 3), "balentacq", 20).stability == 1


# ── standard errors ──────────────────────────────────────────────────────────────────────────────


def test_the_error_of_a_mean_is_the_textbook_one():
    """For E P the jackknife over 10 groups of one draw each is s/√n, with the unbiased s."""
    p = probabilities(5, 10, 3)
    scores, errors = balent.score(p, lambda m: m.mean[:, 0], with_error=True)
    assert_close(scores, p[:, :, 0].mean(1))
    assert_close(errors, p[:, :, 0].std(1) / 10**0.5)


@pytest.mark.parametrize("name", ["entropy", "bald", "balent", "mjent", "mean_sd", "aleatoric", "beta_bald"])
def test_errors_are_the_spread_over_independent_replicates(name):
    """600 points whose 100 draws have one and the same distribution: their scores spread as the errors say.

    The spread of 600 scores is known to 1/√1200 = 2.9 %, the mean of 600 squared errors, each with 9 degrees of
    freedom, to √(2/9/600)/2 = 1 %. The jackknife over groups of a tenth of the draws is biased by order 1/10 of the
    curvature. 15 % is over four sigma of what chance can do, and a wrong factor (√10, 9/10 under the root) is more.
    """
    p = (f64([1.0, 0.0, -1.0]) + 0.7 * normal(600, 100, 3, seed=4)).softmax(-1)
    scores, errors = balent.score(p, name, with_error=True)
    assert float(errors.square().mean().sqrt() / scores.std()) == pytest.approx(1, abs=0.15)


def test_draws_that_all_agree_leave_no_error():
    p = probabilities(10, 1, 3).expand(10, 20, 3)
    for name in ("entropy", "bald", "aleatoric"):
        assert_close(
            balent.score(p, name, with_error=True)[1], torch.zeros(10, dtype=torch.float64), rtol=0, atol=1e-14
        )


def test_scores_with_errors_are_the_scores():
    p = probabilities(40, 23, 3)
    for name in FUNCTIONS:
        scores, errors = balent.score(p, name, with_error=True)
        assert_close(scores, balent.score(p, name), rtol=1e-7, atol=1e-10)
        assert scores.shape == errors.shape == (40,)
        assert (errors >= 0).all()


def test_random_scores_have_no_error():
    p = probabilities(40, 23, 3)
    scores, errors = balent.score(p, "random", with_error=True)
    assert torch.equal(scores, balent.score(p, "random"))
    assert (errors == 0).all()


def test_errors_are_arrays_of_numpy_for_an_array_of_numpy():
    scores, errors = balent.score(probabilities(4, 5, 3).numpy(), with_error=True)
    assert isinstance(scores, np.ndarray)
    assert isinstance(errors, np.ndarray)


def test_two_draws_are_enough_for_an_error_and_one_is_not():
    assert balent.score(probabilities(4, 2, 3), "bald", with_error=True)[1].isfinite().all()
    with pytest.raises(ValueError, match="error needs at least 2 draws, but the number of draws is 1; use more"):
        balent.score(probabilities(4, 1, 3), "bald", with_error=True)


# ── Draws: a Sampled over an array ───────────────────────────────────────────────────────────────


def test_draws_are_functions_of_positions():
    p = probabilities(9, 4, 3)
    sampled = balent.Draws(p)
    assert len(sampled) == 9
    assert torch.equal(sampled([5, 1, 1]), p[[5, 1, 1]])
    assert_close(sampled.moments(np.arange(2, 6)).mean, p[2:6].mean(1))
    assert_close(sampled.moments([5, 1, 1]).mean, p[[5, 1, 1]].mean(1))


def test_draws_of_logits_are_probabilities():
    z = logits(9, 4, 3)
    assert_close(balent.Draws(z, logits=True)([3]), z[[3]].softmax(-1))


def test_draws_in_order_are_a_view():
    p = probabilities(9, 4, 3)
    assert balent.Draws(p)(np.arange(3, 7)).data_ptr() == p[3:].data_ptr()


def test_features_are_given_with_the_draws_or_asked_for():
    p, features = probabilities(9, 4, 3), normal(9, 2)
    assert torch.equal(balent.Draws(p, features).features([2, 0]), features[[2, 0]])
    with pytest.raises(ValueError, match=r"has none; pass Draws\(array, features="):
        balent.Draws(p).features([0])
