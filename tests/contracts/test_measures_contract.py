"""What every entry of MEASURES obeys, also tomorrow's: a new measure is tested by standing in the table."""

import math
from functools import partial

import pytest
import torch
from helpers.examples import EDGES, draws, f64, logits, probabilities
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator
from torch.testing import assert_close

import balent
from balent import MEASURES, STRATEGIES, Draws, Moments, acquire
from balent.acquisition.ranking import Job
from balent.data.probabilities import Table
from balent.maths import measures
from balent.maths.facts import Facts, declares, facts
from balent.strategies.power import log_key

# The random measure is no function of the draws: it obeys shape, dtype and range, and nothing else.
FUNCTIONS = {name: f for name, f in MEASURES.items() if name != "random"}
EVERY = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
EVERY_FUNCTION = pytest.mark.parametrize("measure", FUNCTIONS.values(), ids=FUNCTIONS)
# +inf where BalEnt (or MJEnt, or the released formula's denominator) is exactly 0: documented, ranked first.
MAY_BE_INFINITE = {"balentacq", "mjentacq", "balentacq_released"}
# Quotients and differences that vanish: compare what they are made of, where their own size says nothing.
JUMPS = {"balentacq": measures.balent, "mjentacq": measures.mjent}


def assert_same_scores(measure, a, b):
    """Equal up to float64 and the cancellation in H + U and H - noise, whose terms are of size 10."""
    name = measure.__name__
    if name == "balentacq_released":  # 1/x jumps at 0, as do those of JUMPS: judged by x
        a, b = (measures.posterior_uncertainty(m) + 2 * measures.entropy(m) for m in (a, b))
    else:
        a, b = (JUMPS.get(name, measure)(m) for m in (a, b))
    assert_close(a, b, rtol=1e-7, atol=1e-10)


@EVERY
def test_scores_are_one_float64_number_a_point(measure, kernel):
    scores = measure(Moments.of(probabilities(7, 5, 3, dtype=torch.float32)))
    assert scores.shape == (7,)
    assert scores.dtype == torch.float64
    assert scores.isfinite().all()


@pytest.mark.parametrize("edge", EDGES)
def test_all_scores_at_the_edges_are_numbers_and_finite(edge, kernel):
    """None of these edges lies at BalEnt = 0, so that even what may be infinite is not."""
    m = Moments.of(EDGES[edge])
    assert [name for name, measure in MEASURES.items() if not measure(m).isfinite().all()] == []


@EVERY
@given(draws())
def test_no_score_is_nan_and_none_infinite_but_where_documented(measure, p):
    scores = measure(Moments.of(p))
    assert not scores.isnan().any()
    assert not (scores == -math.inf).any()
    assert measure.__name__ in MAY_BE_INFINITE or scores.isfinite().all()


@EVERY_FUNCTION
@given(draws(), st.randoms(use_true_random=False))
def test_names_of_classes_do_not_matter(measure, p, random):
    order = random.sample(range(p.shape[2]), p.shape[2])
    assert_same_scores(measure, Moments.of(p[:, :, order]), Moments.of(p))


@EVERY_FUNCTION
def test_the_order_of_draws_does_not_matter(measure):
    p = probabilities(20, 30, 4)
    order = torch.randperm(30, generator=Generator().manual_seed(0))
    assert_same_scores(measure, Moments.of(p[:, order]), Moments.of(p))


@EVERY_FUNCTION
def test_merged_chunks_of_draws_score_as_the_whole(measure):
    p = probabilities(20, 30, 4)
    assert_same_scores(measure, Moments.of(p[:, :11]) + Moments.of(p[:, 11:]), Moments.of(p))


@EVERY_FUNCTION
@pytest.mark.parametrize("classes", [2, 10, 60])
def test_a_point_scores_the_same_bits_alone_and_among_others(measure, classes, level):
    """Else picks would depend on the size of blocks, and on the worker that scores them."""
    m = Moments.of(logits(50, 11, classes, seed=classes), logits=True)
    whole = measure(m)
    for part in (slice(0, 1), slice(13, 14), slice(49, 50), slice(3, 20), slice(16, 48)):
        assert torch.equal(measure(m[part]), whole[part])


@EVERY_FUNCTION
def test_a_class_that_never_occurs_changes_nothing_but_the_mean_over_classes(measure):
    p = probabilities(20, 8, 3)
    padded = torch.nn.functional.pad(p, (0, 1))
    if measure is measures.mean_sd:
        assert_close(measure(Moments.of(padded)) * 4 / 3, measure(Moments.of(p)))
    else:
        assert_same_scores(measure, Moments.of(padded), Moments.of(p))


@EVERY_FUNCTION
def test_a_measure_leaves_the_moments_as_they_were(measure):
    m = Moments.of(probabilities(6, 8, 3))
    before = [x.clone() for x in (m.mean, m.var, m.within, m.entropy)]
    once = measure(m).clone()
    assert torch.equal(measure(m), once)
    for x, y in zip((m.mean, m.var, m.within, m.entropy), before, strict=True):
        assert torch.equal(x, y)


@EVERY
def test_a_measure_says_what_it_is(measure):
    assert len(measure.__doc__.splitlines()[0]) > 20


@EVERY
def test_a_measure_is_a_strategy_of_the_same_name(measure):
    assert measure.__name__ in STRATEGIES
    picks = acquire(Draws(probabilities(9, 5, 3)), range(9), 4, measure.__name__)
    assert len(set(picks.indices.tolist())) == 4
    assert (picks.scores.diff() <= 0).all()


@pytest.mark.parametrize("name", ["balentacq", "mjentacq", "balentacq_released", "mjent", "balent"])
def test_draws_that_all_agree_come_last(name, kernel):
    """Where nothing is to be learned h → -∞; the floor keeps such points last, but finite."""
    p = probabilities(40, 20, 3)
    p[13] = p[13, :1]
    scores = MEASURES[name](Moments.of(p))
    assert int(scores.argmin()) == 13


@pytest.mark.parametrize("name", ["bald", "mean_sd", "beta_bald", "beta_eig", "expected_effective_loss"])
def test_draws_that_all_agree_have_nothing_to_tell(name, kernel):
    p = probabilities(40, 20, 3)
    p[13] = p[13, :1]
    scores = MEASURES[name](Moments.of(p))
    assert int(scores.argmin()) == 13
    assert float(scores[13]) == pytest.approx(0, abs=1e-14)


ONE = f64([[[0.2, 0.3, 0.5]], [[0.9, 0.05, 0.05]]])
RANKINGS = {
    "select": lambda name: balent.select(ONE, name, k=1),
    "select numpy": lambda name: balent.select(ONE.numpy(), name, k=1),
    "acquire": lambda name: balent.acquire(Draws(ONE), range(2), 1, name),
    "its power": lambda name: balent.acquire(Draws(ONE), range(2), 1, f"power:{name}"),
    "balent score": lambda name: Job(Table(ONE.shape, lambda a, b: ONE[a:b]), (name,)).best(1, int),
}


@EVERY
def test_one_draw_is_enough_or_a_measure_declares_a_spread(measure):
    """A measure of the mean scores one draw as it scores the draw and its copies; one of the spread says so."""
    if not facts(measure).spread and measure is not measures.random:
        assert_close(measure(Moments.of(ONE)), measure(Moments.of(ONE.expand(-1, 5, -1))))


def test_these_measures_need_no_spread():
    enough = {name for name, measure in MEASURES.items() if not facts(measure).spread}
    assert enough == {"entropy", "variation_ratio", "margin", "aleatoric", "random"}


@EVERY
def test_limits_of_one_draw_are_still_scored(measure):
    """MATH.md has a limit for each: `score` and the functions themselves refuse nothing."""
    assert measure(Moments.of(ONE)).isfinite().all()
    assert balent.score(ONE, measure).isfinite().all()


@pytest.mark.parametrize("ranking", RANKINGS)
@EVERY
def test_points_are_not_ranked_by_a_spread_that_one_draw_does_not_have(measure, ranking):
    """BALD, BalEnt and MeanSD of one draw ranked points by rounding errors of 4e-16, silently."""
    if facts(measure).spread:
        with pytest.raises(ValueError, match=f"{measure.__name__} measures how draws differ.*entropy.*variation_ratio"):
            RANKINGS[ranking](measure.__name__)
    else:
        RANKINGS[ranking](measure.__name__)


def test_scores_beside_those_of_the_strategy_need_their_draws_too(tmp_path):
    with pytest.raises(ValueError, match="bald measures how draws differ, but each point has 1 draw"):
        balent.acquire(Draws(ONE), range(2), 1, "entropy", measures=["bald"], scores=tmp_path / "scores.npy")
    assert list(tmp_path.iterdir()) == []


@EVERY
def test_the_positive_key_of_a_power_keeps_the_order(measure):
    """For each measure, its own key or the logarithm of its scores."""
    scores = measure(Moments.of(probabilities(200, 20, 3)))
    keys = log_key(measure, scores)
    order = scores.argsort()
    assert not keys.isnan().any()
    assert (keys[order].diff() >= 0).all()


def test_a_function_that_declares_nothing_is_not_refused():
    assert facts(lambda m: m.var.sum(-1)) == Facts()
    assert balent.select(ONE, lambda m: m.var.sum(-1), k=1).indices.tolist() == [0]


def test_a_measure_of_ones_own_may_declare_that_it_needs_a_spread():
    @declares(spread=True)
    def largest(m):
        return m.var.amax(-1)

    with pytest.raises(ValueError, match="largest measures how draws differ"):
        balent.select(ONE, largest, k=1)
    with pytest.raises(ValueError, match="largest measures how draws differ"):
        balent.select(ONE, partial(largest), k=1)


def test_facts_of_another_precision_are_those_of_the_measure_with_it():
    finer = facts(partial(measures.balentacq, precision=2.0))
    m = Moments.of(probabilities(6, 8, 3))
    assert finer.spread
    assert torch.equal(finer.balance(m), measures.balent(m, precision=2.0))
