"""Views of points: what is read equals the array that was never made."""

import numpy as np
import pytest
import torch
from helpers import labelled
from helpers.formats import pixels
from torch import nn

from balent.data.formats.contents import Data, all_labelled, redundant
from balent.data.pool import as_source
from balent.data.sources import load
from balent.data.views import Images, Repeated
from balent.loop.learner import Learner
from balent.predictors import MCDropout

IMAGES = Images(pixels(7, 3, 4, 5))
PLAIN = torch.from_numpy(pixels(7, 3, 4, 5)).float() / 255
PLACES = [2, -1, slice(None), slice(1, 5), slice(6, 1, -2), torch.tensor([5, 0, 5]), np.array([3, 1]), [6, 2]]


@pytest.mark.parametrize("at", PLACES, ids=str)
def test_images_are_read_as_floats_between_0_and_1(at):
    rows = list(range(7))[at] if isinstance(at, slice) else at
    assert torch.equal(IMAGES[at], PLAIN[rows])
    assert IMAGES[at].dtype == torch.float32


def test_what_is_read_of_a_mapped_file_can_be_written_to_and_the_file_stays_as_it_is(tmp_path):
    np.save(tmp_path / "x.npy", pixels(2, 1, 3, 3))
    images = Images(np.load(tmp_path / "x.npy", mmap_mode="r"))
    images[0].zero_()
    assert np.array_equal(np.load(tmp_path / "x.npy"), pixels(2, 1, 3, 3))


@pytest.mark.parametrize("array", [np.zeros((2, 3, 4)), np.zeros((2, 3, 4), np.uint8), np.zeros((1, 1, 2, 2))])
def test_images_are_bytes_with_four_axes(array):
    with pytest.raises(TypeError, match="bytes"):
        Images(array)


@pytest.mark.parametrize("source", [PLAIN, IMAGES], ids=["tensor", "images"])
@pytest.mark.parametrize(
    "at", [*PLACES, 20, slice(5, 9), slice(8, 13), slice(14, 14), torch.tensor([20, 6, 13])], ids=str
)
def test_a_repeated_pool_is_what_copies_would_be(source, at):
    copies = torch.cat([PLAIN] * 3)
    rows = list(range(21))[at] if isinstance(at, slice) else at
    assert torch.equal(Repeated(source, 3)[at], copies[rows])


def test_a_slice_within_one_copy_is_no_copy_at_all():
    assert Repeated(PLAIN, 3)[8:12].data_ptr() == PLAIN[1:5].data_ptr()


@pytest.mark.parametrize("at", [21, torch.tensor([0, 21]), np.array([-22])])
def test_positions_outside_are_refused_though_a_remainder_would_exist(at):
    with pytest.raises(IndexError):
        Repeated(PLAIN, 3)[at]


@pytest.mark.parametrize("source", [IMAGES, Repeated(IMAGES, 2), Repeated(PLAIN, 2)], ids=["images", "twice", "tensor"])
def test_a_pool_slices_views(source):
    pool = as_source(source)
    assert len(pool) == len(source)
    assert torch.equal(pool[2:6], PLAIN[2:6])
    assert torch.equal(pool[torch.tensor([6, 0])], PLAIN[[6, 0]])
    assert torch.equal(torch.cat([x for x, _ in pool.blocks(3)])[:7], PLAIN)


@pytest.mark.parametrize("view", [Images, lambda raw: Repeated(Images(raw), 1)], ids=["images", "repeated"])
def test_a_learner_asks_the_same_of_bytes_as_of_floats(view):
    """A pool of bytes is the pool of floats that it stands for: same model, same scores, same picks."""
    raw = pixels(60, 1, 4, 4)
    labels = torch.from_numpy(raw.reshape(60, -1).mean(1) > 127).long()

    def asked(pool):
        network = nn.Sequential(nn.Flatten(), *labelled.network(16, 2))
        learner = Learner(MCDropout(network, epochs=3), pool, draws=10, start=[0, 1, 2, 3, 4, 5])
        learner.tell(learner.ask(6).indices, labels[:6])
        return learner.ask(5)

    ours, theirs = asked(view(raw)), asked(torch.from_numpy(raw).float() / 255)
    assert ours.indices.tolist() == theirs.indices.tolist()
    assert torch.equal(ours.scores, theirs.scores)


def test_redundant_pools_repeat_labels_and_leave_the_test_set():
    data = load("moons")
    thrice = redundant(data, 3)
    assert thrice.x_train.shape == (6000, 2)
    assert torch.equal(thrice.y_train, torch.cat([data.y_train] * 3))
    assert thrice.x_test is data.x_test
    assert redundant(data, 1) is data
    six = redundant(redundant(data, 2), 3)
    assert torch.equal(six.x_train[:], torch.cat([data.x_train] * 6))
    assert torch.equal(six.y_train, torch.cat([data.y_train] * 6))
    assert torch.equal(load("3xmoons").x_train[:], thrice.x_train[:])
    with pytest.raises(ValueError, match="times must be 1 or more, but is 0"):
        redundant(data, 0)


def test_fifty_copies_take_the_memory_of_one():
    once = torch.zeros(1000, 100)
    assert Repeated(once, 50).source is once
    assert len(Repeated(once, 50)) == 50_000


def test_an_experiment_needs_every_label():
    x, y = torch.zeros(4, 2), torch.tensor([0, 1, -1, -1])
    with pytest.raises(ValueError, match="2 of 4 points have none"):
        all_labelled(Data(x, y, x, y.abs(), 2))
    with pytest.raises(ValueError, match="the test set is empty"):
        all_labelled(Data(x, y.abs(), x[:0], y[:0], 2))
    assert all_labelled(Data(x, y.abs(), x, y.abs(), 2)).classes == 2
