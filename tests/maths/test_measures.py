"""Measures: values by hand, definitions in 60 digits, what the paper proves, and the errors of others."""

import gc
import math
import weakref
from itertools import product

import mpmath as mp
import pytest
import torch
from helpers.examples import draws, f64, probabilities
from hypothesis import given
from reference import definitions as reference
from torch.testing import assert_close

from balent import MEASURES, Moments, dirichlet_bald, kernels
from balent.acquisition import ranking
from balent.maths import measures
from balent.maths.measures import bald, balent, balentacq, balentacq_released, beta_bald, entropy

REST = [0.5, 0.1, 1e-3, 1e-7, 1e-15]
TOTALS = [1e-6, 0.01, 0.37, 3.7, 100.0, 1e5, 1e10, 1e16]


def two_classes(rest, total):
    """A class of mean 1 - rest and its complement."""
    r, s = mp.mpf(rest), mp.mpf(total)
    return [reference.Beta((1 - r) * s, r * s), reference.Beta(r * s, (1 - r) * s)]


def three_classes(rest, total):
    """Each class with a concentration of its own."""
    r, s = mp.mpf(rest), mp.mpf(total)
    means, totals = (1 - r, r * mp.mpf("0.75"), r * mp.mpf("0.25")), (s, 2 * s, s / 3)
    return [reference.Beta(m * t, (1 - m) * t) for m, t in zip(means, totals, strict=True)]


CASES = {point: [point(r, s) for r, s in product(REST, TOTALS)] for point in (two_classes, three_classes)}


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


def test_a_coin_of_unknown_bias_scores_four_log_two(kernel):
    """P ~ Uniform(0, 1) gives U = 1/2 - log 2 and H = log 2: MJEnt = 1/2, hence BalEntAcq = 4 log 2."""
    m = reference.beta_moments([1.0], [1.0])
    assert_close(measures.posterior_uncertainty(m), f64([0.5 - math.log(2)]))
    assert_close(measures.mjent(m), f64([0.5]))
    assert_close(balent(m), f64([0.25 / math.log(2)]))
    assert_close(measures.neg_balent(m), f64([-0.25 / math.log(2)]))
    assert_close(balentacq(m), f64([4 * math.log(2)]))
    assert_close(measures.mjentacq(m), f64([2.0]))
    assert_close(balentacq_released(m), f64([2 * math.log(2) / (0.5 + math.log(2))]))


def test_the_information_in_a_coin_of_unknown_bias():
    """E[H(Y|P)] = 1/2 for P ~ Uniform(0, 1), so log 2 - 1/2 is shared; one head makes P of 1/2 one of 2/3."""
    m = reference.beta_moments([1.0], [1.0])
    assert_close(beta_bald(m), f64([math.log(2) - 0.5]))
    assert_close(measures.beta_aleatoric(m), f64([0.5]))
    assert_close(dirichlet_bald(f64([[1.0, 1.0]])), f64([math.log(2) - 0.5]))
    assert_close(measures.expected_effective_loss(m), f64([math.log(4 / 3)]))
    after = math.log(3) - 2 / 3 * math.log(2)  # H(2/3, 1/3)
    assert_close(measures.beta_eig(m), f64([math.log(2) - after]))


def test_two_draws_that_contradict_each_other():
    """Mean (.5, .5), each draw with H(.9, .1), sd .4."""
    m = Moments.of(f64([[[0.9, 0.1], [0.1, 0.9]]]))
    noise = -0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    assert_close(entropy(m), f64([math.log(2)]))
    assert_close(measures.aleatoric(m), f64([noise]))
    assert_close(bald(m), f64([math.log(2) - noise]))
    assert_close(measures.mean_sd(m), f64([0.4]))
    assert_close(measures.variation_ratio(m), f64([0.5]))
    assert_close(measures.margin(m), f64([1.0]))


def test_the_margin_of_two_guesses_and_a_third():
    """Means (.5, .3, .2), (1, 0, 0) and (⅓, ⅓, ⅓): 1 - .2, 1 - 1 and 1 - 0."""
    p = f64([[[0.6, 0.2, 0.2], [0.4, 0.4, 0.2]], [[1, 0, 0], [1, 0, 0]], [[1 / 3] * 3] * 2])
    assert_close(measures.margin(Moments.of(p)), f64([0.8, 0.0, 1.0]))


def test_the_margin_of_one_class_is_that_of_no_doubt():
    assert measures.margin(Moments.of(f64([[[1.0], [1.0]]]))).tolist() == [0.0]


# ── the definition ───────────────────────────────────────────────────────────────────────────────


def largest_relative_error(name, cases):
    came, true = MEASURES[name](reference.moments(cases)).tolist(), [reference.MEASURES[name](case) for case in cases]
    return float(max(abs((mp.mpf(x) - t) / t) for x, t in zip(came, true, strict=True)))


@pytest.mark.parametrize("name", reference.MEASURES)
@pytest.mark.parametrize("point", CASES)
def test_measures_agree_with_their_definition(point, name):
    """The promised 1e-11, over means to 1 - 1e-15 and concentrations to 1e16; the moments given are rounded once."""
    assert largest_relative_error(name, CASES[point]) < 1e-11


@pytest.mark.parametrize("name", ["posterior_uncertainty", "balent"])
def test_every_kernel_agrees_with_the_definition(name, kernel):
    assert largest_relative_error(name, CASES[three_classes][::3]) < 1e-11


@pytest.mark.parametrize("precision", [-1.0, 0.0, 1.0, 2.0, 3.0])
def test_the_five_cases_of_the_paper_differ_in_the_denominator(precision):
    cases = [three_classes(r, s) for r, s in product([0.5, 0.1], [0.3, 3.0, 50.0])]
    m = reference.moments(cases)
    assert_close(balent(m, precision), f64([float(reference.balent(c, precision)) for c in cases]), rtol=1e-12, atol=0)
    acquisition = f64([float(reference.balentacq(c, precision)) for c in cases])
    assert_close(balentacq(m, precision), acquisition, rtol=1e-12, atol=0)


@pytest.mark.parametrize("eta", [[1, 1], [0.1, 3, 7], [1e-6, 1e-6], [1e6, 2e6, 3e6], [1e-9, 1e9], [5] * 100])
def test_dirichlet_bald_agrees_with_its_definition(eta):
    with mp.workdps(100):
        e = [mp.mpf(x) for x in eta]
        s = mp.fsum(e)
        true = mp.fsum(x / s * (mp.digamma(x + 1) - mp.digamma(s + 1) - mp.log(x / s)) for x in e)
    assert_close(dirichlet_bald(f64([eta])), f64([float(true)]), rtol=1e-11, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", reference.MEASURES)
@pytest.mark.parametrize("point", CASES)
def test_measures_agree_with_their_definition_everywhere(point, name):
    """The whole grid of benchmarks/accuracy.py."""
    rest = [0.5, 0.3, 0.1, *(10.0**-k for k in range(2, 16))]
    totals = [m * 10.0**k for k in range(-6, 17) for m in (1.0, 3.7)]
    assert largest_relative_error(name, [point(r, s) for r, s in product(rest, totals)]) < 1e-11


# ── what must hold ───────────────────────────────────────────────────────────────────────────────


@given(draws(min_draws=2))
def test_bounds_of_the_paper(p):
    m = Moments.of(p)
    classes = p.shape[2]
    assert (measures.posterior_uncertainty(m) <= 1e-12).all()
    assert (balent(m) <= 1).all()
    assert (bald(m) >= 0).all()
    assert (bald(m) <= entropy(m) + 1e-12).all()
    assert (entropy(m) <= math.log(classes) + 1e-12).all()
    assert (measures.mjent(m) <= entropy(m) + 1e-12).all()
    assert (beta_bald(m) >= 0).all()
    assert (measures.beta_eig(m) >= 0).all()
    assert (measures.expected_effective_loss(m) >= 0).all()
    assert ((measures.variation_ratio(m) >= 0) & (measures.variation_ratio(m) <= 1 - 1 / classes + 1e-12)).all()
    assert ((measures.margin(m) >= measures.variation_ratio(m)) & (measures.margin(m) <= 1)).all()


@given(draws())
def test_the_margin_agrees_with_its_definition(p):
    """In 60 digits; a small margin is as exact as a large one, as it is a sum and no difference."""
    m = Moments.of(p)
    for score, mean in zip(measures.margin(m).tolist(), reference.draws_moments(p.tolist())[0], strict=True):
        first, second = sorted([*mean, mp.mpf(0)], reverse=True)[:2]
        assert score == pytest.approx(float(1 - first + second), rel=1e-13, abs=0)


@given(draws(min_draws=2))
def test_entropy_is_the_sum_of_the_beta_marginals_parts(p):
    m = Moments.of(p)
    assert_close(beta_bald(m) + measures.beta_aleatoric(m), entropy(m), rtol=1e-9, atol=1e-12)


def test_beta_bald_of_two_classes_is_dirichlet_bald():
    """Two complementary Betas are the marginals of one Dirichlet."""
    a, b = [0.2, 1.0, 7.0, 300.0], [3.0, 0.01, 7.0, 2.0]
    assert_close(beta_bald(reference.beta_moments(a, b)), dirichlet_bald(f64(list(zip(a, b, strict=True)))))


def test_the_expected_effective_loss_is_twice_beta_bald_for_many_observations():
    """log1p(1/α) - log1p(1/s) ~ 1/α - 1/s, and φ(α) - φ(s) ~ half of it: they differ by order 1/s."""
    m = reference.moments([three_classes(0.3, 1e6)])
    assert_close(measures.expected_effective_loss(m), 2 * beta_bald(m), rtol=1e-4, atol=0)


@pytest.mark.parametrize(("classes", "largest"), [(2, 0.37), (10, 0.77), (100, 0.87)])
def test_the_largest_balent_of_symmetric_dirichlets(classes, largest):
    """Erratum 4: it is not 1, as the first term of MJEnt is 0 only at α = 0, β = 1."""
    totals = [mp.mpf(10) ** (mp.mpf(k) / 20) for k in range(-60, 81)]
    one = reference.moments([[reference.Beta(s / classes, s - s / classes)] for s in totals])
    m = Moments(one.n, *(x.expand(-1, classes) for x in (one.mean, one.var, one.within)), one.entropy)
    assert float(balent(m).max()) == pytest.approx(largest, abs=0.01)


def test_balentacq_ranks_from_zero_upwards_then_from_zero_downwards():
    """0.1 before .9, both before -.1, and that before -.9."""
    m = Moments.of(probabilities(500, 30, 3))
    order = balentacq(m).argsort(descending=True)
    balance = balent(m)[order]
    above = balance >= 0
    count = int(above.sum())
    assert 0 < count < 500
    assert above[:count].all()
    assert (balance[:count].diff() >= 0).all()
    assert (balance[count:].diff() <= 0).all()


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_balent_of_zero_comes_first(zero):
    assert measures.zero_first(f64([zero, 1e-300, 0.5, -1e-300])).tolist()[0] == math.inf
    assert (measures.zero_first(f64([zero, 0.1, 0.5, -0.1, -2.0])).diff() < 0).all()


def test_a_quotient_over_nothing_is_infinite_with_the_sign_of_mjent():
    """Precision 0 at H = 0: the draws are sure and agree, U + H < 0."""
    assert balent(Moments.of(f64([[[1, 0], [1, 0]]])), precision=0.0).item() == -math.inf


def test_several_measures_share_their_parts_and_keep_no_moments_alive(monkeypatch):
    m = Moments.of(probabilities(4, 5, 3))
    assert entropy(m) is entropy(m)
    assert measures.posterior_uncertainty(m) is measures.posterior_uncertainty(m)
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None


def test_random_scores_are_uniform_and_those_of_the_generator():
    m = Moments.of(probabilities(2000, 1, 2))
    one, again = (measures.random(m, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one, again)
    assert 0 <= float(one.min()) < float(one.max()) < 1
    # The mean of 2,000 uniform numbers is 1/2 ± 1/√(12·2000) = .0065: five sigma, one false alarm in 10⁶ seeds.
    assert float(one.mean()) == pytest.approx(0.5, abs=0.033)


# ── errors of others ─────────────────────────────────────────────────────────────────────────────


def example_moments():
    source = ranking.example(pool=2000)
    return Moments.of(source.window(0, 2000))


def test_the_released_code_counts_the_entropy_twice_and_shares_no_pick_with_the_paper():
    """Authors' code: (U + 2H) where the paper has (U + H). Top 25 of 2,000 points."""
    m = example_moments()
    ours, theirs = (f(m).argsort(descending=True, stable=True)[:25].tolist() for f in (balentacq, balentacq_released))
    assert set(ours).isdisjoint(theirs)


def test_a_nearly_certain_point_is_not_the_first_to_be_labelled(kernel):
    """Authors' code: the variance floored at 1e-9 makes α and β negative, and p = 1 - 1e-9 scores +1.5e7."""
    p = probabilities(50, 3, 2)
    p[7] = f64([[1 - 1e-9, 1e-9], [1 - 2e-9, 2e-9], [1 - 1e-9, 1e-9]])
    scores = balentacq(Moments.of(p))
    assert float(scores[7]) < 0
    assert int(scores.argmin()) == 7


def test_a_certain_point_is_a_number_and_comes_last(kernel):
    """Authors' code: NaN at p = 1, replaced by -99999999999."""
    p = probabilities(50, 3, 2)
    p[7] = f64([1, 0])
    scores = balentacq(Moments.of(p))
    assert scores.isfinite().all()
    assert int(scores.argmin()) == 7
    assert float(scores[7]) > -1e4


@pytest.mark.parametrize("name", MEASURES)
def test_zero_times_the_logarithm_of_zero_is_zero(name, kernel):
    """Authors' code: 0·log 0 is NaN, which topk ranks first. distil: BALD is NaN at p = 0."""
    p = torch.nn.functional.pad(probabilities(20, 4, 3), (1, 0))
    p[5] = f64([0, 0, 1, 0])
    assert not MEASURES[name](Moments.of(p)).isnan().any()


def test_confident_draws_that_disagree_have_a_large_entropy():
    """modAL: "max entropy" takes the mean of entropies, which is 0 here, not the entropy of the mean, log 2."""
    m = Moments.of(f64([[[1, 0], [0, 1]]]))
    assert_close(entropy(m), f64([math.log(2)]))
    assert_close(bald(m), f64([math.log(2)]))
    assert_close(measures.aleatoric(m), f64([0.0]))


def test_probabilities_in_half_precision_are_not_taken_for_logits(kernel):
    """baal: half-precision probabilities go through a softmax; .9 and .1 would become .69 and .31."""
    for dtype in (torch.float16, torch.bfloat16):
        m = Moments.of(torch.tensor([[[0.9, 0.1], [0.9, 0.1]]], dtype=dtype))
        assert_close(measures.variation_ratio(m), f64([0.1]), rtol=0.01, atol=0)


def test_beta_bald_keeps_its_digits_for_many_observations():
    """The paper's five terms have a relative error of 1e-3 at s = 1e6 in float64."""
    case = two_classes(0.3, 1e6)
    true = float(reference.beta_bald(case))
    assert_close(beta_bald(reference.moments([case])), f64([true]), rtol=1e-13, atol=0)


def test_measures_are_the_same_with_and_without_the_compiled_kernel(use_kernel):
    m = example_moments()
    found = {}
    for name in ("torch", kernels.levels()[0]):
        use_kernel(name)
        fresh = m[0:2000]  # parts already computed are kept with the moments
        found[name] = {f: MEASURES[f](fresh) for f in ("entropy", "mjent", "balent", "posterior_uncertainty")}
    one, other = found.values()
    for f in one:
        assert_close(one[f], other[f], rtol=1e-12, atol=1e-12)
