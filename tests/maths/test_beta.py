"""Beta distributions, against values by hand and 60-digit arithmetic."""

import math
from itertools import product

import mpmath as mp
import pytest
import torch
from helpers.examples import f64
from hypothesis import given
from hypothesis import strategies as st
from reference import definitions as reference
from torch.testing import assert_close

from balent.maths import beta

PLACES = [10.0**k for k in range(-18, 17, 2)]
PAIRS = [*product(PLACES, PLACES), *product([10.0**-k for k in range(1, 17, 3)], [1 - 1e-3, 1 + 1e-7, 1.0, 1.2, 0.8])]


def largest_relative_error(came, true):
    """Over the truths that the dtype can hold: below its smallest normal number there are no digits to lose."""
    tiny = torch.finfo(came.dtype).tiny
    return max(abs((mp.mpf(x) - t) / t) for x, t in zip(came.tolist(), true, strict=True) if abs(t) > tiny)


@st.composite
def sizes(draw):
    return 10 ** draw(st.floats(-6, 6))


# ── fit ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_uniform_probability_is_fitted_by_beta_1_1():
    """Uniform(0, 1) has E P = 1/2, Var P = 1/12 and E P(1 - P) = 1/6."""
    a, b = beta.fit(f64(1 / 2), f64(1 / 2), f64(1 / 6), f64(1 / 12), n=100)
    assert_close((a, b), (f64(1.0), f64(1.0)))


@given(sizes(), sizes())
def test_a_fit_returns_the_beta_that_has_the_moments(a, b):
    """mean, within and var are rounded once, and a and b are a product of four of them: a few units of 1e-16."""
    true = reference.Beta(mp.mpf(a), mp.mpf(b))
    given = (true.mean, 1 - true.mean, true.within, true.var)
    came = beta.fit(*(f64(float(x)) for x in given), n=reference.MANY)
    assert_close(came, (f64(a), f64(b)), rtol=2e-15, atol=0)


def test_draws_that_all_agree_get_a_finite_beta_as_narrow_as_the_numbers_resolve():
    """The floor of the standard deviation is eps·min(m, 1 - m): a + b = m(1 - m) / (eps·m)² for m = .3."""
    a, b = beta.fit(f64(0.3), f64(0.7), f64(0.21), f64(0.0), n=100)
    assert_close(a + b, f64(0.21 / (torch.finfo(torch.float64).eps * 0.3) ** 2))
    assert_close(a / (a + b), f64(0.3))


@pytest.mark.parametrize("n", [2, 100])
def test_one_hot_draws_that_disagree_get_a_total_of_one_over_n(n):
    a, b = beta.fit(f64(0.5), f64(0.5), f64(0.0), f64(0.25), n=n)
    assert_close((a, b), (f64(0.5 / n), f64(0.5 / n)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_that_no_draw_doubts_gets_a_finite_beta(dtype):
    one, zero = torch.ones(2, dtype=dtype), torch.zeros(2, dtype=dtype)
    a, b = beta.fit(one, zero, zero, zero, n=10)
    assert a.isfinite().all()
    assert (b > 0).all()
    assert beta.plus_entropy(a, b).isfinite().all()


# ── the entropy of P⁺ ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("a", "b", "entropy"),
    [
        (0.0, 1.0, 0.0),  # Beta(1, 1): uniform, density 1
        (1.0, 1.0, 0.5 - math.log(2)),  # Beta(2, 1): density 2x, -∫ 2x log 2x
        (1.0, 2.0, 5 / 3 - math.log(6)),  # Beta(2, 2): density 6x(1 - x), ψ(4) - ψ(2) = 1/2 + 1/3
    ],
)
def test_entropies_known_by_hand(a, b, entropy):
    """What is left of terms of size 30 after they cancel: 1e-14 at best."""
    assert_close(beta.plus_entropy(f64([a]), f64([b])), f64([entropy]), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(1, 3), (0.5, 2), (6, 1.5), (0.01, 1.1), (30, 20)])
def test_the_entropy_agrees_with_an_integral_over_the_density(a, b):
    with mp.workdps(25):
        true = float(reference.beta_entropy_by_quadrature(mp.mpf(a) + 1, mp.mpf(b)))
    assert_close(beta.plus_entropy(f64([a]), f64([b])), f64([true]), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-4)])
def test_the_entropy_is_exact_from_1e_minus_18_to_1e16(dtype, tolerance):
    """The promised accuracy; the truth is taken at the numbers as rounded to that dtype."""
    a, b = (torch.tensor(x, dtype=torch.float64).to(dtype) for x in zip(*PAIRS, strict=True))
    true = [reference.beta_entropy(mp.mpf(x) + 1, mp.mpf(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert largest_relative_error(beta.plus_entropy(a, b), true) < tolerance


def test_the_entropy_at_mean_one_half_and_sd_four_hundredths_is_minus_1_8():
    """The authors' code takes log(exp(lnB) + 1e-32) and finds +33 here, where log B is about -220."""
    m, sd = mp.mpf("0.5"), mp.mpf("0.04")
    s = m * (1 - m) / sd**2 - 1
    h = beta.plus_entropy(f64([float(m * s)]), f64([float((1 - m) * s)]))
    assert_close(h, f64([float(reference.beta_entropy(m * s + 1, (1 - m) * s))]), rtol=1e-13, atol=0)
    assert h.item() == pytest.approx(-1.8, abs=0.05)


@given(sizes(), sizes())
def test_no_beta_has_more_entropy_than_the_uniform(a, b):
    assert beta.plus_entropy(f64([a]), f64([b])).item() <= 0


def test_functions_are_elementwise_over_any_shape():
    a, b = f64([[0.1, 1.0, 50.0], [1e-9, 20.0, 3.0]]), f64([[1.1, 2.0, 0.5], [1.0, 1e8, 9.0]])
    for f in (beta.plus_entropy, beta.digamma_rise, beta.bald_term):
        one_by_one = torch.stack([f(x, y) for x, y in zip(a.flatten(), b.flatten(), strict=True)])
        assert_close(f(a, b), one_by_one.view(2, 3), rtol=0, atol=0)


# ── digamma differences ──────────────────────────────────────────────────────────────────────────


def test_digamma_rises_by_harmonic_numbers():
    """ψ(3) - ψ(1) = 1 + 1/2 and ψ(x + 1) - ψ(x) = 1/x; no rise for no step."""
    rise = beta.digamma_rise(f64([1.0, 7.0, 1e9, 4.0]), f64([2.0, 1.0, 1.0, 0.0]))
    assert_close(rise, f64([1.5, 1 / 7, 1e-9, 0.0]), rtol=1e-14, atol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_digamma_rises_agree_with_their_definition(dtype, tolerance):
    x, d = (torch.tensor(v).to(dtype) for v in zip(*product(PLACES, PLACES), strict=True))
    with mp.workdps(120):
        true = [
            mp.digamma(mp.mpf(p) + mp.mpf(q)) - mp.digamma(mp.mpf(p))
            for p, q in zip(x.tolist(), d.tolist(), strict=True)
        ]
    assert largest_relative_error(beta.digamma_rise(x, d), true) < tolerance


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_terms_of_beta_bald_agree_with_their_definition(dtype, tolerance):
    """φ(a) - φ(a + b), φ(x) = ψ(x + 1) - ln x: the five-term form keeps 3 digits at 1e6, and none in float32."""
    a, b = (torch.tensor(v).to(dtype) for v in zip(*product(PLACES, PLACES), strict=True))

    def phi(x):
        return mp.digamma(x + 1) - mp.log(x)

    with mp.workdps(120):
        true = [phi(mp.mpf(p)) - phi(mp.mpf(p) + mp.mpf(q)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert largest_relative_error(beta.bald_term(a, b), true) < tolerance
