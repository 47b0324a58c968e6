"""Every kind of dropout takes its mask from us, while we ask for it, and is torch's own again afterwards."""

import copy
import inspect
import threading

import pytest
import torch
import torch.nn.functional as F
from helpers.examples import normal
from helpers.labelled import generator, network
from helpers.small import seeded
from torch import nn
from torch.testing import assert_close

from balent import MCDropout
from balent.predictors.dropout.calls import Calls, Masked, Place, survey
from balent.predictors.dropout.control import KINDS, controlled, masked
from balent.predictors.dropout.masks import Masks
from balent.predictors.dropout.network import Network
from balent.predictors.inputs import logits_of

POINTS = 5


def ours(kind, x, p, on):
    """A handler that can be told from torch's dropout."""
    return x + 100 if on else x


@pytest.fixture(autouse=True)
def torch_is_left_alone():
    """After each test of this file all functions are torch's, and so is its random state."""
    before, state = {kind: getattr(F, kind) for kind in KINDS}, torch.get_rng_state()
    yield
    assert {kind: getattr(F, kind) for kind in KINDS} == before
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.equal(torch.get_rng_state(), state)


# ── the switch ───────────────────────────────────────────────────────────────────────────────────

MODULES = [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_of_dropout_asks_us(module):
    x = torch.ones(2, 3, 4, 4, 4) if module is nn.Dropout3d else torch.ones(2, 3, 4)
    with controlled(ours):
        assert module(0.5).train()(x).min() == 101
        assert module(0.5).eval()(x).max() == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "attention" not in kind])
def test_every_function_of_dropout_asks_us_with_its_flag(kind):
    """Bug: without a flag, alpha dropout was on; torch has it off."""
    asked, default = [], inspect.signature(getattr(F, kind)).parameters["training"].default
    with controlled(lambda *call: (asked.append((call[0], *call[2:])), call[1])[1]):
        getattr(F, kind)(torch.ones(2, 3, 4), 0.3, True)
        getattr(F, kind)(torch.ones(2, 3, 4), p=0.2, training=False)
        getattr(F, kind)(torch.ones(2, 3, 4))
    assert asked == [(kind, 0.3, True), (kind, 0.2, False), (kind, 0.5, default)]
    assert default is ("alpha" not in kind)


def test_dropout_in_place_changes_its_input():
    """Bug: what reads the input afterwards saw it as it was before."""
    x = torch.ones(3)
    with controlled(ours):
        assert F.dropout(x, inplace=True) is x
        assert F.dropout(torch.ones(3), training=False, inplace=True).max() == 1
    assert x.min() == 101


def test_functions_come_back_after_an_error():
    before = F.dropout
    with pytest.raises(KeyError), controlled(ours):
        raise KeyError
    assert F.dropout is before


def test_contexts_nest_and_the_inner_one_decides():
    x = torch.ones(1)
    with controlled(ours):
        with controlled(lambda kind, x, p, on: -x):
            assert F.dropout(x) == -1
        assert F.dropout(x) == 101
        with controlled(lambda kind, x, p, on: -x):
            assert F.dropout(x) == -1
        assert F.dropout(x) == 101


def test_a_function_of_ones_own_in_place_of_dropout_comes_back(monkeypatch):
    """Bug: what stood there when balent was imported came back instead."""
    mine = lambda *args, **kwargs: "mine"  # noqa: E731
    original = F.dropout
    monkeypatch.setattr(F, "dropout", mine)
    with controlled(ours):
        assert F.dropout(torch.ones(1)) == 101
    assert F.dropout is mine
    monkeypatch.setattr(F, "dropout", original)


def test_a_fast_path_that_was_off_stays_off():
    """Bug: it was switched on."""
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with controlled(ours):
            pass
        assert not torch.backends.mha.get_fastpath_enabled()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_other_threads_keep_their_dropout():
    x, seen = torch.ones(1000), []

    def other():
        g = torch.random.get_rng_state()
        seen.append(F.dropout(x, 0.5, True))
        torch.random.set_rng_state(g)

    with controlled(ours):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert F.dropout(x).min() == 101
    assert set(seen[0].tolist()) == {0.0, 2.0}


def test_threads_may_come_and_go_in_any_order():
    """The first to come is the first to go: the switch waits for the last."""
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    results = {}

    def first():
        with controlled(ours):
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with controlled(lambda kind, x, p, on: -x):
            second_in.set()
            first_out.wait(10)
            results["second"] = float(F.dropout(torch.ones(1)))

    threads = [threading.Thread(target=f) for f in (first, second)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == {"second": -1.0}


# ── attention ────────────────────────────────────────────────────────────────────────────────────

SIZES = {"query": (2, 4, 5, 8), "key": (2, 4, 6, 8), "value": (2, 4, 6, 3)}


def attention_input(**sizes):
    return [normal(*shape, seed=i) for i, shape in enumerate((SIZES | sizes).values())]


def never_looking():
    mask = torch.rand(5, 6, generator=generator()) > 0.3
    mask[2] = False
    return mask


ATTENTION = {
    "plain": ({}, {}),
    "a boolean mask": ({}, {"attn_mask": torch.rand(5, 6, generator=generator()) > 0.3}),
    "a query that may look nowhere": ({}, {"attn_mask": never_looking()}),
    "a mask to add": ({}, {"attn_mask": normal(2, 1, 5, 6, seed=7)}),
    "causal": ({}, {"is_causal": True}),
    "scaled": ({}, {"scale": 0.7}),
    "fewer heads of keys": ({"key": (2, 2, 6, 8), "value": (2, 2, 6, 3)}, {"enable_gqa": True}),
}


@pytest.mark.parametrize(("sizes", "settings"), ATTENTION.values(), ids=ATTENTION)
def test_attention_that_drops_nothing_is_that_of_torch(sizes, settings):
    """The weights that we drop from are those that torch would drop from."""
    inputs = attention_input(**sizes)
    expected = F.scaled_dot_product_attention(*inputs, **settings)
    with controlled(lambda kind, x, p, on: x):
        found = F.scaled_dot_product_attention(*inputs, dropout_p=0.5, **settings)
        unchanged = F.scaled_dot_product_attention(*inputs, **settings)
    assert_close(found, expected)
    assert torch.equal(unchanged, expected)


def test_attention_drops_weights_by_hand():
    """Two keys with equal weights ½; the second one is dropped, so the first counts ½ / (1 - ½) = 1 times its value."""
    query, key, value = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.tensor([[[[3.0], [5.0]]]])
    with controlled(lambda kind, x, p, on: masked(kind, x, p, torch.tensor([1.0, 0.0]))):
        assert float(F.scaled_dot_product_attention(query, key, value, dropout_p=0.5)) == 3


class Encoder(nn.Module):
    """Words to classes through one encoder layer, with the batch first or second."""

    def __init__(self, batch_first, p=0.3, kind="layer"):
        super().__init__()
        self.batch_first, self.kind = batch_first, kind
        if kind == "layer":
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, p, batch_first=batch_first)
        else:
            self.layer = nn.MultiheadAttention(8, 2, p, batch_first=batch_first)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        x = x if self.batch_first else x.transpose(0, 1)
        y = self.layer(x) if self.kind == "layer" else self.layer(x, x, x, need_weights=self.kind == "weights")[0]
        return self.last(y.mean(1 if self.batch_first else 0))


@pytest.mark.parametrize("kind", ["layer", "attention", "weights"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("per_point", [True, False])
@torch.inference_mode()
def test_a_point_has_its_own_masks_in_attention_too(kind, batch_first, per_point):
    """Alone it has the logits that it has among others: heads and words belong to their point, not to a row."""
    net = Network(seeded(Encoder, batch_first, kind=kind))
    x, positions, masks = normal(POINTS, 4, 8, dtype=torch.float32), torch.arange(POINTS), Masks(1, 6, per_point)
    together = net(x, masks, positions)
    alone = [net(x[i : i + 1], masks, positions[i : i + 1]) for i in range(POINTS)]
    assert_close(together, torch.cat(alone, 1), rtol=1e-4, atol=1e-5)
    assert together.std(0).min() > 1e-3


@pytest.mark.parametrize("batch_first", [True, False])
@torch.inference_mode()
def test_an_encoder_layer_under_masks_that_keep_all_is_that_of_torch(batch_first):
    """At so small a p that no unit is dropped; the layer in eval mode takes torch's fused way."""
    model = seeded(Encoder, batch_first, p=1e-9).eval()
    x = normal(POINTS, 4, 8, dtype=torch.float32)
    assert_close(Network(model)(x, Masks(0, 1))[0], model(x), rtol=1e-4, atol=1e-6)


# ── formulas ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["dropout", "dropout1d", "dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout_with_the_mask_of_torch_is_that_of_torch(kind, p):
    """torch's mask is read off its output: where it keeps a unit of 1 and one of 2, their outputs differ."""
    x, shape = normal(4, 6, 5), (4, 6) if "1d" in kind or "2d" in kind or "feature" in kind else (4, 6, 5)
    with torch.random.fork_rng(devices=[]):
        outputs = []
        for value in (torch.ones_like(x), 2 * torch.ones_like(x), x):
            torch.manual_seed(3)
            outputs.append(getattr(F, kind)(value[..., None] if kind == "dropout2d" else value, p, True).view(x.shape))
    kept = (outputs[0] != outputs[1]).double()
    assert 0 < kept.mean() < 1
    if len(shape) == 2:
        assert torch.equal(kept, kept[..., :1].expand_as(kept))
    assert_close(masked(kind, x, p, kept), outputs[2])


@pytest.mark.parametrize("p", [0.1, 0.3])
def test_alpha_dropout_keeps_mean_and_variance(p):
    """Of standard normal numbers: 4.9 standard errors of the mean and the variance, of which the latter is √(μ₄)."""
    x = normal(1000, 400)
    kept = Masks(0, 1000).kept(0, 400, p).double()
    out = masked("alpha_dropout", x, p, kept)
    fourth = float((out - out.mean()).pow(4).mean())
    assert abs(float(out.mean())) < 4.9 / x.numel() ** 0.5
    assert abs(float(out.var()) - 1) < 4.9 * (fourth / x.numel()) ** 0.5


def handler(masks, points, place=(0, 1), positions=None):
    calls = Calls(numbers={("d", 0): 0}, places={("d", 0): Place(*place)})
    return Masked(masks.part(0, 1), calls, lambda: "d", points, positions)


def test_shared_masks_of_elements_and_channels_by_hand():
    x, masks = normal(POINTS, 6, 2), Masks(4, 1)
    by_element = handler(masks, POINTS)("dropout", x, 0.25, True)
    by_channel = handler(masks, POINTS)("dropout1d", x, 0.25, True)
    assert_close(by_element, x * masks.kept(0, 12, 0.25).double().view(6, 2) / 0.75)
    assert_close(by_channel, x * masks.kept(0, 6, 0.25).double().view(6, 1) / 0.75)


@pytest.mark.parametrize(("kind", "shape"), [("dropout1d", (POINTS, 6)), ("dropout3d", (POINTS, 3, 2, 2))])
def test_inputs_that_torch_takes_for_one_point_are_dropped_by_rows(kind, shape):
    """Bug: torch takes [N, F] for channels and places of one point, and drops rows; ours dropped columns."""
    x, masks = normal(*shape), Masks(4, 1, per_point=True)
    found = handler(masks, POINTS, positions=torch.arange(POINTS))(kind, x, 0.5, True)
    kept = masks.kept(0, 1, 0.5, torch.arange(POINTS))[0].double()
    assert 0 < kept.sum() < POINTS
    assert_close(found, x * kept.view(-1, *(1 for _ in shape[1:])) * 2)


def test_points_may_be_on_any_axis_and_have_several_rows():
    x, positions = normal(POINTS, 3, 4), torch.tensor([9, 8, 7, 3, 1])
    masks = Masks(4, 1, per_point=True)
    expected = handler(masks, POINTS, positions=positions)("dropout", x, 0.5, True)
    second = handler(masks, POINTS, (1, 1), positions)("dropout", x.transpose(0, 1), 0.5, True)
    rows = handler(masks, POINTS, (0, 3), positions)("dropout", x.reshape(-1, 4), 0.5, True)
    assert torch.equal(second.transpose(0, 1), expected)
    assert torch.equal(rows.view_as(x), expected)


def test_calls_that_are_off_pass_and_take_no_layer():
    x, drop = normal(POINTS, 6), handler(Masks(4, 1), POINTS)
    drop.calls.off = {("dropout", 0.5)}
    assert drop("dropout", x, 0.5, False) is x
    assert drop("dropout", x, 0.0, True) is x
    assert_close(drop("dropout", x, 0.5, True), x * Masks(4, 1).kept(0, 6, 0.5).double() / 0.5)


# ── the survey ───────────────────────────────────────────────────────────────────────────────────


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(4, 6), nn.Linear(6, 3), nn.Dropout(0.1)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        x = F.dropout(self.norm(self.first(x)), 0.2, self.training)
        x = F.dropout(x, 0.3)
        return self.last(F.dropout(self.drop(x), 0.4, False))


def test_the_survey_tells_who_drops_what():
    training = survey(seeded(Everything), logits_of, normal(2, 4, dtype=torch.float32), True)
    evaluation = survey(seeded(Everything), logits_of, normal(2, 4, dtype=torch.float32), False)
    assert [(c.p, c.owner, c.on) for c in training.calls] == [
        (0.2, "", True),
        (0.3, "", True),
        (0.1, "drop", True),
        (0.4, "", False),
    ]
    assert [c.on for c in evaluation.calls] == [False, True, False, False]
    assert {c.shape for c in training.calls} == {(2, 6)}
    assert evaluation.random == []


# ── the caller's module ──────────────────────────────────────────────────────────────────────────


def test_sampling_leaves_no_trace_on_a_module_with_everything():
    """Flags of each part, buffers of batch norm, gradients, hooks, forward functions."""
    model = seeded(Everything)
    model.train()
    model.drop.eval()
    model.first.weight.requires_grad_(False)
    calls = []
    model.last.register_forward_hook(lambda *_: calls.append(1))
    before = copy.deepcopy(model.state_dict())
    attributes = {name: set(part.__dict__) for name, part in model.named_modules()}
    flags = [part.training for part in model.modules()]
    sampled = MCDropout(model).sample(4, seed=0)
    x = normal(6, 4, dtype=torch.float32)
    sampled(x), sampled.moments(x, torch.arange(6))
    assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert [part.training for part in model.modules()] == flags
    assert {name: set(part.__dict__) for name, part in model.named_modules()} == attributes
    assert [p.requires_grad for p in model.first.parameters()] == [False, True]
    assert len(model.last._forward_hooks) == 1


def test_batch_norm_is_in_eval_mode_even_where_its_owner_is_training():
    """Else a point would depend on its neighbours."""
    sampled = MCDropout(seeded(Everything).train()).sample(4, seed=0)
    x = normal(6, 4, dtype=torch.float32)
    assert_close(sampled(x)[:2], sampled(x[:2]))


def test_a_batch_is_left_as_it_was_by_networks_that_work_in_place():
    """Bug: a ReLU in place as the first layer changed the caller's pool."""
    model = nn.Sequential(nn.ReLU(inplace=True), *network())
    x = normal(6, 4, dtype=torch.float32)
    before = x.clone()
    for fast in (True, False):
        MCDropout(model, fast=fast).sample(3, seed=0).moments(x, torch.arange(6))
        assert torch.equal(x, before)
