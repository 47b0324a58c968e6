"""Student's t and Holm's correction: by tables, by their definitions, and with decisions that agree with intervals."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balent.report.significance import ALPHA, critical, holm, interval, p_value, tail


def test_quantiles_of_t_are_those_of_the_tables():
    """Abramowitz and Stegun, table 26.10."""
    for freedom, value in {1: 12.706, 2: 4.303, 4: 2.776, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980}.items():
        assert critical(0.05, freedom) == pytest.approx(value, abs=6e-4)
    assert critical(0.001, 2) == pytest.approx(31.599, abs=6e-4)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 99])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 4.0, 30.0])
def test_the_tail_is_the_incomplete_beta_function(freedom, t):
    """P(|T| > t) = I_x(ν/2, 1/2) at x = ν / (ν + t²)."""
    expected = mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True)
    assert tail(t, freedom) == pytest.approx(float(expected), abs=1e-14)


def test_the_interval_by_hand():
    """Mean 2, sd 1, three numbers: 2 ± 4.3027 / √3."""
    assert interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)


def test_numbers_without_spread_have_the_limit_of_t():
    assert p_value(np.zeros(3)) == 1
    assert p_value(np.full(3, 0.25)) == 0


def test_holm_by_hand():
    """0.01 · 4 = 0.04; 0.012 · 3 = 0.036, but not less than the one before; 0.03 · 2 = 0.06; 0.04, not less than that.

    The third is the first above 5 %: its interval and those after it have its level, 5 % / 2.
    """
    steps = holm([0.03, 0.01, 0.04, 0.012])
    assert [step.p for step in steps] == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert [step.alpha for step in steps] == pytest.approx([0.025, 0.0125, 0.025, 0.05 / 3])
    assert holm([]) == []


@given(st.lists(st.floats(0, 0.1), min_size=1, max_size=8))
def test_holm_agrees_with_its_definition(p):
    """Step by step: the smallest of those that are left is compared with 5 % by their number."""
    left, shown = dict(enumerate(p)), set()
    while left and (best := min(left, key=left.__getitem__)) is not None and left[best] * len(left) <= ALPHA:
        shown.add(best)
        del left[best]
    assert {i for i, step in enumerate(holm(p)) if step.p <= ALPHA} == shown


@given(st.lists(st.lists(st.floats(-1, 3).map(lambda x: round(x, 6)), min_size=3, max_size=6), min_size=1, max_size=6))
def test_an_interval_leaves_out_zero_exactly_where_a_difference_is_shown(samples):
    values = [np.array(sample) for sample in samples]
    for value, step in zip(values, holm([p_value(value) for value in values]), strict=True):
        low, high = interval(value, step.alpha)
        if abs(step.p - ALPHA) > 1e-9:
            assert (low > 0 or high < 0) == (step.p <= ALPHA)
