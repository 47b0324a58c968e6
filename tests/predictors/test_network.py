"""Every way to run a network gives the same numbers for the same masks, and says which way it is and why."""

import copy
import math
import pickle
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.examples import normal
from helpers.small import NETWORKS, flat, head, inputs, seeded
from torch import nn
from torch.nn.functional import dropout as dropout_by_name
from torch.testing import assert_close

from balent import MCDropout
from balent.predictors.dropout.masks import Masks
from balent.predictors.dropout.network import Network

POINTS, DRAWS = 7, 5
POSITIONS = torch.tensor([3, 100, 0, 7, 8, 9, 5])

every = pytest.mark.parametrize("name", NETWORKS)
both = pytest.mark.parametrize("per_point", [False, True], ids=["shared", "per-point"])


@cache
def made(name):
    make, data, _ = NETWORKS[name]
    return seeded(make), data(POINTS)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def close(found, expected, share=1e-4):
    """The largest absolute difference is at most this share of the largest logit."""
    assert_close(found, expected, rtol=0, atol=share * float(expected.abs().max()))


# ── equality ─────────────────────────────────────────────────────────────────────────────────────


@every
@both
def test_the_fast_way_gives_what_the_plain_way_gives(name, per_point):
    """Largest absolute difference at most 1e-4 of the logits' scale; in fact it is some 1e-7."""
    model, x = made(name)
    masks = Masks(1, 2 if "ResNet" in name else DRAWS, per_point)
    quick, plain = Network(model), Network(model, fast=False)
    expected = plain(x, masks, POSITIONS)
    close(quick(x, masks, POSITIONS), expected)
    assert expected.shape[:2] == (masks.n, POINTS)
    assert quick.plan.startswith(NETWORKS[name][2])
    assert plain.plan == "plainly: the whole network runs once for each draw (as asked)"


@pytest.mark.parametrize("name", ["features of the paper", "three stages", "padding", "a residual connection"])
def test_stratified_masks_are_followed_in_every_way(name):
    model, x = made(name)
    masks = Masks(1, DRAWS, design="stratified")
    close(Network(model)(x, masks), Network(model, fast=False)(x, masks))


@pytest.mark.parametrize("name", [name for name in NETWORKS if "ResNet" not in name])  # which takes its time
@both
def test_logits_do_not_depend_on_the_batch(name, per_point):
    """Its size, its order, or who else is in it, up to the order of additions."""
    model, x = made(name)
    masks, net = Masks(1, 4, per_point), Network(model)
    together = net(x, masks, POSITIONS)
    order = torch.tensor([4, 6, 0, 1, 3, 5, 2])
    parts = [net(x[rows], masks, POSITIONS[rows]) for rows in order.split(3)]
    close(torch.cat(parts, 1), together[:, order], 1e-5)


@both
def test_a_batch_larger_than_the_blocks_of_a_convolution_is_one_batch(per_point):
    model, _ = made("pooling that does not divide")
    x, positions, masks = normal(150, 2, 11, 12, dtype=torch.float32), torch.arange(150), Masks(1, 3, per_point)
    net = Network(model)
    whole = net(x, masks, positions)
    close(whole[:, 60:70], net(x[60:70], masks, positions[60:70]), 1e-5)


@pytest.mark.parametrize("name", ["features of the paper", "a residual connection", "a branch by data"])
def test_a_part_of_the_draws_is_a_slice_of_all(name):
    model, x = made(name)
    masks, net = Masks(1, DRAWS), Network(model)
    close(net(x, masks.part(1, 4)), net(x, masks)[1:4], 1e-5)


def test_masks_take_turns_on_one_network():
    """The sub-networks of the last masks are kept; other masks have others."""
    model, x = made("three stages")
    net, one, other = Network(model), Masks(1, 4), Masks(2, 4)
    first = net(x, one)
    assert not torch.equal(net(x, other), first)
    assert torch.equal(net(x, one), first)


def test_double_precision_is_kept_and_exact():
    model, x = made("MNIST of the paper")
    masks, model = Masks(1, 4), copy.deepcopy(model).double()
    net = Network(model)
    found = net(x.double(), masks)
    assert net.plan.startswith("fast")  # bug: masks in single precision were refused by its convolution
    assert found.dtype == torch.float64
    close(found, Network(model, fast=False)(x.double(), masks), 1e-12)


# ── models of other libraries ────────────────────────────────────────────────────────────────────


def text_classifier(attention):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=20, num_labels=3, attn_implementation=attention,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def words(points):
    ids = torch.arange(points * 7).view(points, 7) * 13 % 50
    lengths = 3 + torch.arange(points) % 5
    return {"input_ids": ids, "attention_mask": (torch.arange(7) < lengths[:, None]).long()}


@pytest.mark.filterwarnings("ignore")  # of transformers
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@both
def test_a_text_classifier_of_hugging_face(attention, per_point):
    model, x, masks = seeded(text_classifier, attention), words(POINTS), Masks(1, 4, per_point)
    net = Network(model)
    expected = Network(model, fast=False)(x, masks, POSITIONS)
    close(net(x, masks, POSITIONS), expected)
    few = {name: value[2:4] for name, value in x.items()}
    close(net(few, masks, POSITIONS[2:4]), expected[:, 2:4])
    assert expected.std(0).min() > 1e-4
    assert net.plan.startswith("by replay: ")


@pytest.mark.filterwarnings("ignore")
def test_both_kinds_of_attention_take_the_same_masks():
    """Dropout of attention weights is the same whether they are computed in one piece or by hand."""
    fused, eager = (seeded(text_classifier, attention) for attention in ("sdpa", "eager"))
    x, masks = words(POINTS), Masks(1, 4)
    close(Network(fused)(x, masks), Network(eager)(x, masks))


# ── what runs once ───────────────────────────────────────────────────────────────────────────────


class Counting(nn.Module):
    """The identity, and how often it was asked; the count is shared with all copies."""

    def __init__(self):
        super().__init__()
        self.count = Counter()

    def forward(self, x):
        self.count.add(1)
        return x if float(x.sum()) > -1e9 else -x  # which no graph can tell


class Counter:
    def __init__(self):
        self.calls = 0

    def add(self, n):
        self.calls += n

    def __deepcopy__(self, memo):
        return self


def by_data(self, x):
    h = self.before(self.a(x)) if float(x.abs().sum()) > 1e-3 else self.a(x)
    return self.after(self.c(self.d(self.b(h))))


COUNTED = {
    "fast": lambda before, after: nn.Sequential(before, *head(nn.ReLU())),
    "in parts": lambda before, after: nn.Sequential(before, *head(), after),
    "by replay": lambda before, after: flat(by_data, before=before, after=after)(),
}


@pytest.mark.parametrize(("way", "make"), COUNTED.items(), ids=COUNTED)
def test_what_precedes_the_first_dropout_runs_once(way, make):
    before, after = Counting(), Counting()
    net = Network(seeded(make, before, after))
    x = inputs(6)(POINTS)
    net(x, Masks(0, DRAWS))
    assert net.plan.startswith(way)
    before.count.calls = after.count.calls = 0
    net(x, Masks(0, DRAWS))
    assert before.count.calls == 1
    assert after.count.calls == (0 if way == "fast" else DRAWS)


def test_a_backbone_that_cannot_be_traced_does_not_slow_its_head_down():
    """Bug: torch.fx met a branch within the backbone, and the whole network ran by replay."""
    backbone = flat(lambda self, x: self.b(F.relu(self.a(x))) if float(x.sum()) > -1e9 else x)()
    del backbone.d, backbone.c
    model = seeded(lambda: nn.Sequential(backbone, *head(inputs=8)))
    assert_plan(
        model, "fast: what precedes the first dropout runs once, then dropout 0.3 → Linear for all draws together"
    )


def assert_plan(model, words):
    net = Network(model)
    assert net.plan == "not planned yet: the first batch decides"
    net(inputs(6)(3), Masks(0, 2))
    assert words in net.plan


def test_the_plan_says_why():
    assert_plan(
        seeded(flat(by_data_branch)), "by replay: modules that end before the first dropout run once (torch.fx: "
    )
    assert_plan(seeded(NETWORKS["a branch by type"][0]), "its graph gives other numbers than the network")
    assert_plan(seeded(NETWORKS["three stages"][0]), "dropout 0.3 → Linear, dropout 0.3 → Linear, dropout 0.3 → Linear")


def by_data_branch(self, x):
    return self.c(self.d(self.a(x) if float(x.sum()) > -1e9 else x))


def test_a_network_that_no_other_way_follows_runs_plainly():
    """Replaying `a` leaves out what it does on the side."""

    class Side(nn.Linear):
        def forward(self, x):
            self.factor.append(2.0)
            return super().forward(x)

    def forward(self, x):
        del self.a.factor[:]
        h = self.a(x) if float(x.sum()) > -1e9 else x
        return self.c(self.d(h)) * sum(self.a.factor)

    def make():
        model = flat(forward)()
        model.a = Side(6, 8)
        model.a.factor = []
        return model

    model, x, masks = seeded(make), inputs(6)(4), Masks(0, 3)
    net = Network(model)
    found = net(x, masks)
    assert (
        net.plan
        == "plainly: the whole network runs once for each draw (its graph gives other numbers than the network)"
    )
    close(found, Network(model, fast=False)(x, masks))


# ── travelling ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["MNIST of the paper", "Dropout2d", "optional arguments"])
def test_a_network_travels_used_or_not(name):
    model, x = made(name)
    net, masks = Network(model), Masks(0, 3)
    fresh = pickle.loads(pickle.dumps(net))
    expected = net(x, masks)
    used = pickle.loads(pickle.dumps(net))
    assert used.plan == "not planned yet: the first batch decides"
    assert torch.equal(fresh(x, masks), expected)
    assert torch.equal(used(x, masks), expected)


def test_what_cannot_travel_is_named_by_pickle():
    """Nothing here needs pickle; where an engine does, its own error names the culprit."""
    model = head()
    model[0].trick = lambda x: x
    sampled = MCDropout(model).sample(2)
    assert sampled(inputs(6)(3)).shape == (3, 2, 3)
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(sampled)


# ── bad models ───────────────────────────────────────────────────────────────────────────────────


def noisy(draw):
    return flat(lambda self, x: self.c(self.d(self.a(x) + draw(x))))


def lstm(self, x):
    return self.c(self.d(self.rnn(x[:, None])[0][:, 0]))


def mixing(self, x):
    h = self.a(x)
    return self.c(self.d(h - h.mean(0)))


class Pair(nn.Module):
    def forward(self, x):
        return x, x


RANDOM = "the model is random for another reason than dropout: "
BAD = {
    "no dropout": (lambda: nn.Linear(6, 3), "has no dropout, so all draws would be equal; add nn.Dropout, or use"),
    "p = 0": (lambda: head(p=0.0), "dropout never drops: p = 0 or training=False is written into 1"),
    "never on": (
        flat(lambda self, x: self.c(F.dropout(self.a(x), 0.5, False))),
        "dropout never drops: p = 0 or training=False is written into forward",
    ),
    "torch.randn": (noisy(lambda x: torch.randn(8)), RANDOM + "it calls torch.randn"),
    "rand_like": (noisy(lambda x: torch.rand_like(x[:, :1])), RANDOM + "it calls torch.rand_like"),
    "in place": (noisy(lambda x: torch.empty(8).uniform_()), RANDOM + "it calls torch.uniform_"),
    "gumbel": (noisy(lambda x: F.gumbel_softmax(torch.zeros(8))), RANDOM + "it calls torch.gumbel_softmax"),
    "numpy": (noisy(lambda x: float(np.random.default_rng().random())), RANDOM + "equal masks give unequal outputs"),
    "imported by name": (
        flat(lambda self, x: self.c(self.d(dropout_by_name(self.a(x), 0.5, self.training)))),
        r"calls torch.dropout past torch.nn.functional, where it cannot be controlled; write F.dropout",
    ),
    "torch.dropout": (
        flat(lambda self, x: self.c(torch.dropout(self.a(x), 0.5, True))), "calls torch.dropout past torch.nn.funct"
    ),
    "inside an LSTM": (
        flat(lstm, rnn=nn.LSTM(6, 8, 2, dropout=0.5, batch_first=True)),
        r"dropout between the layers of rnn \(LSTM\) cannot be controlled; set its dropout to 0",
    ),
    "points that mix": (flat(mixing), "output for a point depends on the other points of its batch.*batch statistics"),
    "a point too few axes": (
        flat(lambda self, x: self.c(self.d(self.a(x))).sum(-1)),
        r"must give \[batch, classes\] for 2 points, but gave shape \(2,\)"
    ),
    "an axis too many": (
        lambda: nn.Sequential(*head(), nn.Unflatten(1, (3, 1))),
        r"must give \[batch, classes\] for \d points, but gave shape \(\d, 3, 1\).*balent\.Parts"
    ),
    "several outputs": (lambda: nn.Sequential(*head(), Pair()), r"give a tensor \[batch, classes\], but gave tuple"),
    "dropout without points": (
        flat(lambda self, x: self.c(self.a(x) * self.d(torch.ones(8)))),
        r"dropout in d works on shape \(8,\), in which no axis"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_models_that_cannot_be_sampled_are_refused_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        MCDropout(seeded(make)).sample(3, seed=0).moments(inputs(6)(4), torch.arange(4))


def test_dropout_that_is_always_on_is_controlled_like_any_other():
    model = seeded(flat(lambda self, x: self.c(F.dropout(self.a(x)))))
    x, masks = inputs(6)(4), Masks(0, 3)
    hidden = model.a(x) * masks.kept(0, 8, 0.5)[:, None] * 2
    close(Network(model)(x, masks), model.c(hidden))


def test_parts_that_only_train_are_left_out():
    """Stochastic depth, auxiliary outputs: what happens in training mode alone does not happen here."""

    def forward(self, x):
        h = self.a(x)
        if self.training:
            return self.c(self.d(h)), self.aux(self.d(torch.randn_like(h)))
        return self.c(self.d(h))

    model = seeded(flat(forward, aux=nn.Linear(8, 3)))
    x, masks = inputs(6)(4), Masks(0, 3)
    with pytest.warns(UserWarning, match=r"calls torch.randn_like in training mode only; draws leave that out"):
        found = Network(model)(x, masks)
    close(found, model.c(model.a(x) * masks.kept(0, 8, 0.3)[:, None] / 0.7))


def test_the_point_that_gives_nan_is_named_by_its_position():
    x = inputs(6)(5)
    x[3] = math.nan
    sampled = MCDropout(seeded(head)).sample(4, seed=0)
    with pytest.raises(ValueError, match=r"logits must be finite, but class 0 is NaN; .*\(at point 1003, draw 0\)"):
        sampled.moments(x, torch.arange(1000, 1005))


def test_a_first_point_that_is_nan_changes_no_plan():
    x = inputs(6)(5)
    x[0] = math.nan
    net, clean = (Network(seeded(head)) for _ in range(2))
    assert_close(net(x, Masks(0, 3))[:, 1:], clean(inputs(6)(5), Masks(0, 3))[:, 1:])
    assert net.plan == clean.plan


def test_probabilities_are_not_taken_for_logits_nor_logits_for_probabilities():
    x, positions = inputs(6)(5), torch.arange(5)
    softmax, plain = (seeded(lambda: nn.Sequential(*head(), nn.Softmax(-1)))), seeded(head)
    with pytest.raises(ValueError, match=r"must give logits, .*pass MCDropout\(model, probabilities=True\)"):
        MCDropout(softmax).sample(3, seed=0).moments(x, positions)
    with pytest.raises(ValueError, match="probabilities=True was given, but the model's outputs do not sum to 1"):
        MCDropout(plain, probabilities=True).sample(3, seed=0).moments(x, positions)
    right = MCDropout(softmax, probabilities=True).sample(3, seed=0)
    assert_close(right(x), MCDropout(plain).sample(3, seed=0)(x))
    assert_close(right.moments(x, positions).mean, right(x).double().mean(1), rtol=1e-5, atol=1e-6)


def test_the_copy_is_private():
    """Later training does not reach the functions that were drawn."""
    model, x, masks = seeded(head), inputs(6)(3), Masks(0, 2)
    net, before = Network(model), copy.deepcopy(model.state_dict())
    first = net(x, masks)
    [p.add_(1) for p in model.parameters()]
    assert torch.equal(net(x, masks), first)
    assert set(before) == set(model.state_dict())


def test_dropout_that_drops_everything_is_named():
    """Its scale 1/(1 - p) would be 0 · ∞."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(1.0), nn.Linear(4, 2))
    with pytest.raises(ValueError, match="dropout in 1 has p = 1 and drops everything"):
        Network(model)(torch.randn(5, 3), Masks(0, 2))
