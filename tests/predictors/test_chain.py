"""Dropout and linear layers for all draws together: by hand, and against loops over draws."""

import pytest
import torch
import torch.nn.functional as F
from helpers.examples import normal
from helpers.small import seeded
from torch import fx, nn
from torch.testing import assert_close

from balent.predictors.dropout.chain import Chain, Thinned
from balent.predictors.dropout.control import controlled
from balent.predictors.dropout.masks import Masks


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def chain(*layers):
    """The chain of these layers, the first of which is a dropout."""
    return Chain.of(fx.symbolic_trace(seeded(lambda: nn.Sequential(*layers).double())))


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("p", [0.25, 0.5])
def test_a_sum_of_units_by_hand(p):
    """The weights are 1, the units 1, 10, 100, …: the logit tells which of them are kept."""
    linear = nn.Linear(6, 1, bias=False).double()
    linear.weight.fill_(1)
    masks = Masks(0, 8)
    units = 10.0 ** torch.arange(6).double()[None]
    found = chain(nn.Dropout(p), linear)(units, masks, None)
    assert_close(found[:, 0, 0] * (1 - p), masks.kept(0, 6, p).double() @ units[0])


def test_dropout_of_nothing_and_of_everything():
    """A draw that keeps no unit has the bias for its logits, one that keeps all 1/(1 - p) times the rest."""
    linear = nn.Linear(3, 2).double()
    x, masks = normal(4, 3), Masks(3, 60)
    found = chain(nn.Dropout(0.5), linear)(x, masks, None)
    kept = masks.kept(0, 3, 0.5).sum(1)
    assert_close(found[kept == 0], linear.bias.expand(int((kept == 0).sum()), 4, 2))
    full = F.linear(2 * x, linear.weight, linear.bias)
    assert_close(found[kept == 3], full.expand(int((kept == 3).sum()), 4, 2))
    assert 0 < int((kept == 0).sum()) < 60


# ── the definition, draw by draw ─────────────────────────────────────────────────────────────────


def by_loops(stages, x, masks, positions):
    """Each draw a pass of its own: mask, functions, linear map; and again."""
    draws = []
    for i in range(masks.n):
        h = x
        for layer, stage in enumerate(stages):
            kept = masks.part(i, i + 1).kept(layer, h.shape[1], stage.p, positions)[0].double()
            kept = kept.view(*kept.shape, *(1,) * (h.ndim - 2)) if stage.channels else kept
            h = h * (kept / (1 - stage.p))
            for f in stage.passing:
                h = f(h)
            h = stage.linear(h)
        draws.append(h)
    return torch.stack(draws)


STAGES = {
    "linear": ([nn.Dropout(0.2), nn.ReLU(), nn.Linear(20, 4)], (20,)),
    "linear, mostly dropped": ([nn.Dropout(0.8), nn.Linear(20, 4, bias=False)], (20,)),
    "two linear": ([nn.Dropout(0.3), nn.Linear(20, 9), nn.Dropout(0.6), nn.LeakyReLU(), nn.Linear(9, 4)], (20,)),
    "convolution": (
        [nn.Dropout2d(0.4), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(3, 5, 3, padding=1),
         nn.Dropout2d(0.3), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 2 * 3, 4)], (3, 9, 12),
    ),
    "convolution and two linear": (
        [nn.Dropout2d(0.5), nn.Conv2d(3, 5, 2, bias=False), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(5 * 12, 6),
         nn.Dropout(0.5), nn.ReLU(), nn.Linear(6, 4)], (3, 4, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("layers", "shape"), STAGES.values(), ids=STAGES)
@pytest.mark.parametrize("masks", [Masks(1, 7), Masks(1, 7, per_point=True), Masks(1, 7, design="stratified")], ids=str)
@pytest.mark.parametrize("points", [1, 6, 70])
def test_all_draws_together_are_the_draws_one_by_one(layers, shape, masks, points):
    """70 points are more than a convolution takes at a time."""
    found, x = chain(*layers), normal(points, *shape)
    positions = torch.arange(points) * 3 + 1
    expected = by_loops(found.stages, x, masks, positions if masks.per_point else None)
    assert_close(found(x, masks, positions), expected, rtol=1e-9, atol=1e-11)


def test_sub_networks_are_thin():
    """Only the weights between units that a draw keeps."""
    found, masks = chain(*STAGES["two linear"][0]), Masks(1, 5)
    thin = Thinned(found.stages, masks, 20)
    kept = masks.kept(1, 9, 0.6) > 0
    assert [weights[0][1].shape for weights in thin.weights] == [(int(row.sum()), 4) for row in kept]
    assert thin.few_dropped
    assert [len(units) for units in thin.units] == [int(20 - row.sum()) for row in masks.kept(0, 20, 0.3)]


# ── which graphs are chains ──────────────────────────────────────────────────────────────────────


def test_the_words_are_those_of_the_stages():
    words = chain(*STAGES["convolution and two linear"][0]).words
    assert (
        words
        == "channel dropout 0.5 → Conv2d, channel dropout 0.5 → Linear, dropout 0.5 → Linear for all draws together"
    )


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 3)],
        [nn.Dropout(0.5), nn.Dropout(0.5), nn.Linear(4, 3)],
        [nn.Dropout(0.5), nn.Linear(4, 3), nn.Linear(3, 3)],
        [nn.Dropout(0.5), nn.Linear(4, 3), nn.ReLU()],
        [nn.Dropout(0.5), nn.Linear(4, 3), nn.Dropout(0.5)],
        [nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(4, 3)],
        [nn.Dropout2d(0.5), nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(3, 3)],
        [nn.Dropout2d(0.5), nn.Conv2d(2, 3, 2), nn.Dropout2d(0.5), nn.Conv2d(3, 3, 1)],
        [nn.Dropout2d(0.5), nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Dropout(0.5), nn.Linear(3, 3)],
        [nn.Dropout2d(0.5), nn.Conv2d(2, 3, 2), nn.Dropout2d(0.5), nn.Flatten(2), nn.Linear(4, 3)],
        [nn.AlphaDropout(0.5), nn.Linear(4, 3)],
        [nn.Dropout(0.5), nn.Bilinear(4, 4, 3)],
        [nn.Linear(4, 3)],
    ],
    ids=lambda layers: " ".join(type(layer).__name__ for layer in layers),
)
def test_what_is_no_chain_is_not_taken_for_one(layers):
    try:
        traced = fx.symbolic_trace(nn.Sequential(*layers))
    except TypeError:  # two inputs
        return
    assert Chain.of(traced) is None


def test_a_value_used_twice_is_no_chain():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.d, self.a = nn.Dropout(0.5), nn.Linear(4, 4)

        def forward(self, x):
            x = self.d(x)
            return self.a(x) + x

    assert Chain.of(fx.symbolic_trace(Skip())) is None


def test_the_switch_of_dropout_is_not_needed():
    """A chain never calls dropout: masks are in its weights."""

    def refuse(*_):
        raise AssertionError

    with controlled(refuse):
        assert chain(nn.Dropout(0.5), nn.Linear(4, 3))(normal(2, 4), Masks(0, 3), None).shape == (3, 2, 3)
