"""All draws of a convolution between two dropouts: against one pass for each draw, for every kernel of this machine."""

import pytest
import torch
import torch.nn.functional as F
from helpers.examples import normal
from torch.testing import assert_close

from balent.kernels.layers import Convolved
from balent.predictors.dropout.chain import pooled

# in and out channels, images, kernel, pool, units: channels that are no multiple of 4, places that fill no vector or
# more than one, margins that pooling leaves out, units beyond 64, a window that is not compiled.
SHAPES = {
    "as the paper's": (32, 64, (12, 12), 5, 2, 128),
    "odd": (3, 5, (9, 7), 3, 2, 7),
    "without pooling": (2, 4, (8, 9), 2, 1, 65),
    "windows of 9, a margin": (5, 6, (13, 12), 3, 3, 3),
    "windows of 16": (3, 3, (11, 11), 2, 4, 4),
    "one place, one channel": (1, 1, (3, 3), 3, 1, 1),
}


def example(shape, points, draws, per_point, dtype=torch.float64):
    """Images, weights and masks of such a shape: half of the channels are kept, all or none by some draws."""
    inputs, out, size, side, pool, units = shape
    places = (size[0] - side + 1) // pool * ((size[1] - side + 1) // pool)
    made = (normal(*dims, seed=i) for i, dims in enumerate([(points, inputs, *size), (out, inputs, side, side), (out,),
                                                            (units, out * places), (units,)]))  # fmt: skip
    images, weight, bias, linear, shift = (x.to(dtype) for x in made)
    rows = points if per_point else 1
    kept, after = (normal(draws, rows, n, seed=9 + n).gt(0).to(dtype) for n in (inputs, out))
    kept[0], after[-1], kept[-1] = 0, 0, 1
    return images, (weight, bias), (linear, shift), kept, after


def convolved(images, convolution, linear, kept, after, *, pool, slope):
    return Convolved(*convolution, *linear, pool, slope)(images, kept, after)


def draw_by_draw(images, convolution, linear, kept, after, *, pool, slope):
    draws = []
    for keep, then in zip(kept, after, strict=True):
        z = F.conv2d(images * keep[..., None, None], *convolution) * then[..., None, None]
        draws.append(F.linear(F.leaky_relu(F.max_pool2d(z, pool), slope).flatten(1), *linear))
    return torch.stack(draws, 1)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("per_point", [False, True])
@pytest.mark.parametrize("slope", [0.0, 0.1, 1.0])
def test_all_draws_together_are_the_draws_one_by_one(kernel, shape, per_point, slope):
    """The sums are of float32, some hundred terms of size 1 in each layer."""
    settings = {"pool": shape[4], "slope": slope}
    expected = draw_by_draw(*example(shape, 18, 11, per_point), **settings)
    found = convolved(*example(shape, 18, 11, per_point, torch.float32), **settings)
    assert_close(found.double(), expected, rtol=0, atol=2e-6 * float(expected.abs().max()))


def test_plain_torch_is_exact_in_double_precision():
    settings = {"pool": 2, "slope": 0.2}
    x = example(SHAPES["odd"], 40, 6, per_point=True)
    assert_close(convolved(*x, **settings), draw_by_draw(*x, **settings), rtol=1e-12, atol=1e-12)


def test_a_point_has_the_same_bits_whatever_is_beside_it(level):
    images, *weights, kept, after = example(SHAPES["odd"], 20, 9, True, torch.float32)
    whole = convolved(images, *weights, kept, after, pool=2, slope=0.0)
    for some in (slice(0, 1), slice(3, 8), slice(19, 20)):
        part = convolved(images[some], *weights, kept[:, some], after[:, some], pool=2, slope=0.0)
        assert torch.equal(part, whole[some])


def test_two_threads_give_the_bits_of_one(level, request):
    x = example(SHAPES["odd"], 30, 9, True, torch.float32)
    one = convolved(*x, pool=2, slope=0.0)
    request.addfinalizer(lambda: torch.set_num_threads(1))
    torch.set_num_threads(2)
    assert torch.equal(convolved(*x, pool=2, slope=0.0), one)


def test_a_pixel_that_is_no_number_is_seen_by_the_draws_that_keep_its_channel(level):
    images, *weights, kept, after = example(SHAPES["odd"], 4, 30, True, torch.float32)
    images[1, 0] = torch.nan
    found = convolved(images, *weights, kept, after, pool=2, slope=0.0).isnan()
    assert not found[[0, 2, 3]].any()
    assert torch.equal(found[1].any(-1), (kept[:, 1, 0] > 0) & (after[:, 1] > 0).any(-1))


def test_masks_of_another_pool_are_refused(level):
    images, *weights, kept, after = example(SHAPES["odd"], 4, 3, True, torch.float32)
    with pytest.raises(ValueError, match="shapes of a convolution do not fit"):
        convolved(images, *weights, kept[:, :2], after[:, :2], pool=2, slope=0.0)


@pytest.mark.parametrize("side", [1, 2, 3])
def test_max_pooling_is_that_of_torch(side):
    x = normal(3, 2, 10, 8)
    assert torch.equal(pooled(x, side), F.max_pool2d(x, side))
