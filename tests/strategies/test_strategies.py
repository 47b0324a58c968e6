"""Which points are picked: ties, streams, and the distribution of what is random."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from helpers.examples import f64, probabilities
from helpers.statistics import p_value
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from balent import MEASURES, STRATEGIES, Draws, Moments, Power, TopK, Uniform, acquire
from balent.maths.facts import facts
from balent.maths.measures import bald, balent, balentacq, entropy, random
from balent.strategies import Best, strategy
from balent.strategies.power import log_key
from balent.types import Strategy


def pick(chosen, p, k, seed=0):
    return acquire(Draws(p), np.arange(len(p)), k, chosen, seed=seed)


# ── the best of a stream ─────────────────────────────────────────────────────────────────────────


def best_of(scores, k, cuts=()):
    best = Best(k)
    for start, stop in pairwise([0, *sorted(cuts), len(scores)]):
        best.add(f64(scores[start:stop]), torch.arange(start, stop))
    return best.positions.tolist(), best.scores.tolist()


def test_the_best_come_first_and_ties_by_position():
    assert best_of([1.0, 3.0, 2.0, 3.0, 1.0], 4) == ([1, 3, 2, 0], [3.0, 3.0, 2.0, 1.0])


def test_infinite_scores_have_their_place():
    assert best_of([1.0, math.inf, -math.inf, math.inf], 4)[0] == [1, 3, 0, 2]


def test_a_nan_is_no_score():
    """Authors' code: a NaN is ranked first by topk, or replaced by a number."""
    best = Best(2)
    best.add(f64([1.0]), torch.tensor([10]))
    with pytest.raises(ValueError, match="a score must be a number, but is NaN at point 12; look at the measure"):
        best.add(f64([1.0, math.nan]), torch.tensor([11, 12]))


few = st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 2.0, math.inf])  # so few that ties abound


@given(st.lists(few, min_size=1, max_size=30), st.integers(1, 30), st.sets(st.integers(0, 30), max_size=5))
def test_the_best_of_a_stream_are_the_best_of_all(scores, k, cuts):
    k = min(k, len(scores))
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    assert best_of(scores, k, [c for c in cuts if c < len(scores)]) == (order, [scores[i] for i in order])


@given(st.lists(few, min_size=4, max_size=20), st.integers(1, 4))
def test_blocks_may_come_in_any_order(scores, k):
    forwards, backwards = Best(k), Best(k)
    blocks = [torch.arange(i, min(i + 3, len(scores))) for i in range(0, len(scores), 3)]
    for positions in blocks:
        forwards.add(f64(scores)[positions], positions)
    for positions in blocks[::-1]:
        backwards.add(f64(scores)[positions.flip(0)], positions.flip(0))
    assert torch.equal(forwards.positions, backwards.positions)


def test_memory_is_for_k_points():
    best = Best(3)
    for i in range(50):
        best.add(torch.full((100,), float(i), dtype=torch.float64), torch.arange(i * 100, i * 100 + 100))
        assert len(best.scores) == len(best.positions) == 3
    assert best.positions.tolist() == [4900, 4901, 4902]


# ── top k ────────────────────────────────────────────────────────────────────────────────────────


def test_the_top_k_are_those_of_the_largest_scores():
    p = probabilities(100, 10, 3)
    picks = pick(TopK(bald), p, 7)
    scores, indices = bald(Moments.of(p)).sort(descending=True, stable=True)
    assert torch.equal(picks.indices, indices[:7])
    assert torch.equal(picks.scores, scores[:7])


def test_identical_points_are_picked_by_position():
    p = probabilities(1, 10, 3).expand(20, 10, 3)
    assert pick(TopK(balentacq), p, 4).indices.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("block", [1, 3, 64, 1000])
@pytest.mark.parametrize("chosen", [TopK(balentacq), TopK(random), Power(bald), Uniform()])
def test_picks_do_not_depend_on_the_size_of_blocks(chosen, block, monkeypatch):
    """Authors' code: masks are redrawn for each scoring batch, so that scores depend on its size."""
    p = probabilities(100, 8, 3)
    whole = pick(chosen, p, 10)
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", block * 8 * 3)
    picks = pick(chosen, p, 10)
    assert torch.equal(picks.indices, whole.indices)
    assert torch.equal(picks.scores, whole.scores)


def test_a_sampled_that_says_nothing_of_blocks_is_read_a_thousand_points_at_a_time():
    """Any Sampled will do: here one that has no favourite size of block, over a list."""

    class Doubt:
        def __init__(self):
            self.sizes = []

        def __call__(self, batch, positions=None):
            doubt = torch.as_tensor(batch, dtype=torch.float64)
            return torch.stack([1 - doubt, doubt], -1)[:, None]

        def moments(self, batch, positions=None):
            self.sizes.append(len(batch))
            return Moments.of(self(batch))

    doubtful = [0.0] * 1500 + [0.5, 0.4] + [0.1] * 800
    sampled = Doubt()
    picks = acquire(sampled, doubtful, 3, TopK(entropy))
    assert picks.indices.tolist() == [1500, 1501, 1502]
    assert sampled.sizes == [2, 1024, 1024, 254]  # two points tell how many classes there are


@pytest.mark.parametrize("chosen", [TopK(bald), Power(bald), Uniform()])
@pytest.mark.parametrize("k", [0, -1, 6])
def test_every_strategy_refuses_a_k_that_the_pool_cannot_serve(chosen, k):
    with pytest.raises(ValueError, match=f"k must be between 1 and the 5 points of the pool, but is {k}"):
        pick(chosen, probabilities(5, 3, 2), k)


@pytest.mark.parametrize("chosen", [TopK(bald), Power(bald), Uniform()])
def test_every_strategy_is_a_strategy(chosen):
    assert isinstance(chosen, Strategy)


# ── power ────────────────────────────────────────────────────────────────────────────────────────


def coins(*biases):
    """Points whose two draws are (b, 1 - b) and (1 - b, b): the more biased, the larger BALD."""
    return f64([[[b, 1 - b], [1 - b, b]] for b in biases])


def counts_of_first_picks(chosen, p, runs=1000):
    counts = [0] * len(p)
    for seed in range(runs):
        counts[int(pick(chosen, p, 1, seed).indices)] += 1
    return counts


def test_power_bald_picks_in_proportion_to_bald():
    """Gumbel noise on log BALD. The authors' Pareto noise picks uniformly, which the same test must refuse.

    Pearson's test on 1,000 picks at an error rate of 10⁻⁴: one seed in 10,000 fails.
    """
    p = coins(0.6, 0.75, 0.9, 0.97)
    shares = bald(Moments.of(p)) / bald(Moments.of(p)).sum()
    counts = counts_of_first_picks(STRATEGIES["power_bald"], p)
    assert p_value(counts, shares.tolist()) > 1e-4
    assert p_value(counts, [0.25] * 4) < 1e-12


def test_the_power_is_an_exponent():
    p = coins(0.7, 0.8, 0.9)
    shares = bald(Moments.of(p)).square() / bald(Moments.of(p)).square().sum()
    assert p_value(counts_of_first_picks(Power(bald, beta=2.0), p), shares.tolist()) > 1e-4


def test_a_power_of_zero_picks_uniformly_even_what_has_no_score():
    """0 · log 0 is NaN: a point whose draws agree has BALD 0, and is as likely as any other."""
    p = coins(0.5, 0.7, 0.9)
    assert bald(Moments.of(p))[0] == 0
    assert p_value(counts_of_first_picks(Power(bald, beta=0.0), p), [1 / 3] * 3) > 1e-4


def test_picks_are_without_replacement_in_proportion_to_what_is_left():
    """Of two picks, first i then j: share_i · share_j / (1 - share_i)."""
    p = coins(0.7, 0.8, 0.9)
    share = (bald(Moments.of(p)) / bald(Moments.of(p)).sum()).tolist()
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    came = [tuple(pick(Power(bald), p, 2, seed).indices.tolist()) for seed in range(1000)]
    expected = [share[i] * share[j] / (1 - share[i]) for i, j in pairs]
    assert p_value([came.count(pair) for pair in pairs], expected) > 1e-4


def test_a_large_power_picks_the_top_k():
    p = probabilities(60, 10, 3)
    assert pick(Power(bald, beta=1e6), p, 10).indices.tolist() == pick(TopK(bald), p, 10).indices.tolist()


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "random"])
def test_a_large_power_of_any_measure_picks_its_top_k(name):
    """So the key has the order of the scores, whatever their sign."""
    p = probabilities(60, 10, 3)
    powered, top = (pick(f(MEASURES[name]), p, 10).indices.tolist() for f in (lambda m: Power(m, 1e9), TopK))
    assert powered == top


def test_a_score_of_zero_comes_last():
    picks = pick(Power(bald), coins(0.5, 0.9, 0.5, 0.6), 4)
    assert set(picks.indices.tolist()[:2]) == {1, 3}
    assert picks.scores.tolist()[2:] == [-math.inf, -math.inf]


def test_the_key_of_balentacq_is_balent_above_zero_and_one_less_balent_below():
    """-log key, with key = BalEnt = 1/4 → score 4; key = 1 - BalEnt = 3 → score -2; +∞ first."""
    keys = log_key(balentacq, f64([4.0, -2.0, math.inf]))
    assert keys.tolist() == pytest.approx([math.log(4), -math.log(3), math.inf])


# ── what is random is an argument ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["random", "power_bald", "power:random", "power:balentacq"])
def test_random_strategies_are_functions_of_their_seed(name):
    p = probabilities(200, 6, 3)
    one, again, other = (pick(strategy(name), p, 10, seed).indices.tolist() for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_the_random_measure_as_a_strategy_is_a_function_of_its_seed():
    one, again, other = (pick(TopK(random), probabilities(200, 6, 3), 10, s).indices.tolist() for s in (1, 1, 2))
    assert one == again
    assert one != other


def test_uniform_picks_every_point_as_often_as_any_other():
    assert p_value(counts_of_first_picks(Uniform(), coins(0.5, 0.9, 0.99, 0.6)), [0.25] * 4) > 1e-4


def test_uniform_looks_at_no_more_than_the_two_points_that_are_tried():
    """Half a second for a pool of 10⁸ points instead of a night; `acquire` tries two points for every strategy."""
    seen = []

    class Counting:
        def __call__(self, batch, positions=None):
            return torch.full((len(batch), 2, 2), 0.5)

        def moments(self, batch, positions=None):
            seen.extend(positions.tolist())
            return Moments.of(self(batch))

    assert len(acquire(Counting(), range(9), 4, Uniform()).indices) == 4
    assert seen == [0, 1]


# ── names ────────────────────────────────────────────────────────────────────────────────────────


def test_every_measure_is_a_strategy_by_its_name():
    for name, measure in MEASURES.items():
        assert strategy(name) == (Uniform() if name == "random" else TopK(measure))
    assert strategy("power_bald") == Power(bald)
    assert strategy("power:entropy") == Power(entropy)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("balentaqc", r"there is no strategy 'balentaqc'; did you mean .*balentacq"),
        ("powr_bald", r"there is no strategy 'powr_bald'; did you mean power_bald"),
        ("power:entropi", r"there is no measure 'entropi'; did you mean entropy"),
        ("powder:entropy", r"there is no kind of strategy 'powder', and no module of that name; did you mean power"),
        ("xyz", r"there is no strategy 'xyz'; choose from aleatoric, auto, badge, bald, "),
    ],
)
def test_unknown_names_are_answered_with_the_nearest_known_ones(name, words):
    with pytest.raises(ValueError, match=words):
        strategy(name)


def test_settings_in_brackets_are_those_of_the_strategy_and_of_its_measure():
    assert strategy("power:bald(beta=8.0)") == Power(bald, beta=8.0)
    m = Moments.of(probabilities(20, 9, 3))
    assert_close(strategy("balentacq(precision=-1)").measure(m), balentacq(m, precision=-1.0))
    jittered = strategy("jitter:balentacq(precision=2)")
    assert_close(facts(jittered.measure).balance(m), balent(m, precision=2.0))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("balentacq(precison=2)", "there is no setting of balentacq 'precison'; did you mean precision"),
        ("power:bald(2)", r"as in power:bald\(beta=8\), but 'power:bald\(2\)' was given"),
        ("bald(beta=1", "settings stand in brackets"),
        ("power:bald(beta=__import__('os'))", "settings stand in brackets"),
    ],
)
def test_settings_that_cannot_be_are_refused(name, words):
    with pytest.raises(ValueError, match=words):
        strategy(name)
