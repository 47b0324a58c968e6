"""Sums whose bits do not depend on the order of their terms."""

from fractions import Fraction

import torch
from helpers.examples import normal

from balent.maths.exact_sum import ExactSum, binned


def summed(terms):
    total = ExactSum()
    for x in terms:
        total.add(x)
    return total


def test_three_parts_are_the_number_itself():
    """Of numbers in float32 from 2⁻⁴⁶ to 2²⁰ nothing is lost: they have 24 bits."""
    x = (normal(1000) * torch.logspace(-13, 6, 1000).double()).float().double()
    x = x[x.abs() > 2**-46]
    for number, parts in zip(x.tolist(), binned(x).T.tolist(), strict=True):
        assert sum(map(Fraction, parts)) == Fraction(number)


def test_the_order_and_the_grouping_of_terms_change_no_bit():
    terms = normal(500, 3, 3).float() * 10 ** normal(500, 1, 1).float()
    whole = summed(terms).value
    assert torch.equal(summed(terms.flip(0)).value, whole)
    for cut in (0, 1, 250, 500):
        assert torch.equal(summed(terms[:cut]).merge(summed(terms[cut:])).value, whole)
    torch.testing.assert_close(whole, terms.double().sum(0))


def test_float64_alone_would_change_bits():
    """Why this exists."""
    terms = normal(500, 3, 3) * 10 ** normal(500, 1, 1)
    forwards, backwards = (sum(x.unbind(0)) for x in (terms, terms.flip(0)))
    assert not torch.equal(forwards, backwards)
