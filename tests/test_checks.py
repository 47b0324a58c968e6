"""Bad input: what was expected, what came and where, what to do."""

import math

import numpy as np
import pytest
import torch
from helpers.examples import logits, normal, probabilities

import balent
from balent import Moments, checks
from balent.lookup import lookup

NAN, INF = math.nan, math.inf


def spoiled(*, point, draw, row):
    p = probabilities(5, 4, 3)
    p[point, draw] = torch.tensor(row, dtype=torch.float64)
    return p


# ── shape and kind ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("shape"), [(), (3,), (4, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("kind", [np.zeros, torch.zeros])
def test_draws_have_three_axes(shape, kind):
    with pytest.raises(
        ValueError, match=r"three axes \[pool, draws, classes\], but have shape .*draws\[:, None, :\]"
    ) as e:
        balent.score(kind(shape))
    assert str(tuple(shape)) in str(e.value)


@pytest.mark.parametrize(("shape", "what"), [((0, 3, 2), "points"), ((4, 0, 2), "draws"), ((4, 3, 0), "classes")])
@pytest.mark.parametrize("kind", [np.zeros, torch.zeros])
@pytest.mark.parametrize("asked", [balent.score, balent.select, Moments.of, balent.Draws])
def test_an_empty_axis_is_named(shape, what, kind, asked):
    with pytest.raises(ValueError, match=rf"must not be empty, but have no {what}: shape \({shape[0]}, {shape[1]}, "):
        asked(kind(shape))


def test_lists_are_not_guessed_at():
    with pytest.raises(TypeError, match="must be a numpy array or a torch tensor, but are of type list"):
        checks.draws([[[0.5, 0.5]]])


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex128", "object", "U3", "longdouble"])
def test_an_array_of_other_numbers_is_refused(dtype):
    with pytest.raises(TypeError, match=r"must be float16, float32 or float64, but are .*; convert them first"):
        balent.score(np.ones((1, 1, 1)).astype(dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_a_tensor_of_other_numbers_is_refused(dtype):
    with pytest.raises(TypeError, match=f"must be floating-point numbers, but are {dtype}; convert them first"):
        balent.score(torch.ones(1, 1, 1).to(dtype))


# ── values ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            [0.2, 0.3, 0.4],
            "must sum to 1 over classes within 1e-05, but sum to 0.9; divide by the sum if only rounding",
        ),
        (
            [0.5, 0.5, 0.5],
            "must sum to 1 over classes within 1e-05, but sum to 1.5; divide by the sum if only rounding",
        ),
        (
            [2.0, 3.0, 1.0],
            "must sum to 1 over classes within 1e-05, but sum to 6; if these are logits, pass logits=True",
        ),
        ([0.7, -0.2, 0.5], "must not be negative, but class 1 is -0.2; if these are logits, pass logits=True"),
        ([-1.5, 4.0, -3.25], "must not be negative, but class 2 is -3.25; if these are logits, pass logits=True"),
        ([0.5, 0.5, NAN], "must be finite, but class 2 is NaN; look at the model's output"),
        ([INF, 0.5, 0.5], "must be finite, but class 0 is +inf; look at the model's output"),
        ([0.5, -INF, 0.5], "must not be negative, but class 1 is -inf; if these are logits, pass logits=True"),
        ([0.0, 0.0, 0.0], "must sum to 1 over classes within 1e-05, but sum to 0; divide by the sum"),
    ],
)
def test_a_row_that_is_no_distribution_is_named_with_its_value(row, words, kernel):
    with pytest.raises(ValueError) as e:  # noqa: PT011
        balent.score(spoiled(point=3, draw=2, row=row))
    assert str(e.value).startswith(f"probabilities {words}")
    assert str(e.value).endswith("(at point 3, draw 2)")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.5, 0.5, NAN], "must be finite, but class 2 is NaN; look at the model's output"),
        ([INF, -0.5, 0.5], "must be finite, but class 0 is +inf; look at the model's output"),
        ([-INF, -INF, -INF], "must leave at least one class, but all are -inf; unmask one"),
    ],
)
def test_bad_logits_are_named_with_their_value(row, words, kernel):
    with pytest.raises(ValueError) as e:  # noqa: PT011
        balent.score(spoiled(point=3, draw=2, row=row), logits=True)
    assert str(e.value) == f"logits {words} (at point 3, draw 2)"


def test_logits_given_as_probabilities_suggest_what_to_do(kernel):
    with pytest.raises(ValueError, match=r"if these are logits, pass logits=True .*\(at point 0, draw 0\)"):
        balent.score(logits(10, 5, 3))


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (balent.score, {"measure": "bald"}),
        (balent.score, {"measure": "bald", "with_error": True}),
        (balent.select, {"measure": "bald"}),
        (balent.select, {"measure": "power_bald"}),
    ],
)
def test_the_position_is_that_in_the_whole_pool_even_in_blocks(asked, options, monkeypatch):
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", 7 * 4 * 3)
    p = probabilities(50, 4, 3)
    p[37, 3, 1] = NAN
    with pytest.raises(ValueError, match=r"class 1 is NaN.*\(at point 37, draw 3\)"):
        asked(p, **options)


def test_the_position_is_that_in_the_pool_whatever_the_order_of_the_batch():
    p = probabilities(50, 4, 3)
    p[37, 3, 1] = NAN
    with pytest.raises(ValueError, match=r"\(at point 37, draw 3\)"):
        balent.Draws(p).moments(np.array([4, 37, 2]))


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        (torch.float64, 5e-6, 2e-5),
        (torch.float32, 5e-5, 2e-4),
        (torch.float16, 5e-3, 2e-2),
        (torch.bfloat16, 8e-3, 4e-2),
    ],
)
def test_the_tolerance_of_sums_is_that_of_the_dtype(dtype, good, bad, kernel):
    """Half precision rounds .5 by up to 2⁻¹² (float16) or 2⁻⁹ (bfloat16); its rows do not sum to 1 exactly."""

    def row(off):
        return torch.tensor([[[0.5 + off, 0.5]]], dtype=dtype)

    assert Moments.of(row(good)).mean.sum().item() == pytest.approx(1, abs=1e-6)
    with pytest.raises(ValueError, match="must sum to 1 over classes within"):
        Moments.of(row(bad))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_logits_in_half_precision_are_not_softmaxed_silently(dtype, kernel):
    """baal does."""
    with pytest.raises(ValueError, match="pass logits=True"):
        balent.score(normal(3, 4, 5).to(dtype) * 3)


# ── numbers of points ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("k", [0, -3, 6, 10**9])
def test_k_is_between_one_and_the_pool(k):
    with pytest.raises(ValueError, match=f"k must be between 1 and the 5 points of the pool, but is {k}$"):
        balent.select(probabilities(5, 4, 3), "bald", k=k)


@pytest.mark.parametrize("k", [2.0, "3", None, True])
def test_k_is_a_whole_number(k):
    with pytest.raises(TypeError, match=f"k must be a whole number of points, but is {k!r}"):
        checks.batch_size(k, 5)


def test_k_may_be_a_number_of_numpy():
    checks.batch_size(np.int32(5), 5)
    with pytest.raises(ValueError, match="between 1 and the 5"):
        checks.batch_size(np.int64(6), 5)


def test_masked_draws_are_refused():
    """Defect: masked arrays were scored with the numbers that the mask hides."""
    p = np.ma.masked_array(probabilities(3, 2, 2).numpy(), mask=False)
    p[1] = np.ma.masked
    for refuse in (lambda: balent.score(p, "bald"), lambda: balent.select(p, "bald", 1), lambda: balent.Draws(p)):
        with pytest.raises(TypeError, match="draws must not be a masked array: its mask would be ignored; leave"):
            refuse()


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("balentaqc", "there is no measure 'balentaqc'; did you mean balentacq"),
        ("BALD", "there is no measure 'BALD'; choose from aleatoric, bald, "),
        ("entropi", r"there is no measure 'entropi'; did you mean entropy"),
        ("", "there is no measure ''; choose from aleatoric, bald, "),
    ],
)
def test_unknown_measures_are_answered_with_the_nearest_known_ones(name, words):
    with pytest.raises(ValueError, match=words):
        balent.score(probabilities(3, 2, 2), name)


def test_a_known_name_is_looked_up():
    assert lookup({"a": 1}, "a", "letter") == 1


def test_an_unknown_public_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'balent' has no attribute 'scores'"):
        _ = balent.scores


def test_public_names_are_listed_and_lead_somewhere():
    assert {"score", "select", "Moments", "MEASURES", "STRATEGIES", "Draws", "Picks"} <= set(dir(balent))
    for name in dir(balent):
        assert getattr(balent, name) is not None


# ── what fuzzing found ───────────────────────────────────────────────────────────────────────────


def test_a_minus_sign_that_torch_still_owes_is_paid(kernel):
    """torch._neg_view and x.conj().imag only mark a tensor as negated: the kernel read the numbers without it."""
    z = logits(4, 5, 3)
    owed = torch._neg_view(-z)
    assert owed.is_neg()
    assert torch.equal(Moments.of(owed, logits=True).mean, Moments.of(z, logits=True).mean)


def test_a_masked_array_is_refused_where_its_mask_hides_something():
    """Masked draws were scored, and the mask ignored."""
    p = np.ma.masked_array(probabilities(4, 5, 3).numpy())
    assert np.array_equal(balent.score(p, "entropy"), balent.score(p.data, "entropy"))
    p[1, 2] = np.ma.masked
    with pytest.raises(TypeError, match="draws must not be a masked array"):
        balent.score(p, "entropy")


@pytest.mark.parametrize(
    "x", [torch.ones(2, 2, 1, device="meta"), torch.ones(2, 2, 1).to_sparse()], ids=["meta", "sparse"]
)
def test_draws_are_dense_and_in_memory(x):
    """A raw NotImplementedError of torch."""
    with pytest.raises(TypeError, match="draws must be dense and in memory"):
        Moments.of(x)


@pytest.mark.parametrize("seed", [None, 1.5, True, "3"])
def test_a_seed_is_a_whole_number(seed):
    """A RuntimeError of torch, or nothing at all where nothing was drawn."""
    with pytest.raises(TypeError, match=f"seed must be a whole number, but is {seed!r}"):
        checks.generator(seed)


@pytest.mark.parametrize("call", [balent.score, balent.select])
@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_is_one_that_torch_takes(call, seed):
    with pytest.raises(ValueError, match=rf"seed must be between -2\*\*63 and 2\*\*64 - 1, but is {seed}"):
        call(probabilities(4, 5, 3), "bald", seed=seed)


def test_a_seed_may_be_a_number_of_numpy():
    assert checks.generator(np.int64(3)).initial_seed() == checks.generator(3).initial_seed() == 3


@pytest.mark.parametrize("came", [None, np.zeros(4), [0.0] * 4])
def test_scores_are_a_tensor(came):
    """`select` failed with an AttributeError."""
    with pytest.raises(TypeError, match=f"must return a torch tensor of scores, but returned {type(came).__name__}"):
        checks.scores(came, torch.arange(4))


@pytest.mark.parametrize("call", [balent.score, balent.select])
@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (lambda m: m.mean, r"one number for each of 4 points, but returned torch.float64 of shape \(4, 3\)"),
        (lambda m: m.entropy.sum(), r"one number for each of 4 points.* of shape \(\)"),
        (lambda m: m.entropy * NAN, "is NaN at point 0"),
    ],
)
def test_a_measure_of_ones_own_returns_one_number_a_point(call, measure, words):
    """`score` returned whatever came, and `select` ranked a matrix."""
    with pytest.raises(ValueError, match=words):
        call(probabilities(4, 5, 3), measure)


@pytest.mark.parametrize(
    "name", ["bald(", "balent(precision=2)()", "balent(precision=1, precision=2)", "balent(precision=2)(precision=3)"]
)
def test_brackets_that_are_not_settings_are_refused(name):
    """They were dropped silently, or the last value won."""
    with pytest.raises(ValueError, match="settings stand in brackets"):
        balent.select(probabilities(4, 5, 3), name)


@pytest.mark.parametrize("value", ["'2'", "None", "True", "1e400", "[2]"])
def test_a_setting_is_a_number_where_numbers_are_expected(value):
    """precision=True counted as 1, and 1e400 made every score 0."""
    with pytest.raises(ValueError, match=r"precision of balent\(.*must be a number, but is"):
        balent.select(probabilities(4, 5, 3), f"balent(precision={value})")


@pytest.mark.parametrize(
    ("pool", "error", "words"),
    [
        (np.arange(7), ValueError, "between 0 and 3, the 4 points of these draws, but reach from 0 to 6"),
        (np.arange(-4, 0), ValueError, "between 0 and 3.* but reach from -4 to -"),
        (np.arange(4) + 0.5, TypeError, "whole numbers \\(positions\\), but has torch.float64"),
        (["a", "b"], TypeError, r"whole numbers \(positions\), but has"),
    ],
)
def test_the_pool_of_draws_is_positions_of_these_draws(pool, error, words):
    """Beyond the end a slice is shorter, and counted from the end it is empty."""
    with pytest.raises(error, match=words):
        balent.acquire(balent.Draws(probabilities(4, 5, 3)), pool, 1, "bald")


@pytest.mark.parametrize("strategy", ["batch_bald", "core_mse", "core_log"])
def test_points_are_not_compared_through_one_draw(strategy):
    with pytest.raises(ValueError, match="compare draws, but each point has 1 draw"):
        balent.select(probabilities(4, 1, 3), strategy, k=2)
