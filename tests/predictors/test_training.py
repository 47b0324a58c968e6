"""The training loop: what it does in a step, what it leaves alone, and what it refuses."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.labelled import blobs, generator, network, same_weights
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close
from torch.utils.data import Dataset, TensorDataset

from balent.predictors import MCDropout
from balent.predictors.inputs import as_pairs
from balent.predictors.training import Trained, Training, train

FEW = Training(epochs=3, batch_size=16)


def trained(model=None, data=None, *, seed=0, **settings):
    model, (x, y) = model or network(), data or blobs()
    train(model, x, y, settings=replace(FEW, **settings), generator=generator(seed))
    return model


# ── what a step is ───────────────────────────────────────────────────────────────────────────────


def test_the_first_step_of_adam_moves_every_weight_by_the_learning_rate():
    """m̂/√v̂ = g/|g| after one step: the direction of the gradient, and no more of it."""
    x, y = blobs(12)
    before, model = network(p=0.0), network(p=0.0)
    cross_entropy(before(x), y).backward()
    train(model, x, y, settings=Training(epochs=1, batch_size=12, learning_rate=0.01), generator=generator())
    for old, new in zip(before.parameters(), model.parameters(), strict=True):
        moves = old.grad.abs() > 1e-4  # where ε = 1e-8 of Adam does not count
        assert_close((old - new)[moves], 0.01 * old.grad.sign()[moves], rtol=1e-3, atol=1e-6)


def test_it_learns_what_is_easy_to_learn():
    model, (x, y) = trained(epochs=40, learning_rate=0.01), blobs(300, seed=1)
    assert (model(x).argmax(1) == y).float().mean() > 0.95


@pytest.mark.parametrize(("points", "batch_size", "sizes"), [(33, 32, [17, 16]), (32, 32, [32]), (5, 2, [2, 2, 1])])
def test_the_batches_of_an_epoch_are_nearly_equal(points, batch_size, sizes):
    """A last batch of one point of 33 would stop batch norm, and count 32 times as much as it should."""
    seen = []
    trained(data=blobs(points), epochs=1, batch_size=batch_size, augment=lambda x, _: seen.append(len(x)) or x)
    assert seen == sizes


def test_every_epoch_has_every_point_once_in_another_order():
    x, y = blobs(20)
    seen = []
    trained(data=(x, y), epochs=2, batch_size=20, augment=lambda batch, _: seen.append(batch) or batch)
    first, second = seen
    assert not torch.equal(first, second)
    for epoch in seen:
        assert_close(epoch.sort(0).values, x.sort(0).values, rtol=0, atol=0)


def test_augmentation_draws_from_the_generator_of_the_run():
    def jitter(batch, g):
        return batch + 0.1 * torch.randn(batch.shape, generator=g)

    once, twice = trained(augment=jitter), trained(augment=jitter)
    assert same_weights(once, twice)
    assert not same_weights(once, trained())


def test_weight_decay_shrinks():
    assert trained(weight_decay=1.0, epochs=30)[0].weight.norm() < trained(epochs=30)[0].weight.norm()


def test_progress_counts_epochs():
    seen = []
    x, y = blobs()
    train(network(), x, y, settings=FEW, generator=generator(), progress=lambda *done: seen.append(done))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_batch_norm_and_convolutions_train():
    images, y = torch.randn(33, 1, 8, 8, generator=generator()), torch.arange(33) % 2
    layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout2d(0.5), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    model = nn.Sequential(*layers)
    before = copy.deepcopy(model)
    assert not same_weights(trained(model, (images, y), batch_size=32), before)


# ── what is random, and what stays ───────────────────────────────────────────────────────────────


def test_the_seed_decides_every_bit():
    assert same_weights(trained(seed=1), trained(seed=1))
    assert not same_weights(trained(seed=1), trained(seed=2))


def test_the_random_state_of_torch_is_neither_used_nor_changed():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = trained()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert same_weights(trained(), first)


def test_the_model_ends_in_eval_mode():
    assert not any(part.training for part in trained().modules())


def test_frozen_weights_stay():
    model = network()
    model[0].requires_grad_(False)
    before = copy.deepcopy(model)
    trained(model)
    assert torch.equal(model[0].weight, before[0].weight)
    assert not torch.equal(model[3].weight, before[3].weight)


@pytest.mark.parametrize("warm", [False, True])
def test_a_cold_start_goes_back_to_the_first_weights_and_a_warm_one_goes_on(warm):
    model, settings = network(), replace(FEW, warm_start=warm)
    held = Trained("model", model, settings)
    held.fit(blobs(), generator=generator())
    once = copy.deepcopy(model)
    held.fit(blobs(), generator=generator())
    assert same_weights(model, once) is not warm


# ── labelled sets ────────────────────────────────────────────────────────────────────────────────


class Pairs(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])


@pytest.mark.parametrize(
    "kind",
    [
        lambda x, y: (x, y),
        lambda x, y: (x.numpy(), y.numpy().astype(np.uint8)),
        lambda x, y: (x.tolist(), y.tolist()),
        lambda x, y: TensorDataset(x, y),
        Pairs,
        lambda x, y: Pairs(x.numpy(), y.numpy()),
        lambda x, y: list(zip(x, y, strict=True)),
    ],
    ids=["tensors", "arrays", "lists", "TensorDataset", "Dataset", "Dataset of arrays", "list of pairs"],
)
def test_a_labelled_set_comes_in_many_forms(kind):
    x, y = blobs(7)
    a, b = as_pairs(kind(x, y))
    assert_close(a, x)
    assert_close(b, y)


def test_float64_inputs_and_a_float32_model_go_together():
    """What sklearn hands out is float64."""
    x, y = blobs()
    assert same_weights(trained(data=(x.double(), y)), trained())


def test_a_model_of_keywords_takes_a_dict():
    class Keywords(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, *, values, shift):
            return self.inner(values + shift[:, None])

    x, y = blobs()
    model = trained(Keywords(), as_pairs(({"values": x, "shift": torch.zeros(len(x))}, y)))
    assert same_weights(model.inner, trained())


# ── bad input ────────────────────────────────────────────────────────────────────────────────────

X, Y = blobs(6)
BAD = {
    "a label too large": ((X, torch.tensor([0, 1, 2, 0, 7, 1])), ValueError, r"labels must be 0\.\.2 .* label 4 is 7"),
    "a label below zero": (
        (X, torch.tensor([0, -1, 2, 0, 1, 1])),
        ValueError,
        r"labels must be 0\.\.2 .* label 1 is -1",
    ),
    "no points": ((X[:0], Y[:0]), ValueError, "nothing to learn from: the labelled set is empty"),
    "a label is missing": ((X, Y[:5]), ValueError, "there are 6 points and 5 labels"),
    "one class": ((X, torch.ones(6).long()), ValueError, "at least two classes, but all 6 are class 1.*one_class=True"),
    "labels of fractions": ((X, Y.float()), TypeError, r"whole numbers on one axis, but are torch.float32"),
    "one-hot labels": ((X, torch.eye(3).long()[Y]), TypeError, r"of shape \(6, 3\); one-hot labels become .*argmax"),
    "items of different shapes": ([(X[0], 0), (X[1, :2], 1)], ValueError, r"item 0 has \(4,\) and item 1 has \(2,\)"),
    "no pairs": ([1, 2], TypeError, r"every item of a labelled Dataset is a pair \(x, y\)"),
    "something else": (3, TypeError, r"a tuple \(x, y\) or a Dataset of \(x, y\) pairs, but is of type int"),
}


@pytest.mark.parametrize(("labelled", "error", "message"), BAD.values(), ids=BAD)
def test_bad_labelled_sets_are_refused_in_words(labelled, error, message):
    with pytest.raises(error, match=message):
        Trained("model", network(), FEW).fit(labelled, generator=generator())


def test_one_class_trains_where_it_is_allowed():
    trained(data=(X, torch.ones(6).long()), one_class=True)


def test_a_loss_that_is_nan_says_when_and_what_to_do():
    x, y = blobs(6)
    x[4] = math.nan
    with pytest.raises(
        ValueError, match="nan at epoch 0, step 0; look for NaN in the inputs, then lower learning_rate"
    ):
        trained(data=(x, y), batch_size=6)


def test_a_model_that_gives_no_classes_is_refused():
    with pytest.raises(ValueError, match=r"must give \[batch, classes\], but gave \(3,\) for a batch of 1"):
        trained(nn.Sequential(network(), nn.Flatten(0)))


def test_a_frozen_model_has_nothing_to_train():
    with pytest.raises(ValueError, match="nothing to train: no weight has requires_grad"):
        trained(network().requires_grad_(False))


@pytest.mark.parametrize("setting", ["epochs", "batch_size", "learning_rate"])
def test_settings_are_positive(setting):
    zero = type(getattr(Training(), setting))()
    with pytest.raises(ValueError, match=f"{setting} must be positive, but is 0"):
        Training(**{setting: zero})


class Viewed(nn.Module):
    """A network as many write it: .view takes no image whose colours lie side by side."""

    def __init__(self):
        super().__init__()
        self.conv, self.drop, self.last = nn.Conv2d(3, 4, 3), nn.Dropout(0.5), nn.Linear(4 * 36, 2)

    def forward(self, x):
        return self.last(self.drop(self.conv(x).relu().view(x.shape[0], -1)))


def test_a_network_that_flattens_by_view_is_trained_and_sampled():
    """Bug: images were laid out for speed, and `.view` refused them."""
    predictor = MCDropout(Viewed(), epochs=2)
    x = torch.rand(10, 3, 8, 8)
    predictor.fit((x, torch.arange(10) % 2), generator=torch.Generator())
    assert predictor.sample(3).moments(x).mean.shape == (10, 2)
