"""Augmentation: every change as its definition has it, at the rate it should have, from the generator alone."""

import math

import numpy as np
import pytest
import torch
from helpers.labelled import generator, same_weights
from reference import augment as reference
from torch import nn
from torch.testing import assert_close

from balent.predictors import augment
from balent.predictors.augment import AUGMENTATIONS, Views
from balent.predictors.training import Training, train

NOTHING = Views(area=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0, jitter=0.0, gray=0.0)


def pictures(n=4, channels=3, height=6, width=6, seed=0):
    return torch.rand(n, channels, height, width, generator=generator(seed))


# ── colours ──────────────────────────────────────────────────────────────────────────────────────


def colours():
    """Corners of the cube of colours, greys, and colours between: where channels tie, a formula for hue can slip."""
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3)
    few = torch.tensor([[0.3, 0.3, 0.3], [0.7, 0.2, 0.2], [0.2, 0.7, 0.7], [0.5, 0.5, 0.1]])
    return torch.cat([corners, few, torch.rand(13, 3, generator=generator())]).T.reshape(1, 3, 5, 5)


@pytest.mark.parametrize("change", ["brightness", "contrast", "saturation", "hue"])
@pytest.mark.parametrize("factor", [-0.3, 0.0, 0.1, 0.6, 1.0, 1.4])
def test_a_change_of_colour_is_what_it_does_to_each_pixel(change, factor):
    if change != "hue" and factor < 0:
        factor = 2.0
    image = colours()
    expected = getattr(reference, change)(image[0].double().numpy(), factor)
    found = getattr(augment, change)(image, torch.tensor([factor]))
    assert_close(found[0].double(), torch.from_numpy(expected), rtol=0, atol=2e-6)


def test_each_image_has_a_factor_of_its_own():
    image = colours()
    for change, _ in augment.ADJUSTMENTS:
        both = change(image.repeat(2, 1, 1, 1), torch.tensor([0.2, 0.9]))
        for i, factor in enumerate((0.2, 0.9)):
            assert_close(both[i : i + 1], change(image, torch.tensor([factor])), rtol=0, atol=1e-6)


def test_gray_is_the_luma_of_a_pixel():
    image = colours()
    expected = reference.each(image[0].double().numpy(), lambda pixel: [reference.gray(pixel)] * 3)
    found = Views(area=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0, jitter=0.0, gray=1.0)(image, generator())
    assert_close(found[0].double(), torch.from_numpy(expected), rtol=0, atol=1e-6)


# ── crops ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("flip", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(8, 8), (6, 9)])
def test_a_crop_is_a_box_of_the_image_scaled_bilinearly(flip, shape):
    """Which box it was is found from an image of coordinates: bilinear sampling of a ramp is the ramp itself."""
    height, width = shape
    y, x = ((torch.arange(n) + 0.5) / n for n in shape)
    ramps = torch.stack([y[:, None].expand(shape), x[None].expand(shape), pictures(1, 1, *shape)[0, 0]])[None]
    views = Views(flip=flip, jitter=0.0, gray=0.0, area=(0.2, 0.4), size=5)(ramps.repeat(20, 1, 1, 1), generator())
    for view in views:
        top, bottom, left, right = view[0, 1, 2], view[0, 3, 2], view[1, 2, 1], view[1, 2, 3]
        sides = 5 / 2 * (bottom - top), 5 / 2 * (right - left)  # two of five pixels lie between
        corner = view[0, 2, 2] - sides[0] / 2, view[1, 2, 2] - sides[1] / 2
        expected = reference.crop(
            ramps[0].double().numpy(), float(corner[1]), float(corner[0]), float(sides[1]), float(sides[0]), 5
        )
        assert_close(view[2].double(), torch.from_numpy(expected)[2], rtol=0, atol=1e-4)
        assert (sides[1] < 0) == bool(flip)
        assert 0.2 - 1e-3 <= float(sides[0] * sides[1].abs()) <= 0.4 + 1e-3
        assert 3 / 4 - 1e-2 <= float(sides[1].abs() * width / (sides[0] * height)) <= 4 / 3 + 1e-2


def test_boxes_have_uniform_areas_and_fit():
    """Area uniform on [.08, .5] has mean .29 and deviation .42/√12: the mean of 4000 errs by less than 5 of .0019."""
    w, h = augment.boxes(4000, 1.0, (0.08, 0.5), (3 / 4, 4 / 3), generator())
    assert max(float(w.max()), float(h.max())) <= 1
    assert abs(float((w * h).mean()) - 0.29) < 5 * 0.42 / math.sqrt(12 * 4000)
    assert abs(float((w / h).log().mean())) < 5 * math.log(4 / 3) / math.sqrt(3 * 4000)


def test_where_no_box_fits_the_whole_image_is_taken():
    """Four fifths of the area, four times as wide as high: √3.2 is more than the image has."""
    w, h = augment.boxes(3, 1.0, (0.8, 0.8), (4.0, 4.0), generator())
    assert_close(w, torch.ones(3))
    assert_close(h, torch.ones(3))


def test_the_whole_image_unchanged_is_the_image():
    images = pictures(3, 3, 7, 5)
    assert_close(NOTHING(images, generator()), images, rtol=0, atol=1e-5)


# ── the four together ────────────────────────────────────────────────────────────────────────────


def test_each_change_falls_on_its_share_of_the_images():
    """Counts of 2000 with chance p have deviation √(2000 p (1 - p)): five of them, an error of one in a million."""
    images = pictures(1, 3, 4, 4).repeat(2000, 1, 1, 1)

    def share(**chance):
        whole = {"area": (1.0, 1.0), "ratio": (1.0, 1.0), "flip": 0.0, "jitter": 0.0, "gray": 0.0}
        views = Views(**{**whole, **chance})(images, generator(3))
        return float(((views - images).abs().amax((1, 2, 3)) > 1e-4).float().mean())

    for name, p in (("flip", 0.5), ("jitter", 0.8), ("gray", 0.2)):
        assert abs(share(**{name: p}) - p) < 5 * math.sqrt(p * (1 - p) / 2000)


@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_augmentation_keeps_shape_and_range_and_follows_the_generator(name, channels):
    images = pictures(8, channels)
    before = images.clone()
    state = torch.get_rng_state()
    once, again, other = (AUGMENTATIONS[name](images, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert torch.equal(images, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert once.shape == images.shape
    assert 0 <= float(once.min()) <= float(once.max()) <= 1


def test_colours_last_or_first_in_memory_give_the_same_views():
    images = pictures(8, 3, 8, 8)
    views = Views()
    last = views(images.to(memory_format=torch.channels_last), generator())
    assert_close(last, views(images, generator()), rtol=0, atol=1e-6)


# ── in training ──────────────────────────────────────────────────────────────────────────────────


def convolution(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 2))


def trained(augment="", seed=0):
    model = convolution()
    settings = Training(epochs=2, batch_size=4, augment=augment)
    train(model, pictures(10), torch.arange(10) % 2, settings=settings, generator=generator(seed))
    return model


def test_training_takes_augmentations_by_name():
    by_name, by_hand = trained("crop-flip-jitter-gray"), trained(Views())
    assert same_weights(by_name, by_hand)
    assert same_weights(by_name, trained("crop-flip-jitter-gray"))
    assert not same_weights(by_name, trained())
    assert not same_weights(by_name, trained("crop-flip-jitter-gray", seed=1))


def test_no_augmentation_draws_nothing():
    """Records of runs without augmentation are as they were before there was any."""
    assert same_weights(trained(""), trained(lambda batch, _: batch))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.rand(4, 5), r"images \[batch, 1 or 3 channels, height, width\], but \(4, 5\) was given"),
        (torch.rand(4, 2, 5, 5), r"but \(4, 2, 5, 5\) was given"),
        (torch.rand(4, 3, 5, 5) * 255, "images from 0 to 1, but these go from .* to 25"),
    ],
)
def test_what_is_no_image_is_refused_in_words(images, message):
    settings = Training(epochs=1, augment="crop-flip")
    model = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(images.shape[1:])), 2))
    with pytest.raises(ValueError, match=message):
        train(model, images, torch.arange(4) % 2, settings=settings, generator=generator())


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match="there is no augmentation 'crop-flp'; did you mean crop-flip"):
        Training(augment="crop-flp")
