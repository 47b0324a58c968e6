"""All draws of a linear map behind a dropout, masks per point: against a product for each draw, for every kernel."""

import pytest
import torch
import torch.nn.functional as F
from helpers.examples import normal
from torch.testing import assert_close

from balent.kernels import hashing
from balent.kernels.layers import MaskedLinear
from balent.predictors.dropout.masks import Masks

WIDTHS = (1, 10, 16, 17, 70, 128, 200)  # outputs that fill no vector, or eight and some more


def example(units, width, dtype=torch.float32):
    """Values behind a ReLU: half are 0, all of them for one point."""
    x, weight, bias = normal(9, units, seed=1).relu(), normal(width, units, seed=2), normal(width, seed=3)
    x[4] = 0
    return tuple(part.to(dtype) for part in (x, weight, bias))


def thinned(x, weight, bias, keys, p):
    return MaskedLinear(weight, bias, p)(x, keys)


def draw_by_draw(x, weight, bias, keys, p):
    return torch.stack([F.linear(x * hashing.kept(row, x.shape[1], p).to(x), weight, bias) for row in keys], 1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_all_draws_together_are_the_draws_one_by_one(kernel, width, p):
    """Sums of some dozen terms of size 1 in float32. Below p = ½ what is dropped is taken off the sum of all."""
    keys = Masks(3, 12, per_point=True).keys(0, torch.arange(9) * 5)
    expected = draw_by_draw(*example(37, width, torch.float64), keys, p)
    found = thinned(*example(37, width), keys, p)
    assert found.shape == (9, 12, width)
    assert_close(found.double(), expected, rtol=0, atol=1e-6 * float(expected.abs().max()))


def test_plain_torch_is_exact_in_double_precision():
    keys = Masks(3, 5, per_point=True).keys(1, torch.arange(9))
    x = example(20, 7, torch.float64)
    assert_close(thinned(*x, keys, 0.3), draw_by_draw(*x, keys, 0.3), rtol=1e-12, atol=1e-12)


def test_a_point_has_the_same_bits_whatever_is_beside_it(level):
    x, *linear = example(40, 10)
    keys = Masks(0, 30, per_point=True).keys(0, torch.arange(9))
    whole = thinned(x, *linear, keys, 0.2)
    assert torch.equal(thinned(x[3:5], *linear, keys[:, 3:5], 0.2), whole[3:5])


def test_a_unit_that_is_no_number_is_seen_by_the_draws_that_keep_it(level):
    """Where it is kept, and where it was taken off a sum that has it: no draw of that point may look healthy."""
    x, *linear = example(40, 10)
    x[2, 7] = torch.nan
    keys = Masks(0, 30, per_point=True).keys(0, torch.arange(9))
    found = thinned(x, *linear, keys, 0.2).isnan().all(-1)
    assert found[2].all()
    assert not found[[0, 1, 3]].any()


def test_keys_of_other_points_are_refused(level):
    x, *linear = example(40, 10)
    keys = Masks(0, 30, per_point=True).keys(0, torch.arange(8))
    with pytest.raises(ValueError, match="shapes of a linear map do not fit"):
        thinned(x, *linear, keys, 0.2)
