"""Moments of draws: values by hand, the definition in 60 digits, and what must not change them."""

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
import torch
from helpers.examples import draws, f64, logits, probabilities
from hypothesis import given
from hypothesis import strategies as st
from reference import definitions as reference
from torch.testing import assert_close

from balent import Moments

FIELDS = ("mean", "var", "within", "entropy")


def assert_same(came, true, rtol=1e-12, atol=1e-15):
    """Equal up to the arithmetic of float64: sums over draws and classes are taken in another order."""
    assert came.n == true.n
    for field in FIELDS:
        assert_close(
            getattr(came, field), getattr(true, field), rtol=rtol, atol=atol, msg=lambda m, f=field: f"{f}: {m}"
        )


def assert_exact(m, true, rtol):
    for field, values in zip(FIELDS, true, strict=True):
        values = [[float(v) for v in row] if isinstance(row, list) else float(row) for row in values]
        assert_close(getattr(m, field), f64(values), rtol=rtol, atol=1e-300, msg=lambda m, f=field: f"{f}: {m}")


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


def test_two_draws_by_hand(kernel):
    """P is .9 or .5: mean .7, deviation .2, E P(1 - P) = (.09 + .25) / 2."""
    m = Moments.of(f64([[[0.9, 0.1], [0.5, 0.5]]]))
    noise = (-0.9 * math.log(0.9) - 0.1 * math.log(0.1) + math.log(2)) / 2
    assert m.n == 2
    assert_close(m.mean, f64([[0.7, 0.3]]))
    assert_close(m.var, f64([[0.04, 0.04]]))
    assert_close(m.within, f64([[0.17, 0.17]]))
    assert_close(m.entropy, f64([noise]))
    assert_close(m.rest, f64([[0.3, 0.7]]))


def test_logits_are_logarithms_of_probabilities_up_to_a_constant(kernel):
    p = f64([[[0.9, 0.1], [0.5, 0.5]]])
    assert_same(Moments.of(p.log() + 5, logits=True), Moments.of(p))


def test_the_variance_is_that_of_the_population_so_that_a_beta_exists(kernel):
    """The unbiased variance of a 0 and a 1 is .5, more than any Beta of mean .5 can have."""
    m = Moments.of(f64([[[1, 0], [0, 1]]]))
    assert_close(m.var, f64([[0.25, 0.25]]))
    assert_close(m.within, f64([[0.0, 0.0]]))


# ── the definition ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("classes", [1, 2, 3, 10, 50])
def test_moments_of_probabilities_agree_with_exact_sums(kernel, classes):
    p = probabilities(3, 7, classes, seed=classes)
    assert_exact(Moments.of(p), reference.draws_moments(p.tolist()), rtol=1e-12)


@pytest.mark.parametrize("classes", [1, 2, 3, 10, 50])
def test_moments_of_logits_agree_with_exact_sums(kernel, classes):
    z = logits(3, 7, classes, seed=classes)
    assert_exact(Moments.of(z, logits=True), reference.draws_moments(reference.softmax(z.tolist())), rtol=1e-12)


@pytest.mark.parametrize("margin", [20.0, 45.0, 300.0])
def test_a_class_that_is_nearly_sure_keeps_its_digits(kernel, margin):
    """At a margin of 45 the probability rounds to 1 in float64: what is missing to 1 has all its digits even so."""
    z = f64([[[margin, 0, 1], [margin + 1, 1, 0], [margin - 1, 0, 0]]])
    m = Moments.of(z, logits=True)
    with mp.workdps(400):
        p = reference.softmax(z.tolist())
        true = reference.draws_moments(p)
        rest = float(mp.fsum(row[1] + row[2] for row in p[0]) / 3)
    assert_exact(m, true, rtol=1e-12)
    assert_close(m.rest[:, 0], f64([rest]), rtol=1e-12, atol=0)


def test_float32_probabilities_that_round_to_one_keep_what_is_missing_to_one(kernel):
    p = torch.tensor([[[1, 1e-20], [1, 3e-20]]])
    m = Moments.of(p)
    assert_close(m.rest[:, 0], f64([2e-20]), rtol=1e-6, atol=0)
    assert_close(m.var, f64([[1e-40, 1e-40]]), rtol=1e-6, atol=0)
    assert_close(
        m.entropy, f64([(1e-20 * (1 - math.log(1e-20)) + 3e-20 * (1 - math.log(3e-20))) / 2]), rtol=1e-6, atol=0
    )


# ── what must not change them ────────────────────────────────────────────────────────────────────


@given(draws(), st.randoms(use_true_random=False))
def test_classes_permuted_are_moments_permuted(p, random):
    order = random.sample(range(p.shape[2]), p.shape[2])
    m = Moments.of(p)
    permuted = Moments(m.n, m.mean[:, order], m.var[:, order], m.within[:, order], m.entropy)
    assert_same(Moments.of(p[:, :, order]), permuted)


@given(draws(), st.randoms(use_true_random=False))
def test_the_order_of_draws_does_not_matter(p, random):
    order = random.sample(range(p.shape[1]), p.shape[1])
    assert_same(Moments.of(p[:, order]), Moments.of(p))


@given(draws(min_draws=2, max_draws=9), st.integers(1, 8))
def test_moments_of_two_chunks_of_draws_add_up_to_those_of_all(p, cut):
    cut = min(cut, p.shape[1] - 1)
    assert_same(Moments.of(p[:, :cut]) + Moments.of(p[:, cut:]), Moments.of(p))


@given(draws(min_draws=3, max_draws=9))
def test_moments_of_single_draws_add_up_in_any_order(p):
    singles = [Moments.of(p[:, k : k + 1]) for k in range(p.shape[1])]
    forwards, backwards = singles[0], singles[-1]
    for m in singles[1:]:
        forwards = forwards + m
    for m in singles[-2::-1]:
        backwards = m + backwards
    assert_same(forwards, Moments.of(p))
    assert_same(backwards, Moments.of(p))


@given(draws(min_draws=2, max_draws=9), st.integers(1, 9))
def test_groups_of_draws_add_up_to_those_of_all(p, count):
    count = min(count, p.shape[1])
    groups = Moments.groups(p, count)
    assert [m.n for m in groups] == [len(range(i, p.shape[1], count)) for i in range(count)]
    assert_same(sum(groups[1:], groups[0]), Moments.of(p))


def test_draw_k_goes_to_group_k_mod_count():
    p = probabilities(4, 7, 3)
    for i, group in enumerate(Moments.groups(p, 3)):
        assert_same(group, Moments.of(p[:, i::3]), rtol=0, atol=0)


@given(draws(max_pool=6), st.integers(1, 5))
def test_blocks_of_the_pool_put_together_are_the_whole_bit_for_bit(p, size):
    blocks = [Moments.of(p[i : i + size]) for i in range(0, len(p), size)]
    assert_same(Moments.cat(blocks), Moments.of(p), rtol=0, atol=0)


@given(draws(max_pool=6), st.integers(0, 5), st.integers(1, 6))
def test_slices_of_the_whole_are_moments_of_slices_bit_for_bit(p, start, stop):
    start = min(start, len(p) - 1)
    part = slice(start, max(stop, start + 1))
    assert_same(Moments.of(p)[part], Moments.of(p[part]), rtol=0, atol=0)
    assert_same(Moments.of(p)[torch.arange(len(p))[part]], Moments.of(p[part]), rtol=0, atol=0)


@given(draws())
def test_float32_draws_give_the_moments_of_float64_up_to_their_rounding(p):
    """Rounding p to float32 moves it by 6e-8 p, and sums of a few such numbers by a few times that."""
    assert_same(Moments.of(p.float()), Moments.of(p), rtol=2e-6, atol=1e-6)


@given(draws())
def test_numpy_and_torch_give_the_same_bits(p):
    assert_same(Moments.of(p.numpy()), Moments.of(p), rtol=0, atol=0)


@given(draws())
def test_the_variance_of_a_label_has_two_parts(p):
    """E[P](1 - E[P]) = within + var, for every class."""
    m = Moments.of(p)
    assert_close(m.within + m.var, m.mean * m.rest, rtol=1e-9, atol=1e-15)


@given(draws())
def test_rest_is_what_is_missing_to_one(p):
    m = Moments.of(p)
    assert_close(m.mean + m.rest, torch.ones_like(m.mean), rtol=0, atol=1e-14)


# ── the object ───────────────────────────────────────────────────────────────────────────────────


def test_moments_hold_no_draws(kernel):
    """Neither as an axis, nor in the memory under a view, nor by a graph of gradients."""
    p = probabilities(5, 40, 3).requires_grad_()
    m = Moments.of(p)
    for field, size in zip(FIELDS, (15, 15, 15, 5), strict=True):
        value = getattr(m, field)
        assert value.untyped_storage().nbytes() == size * 8
        assert not value.requires_grad


def test_moments_are_frozen():
    m = Moments.of(probabilities(2, 3, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.n = 5


def test_the_length_is_that_of_the_pool():
    assert len(Moments.of(probabilities(4, 3, 2))) == 4


def test_moments_of_other_points_do_not_add_up():
    with pytest.raises(
        ValueError, match=r"moments can be added only for the same points.*\(4, 2\) and \(3, 2\); use Moments.cat"
    ):
        Moments.of(probabilities(4, 3, 2)) + Moments.of(probabilities(3, 3, 2))


def test_blocks_with_other_numbers_of_draws_do_not_fit_together():
    with pytest.raises(ValueError, match=r"same number of draws, but have \[3, 5\]; use \+ to merge draws"):
        Moments.cat([Moments.of(probabilities(4, 3, 2)), Moments.of(probabilities(4, 5, 2))])


def test_more_groups_than_draws_are_refused():
    with pytest.raises(ValueError, match="at least 4 draws, but the number of draws is 3; use more"):
        Moments.groups(probabilities(2, 3, 2), 4)


def test_a_permuted_array_of_numpy_is_taken_as_it_is():
    p = probabilities(4, 3, 2)
    by_draw = np.ascontiguousarray(p.numpy().transpose(1, 0, 2))
    assert_same(Moments.of(by_draw.transpose(1, 0, 2)), Moments.of(p), rtol=0, atol=0)
