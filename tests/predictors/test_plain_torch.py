"""Draws of MC dropout have the mean and the variance that plain torch has in training mode, for many kinds of networks.

Torch: a batch of 4,000 copies of five points, in training mode (batch norm in evaluation mode). Ours: 150 draws under
shared masks, and 150 copies of each point under masks of their own; 50 for networks that take points one at a time.
Means and variances of each logit agree within 5 standard errors: under normality, one of the 60 comparisons of a
network is outside by chance once in 30,000 runs. Seeds are fixed.
"""

import pytest
import torch
import torch.nn.functional as F
from helpers.small import Of, inputs, seeded
from torch import nn

from balent import MCDropout
from balent.predictors.dropout.masks import Masks
from balent.predictors.dropout.network import Network

POINTS, DRAWS, FEWER, COPIES = 5, 150, 50, 4000


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def of(forward, **parts):
    """A network of these parts between Linear `a` 6 → 8 and `c` 8 → 3."""
    return lambda: Of(forward, a=nn.Linear(6, 8), c=nn.Linear(8, 3), **{k: make() for k, make in parts.items()})


def drop(p=0.4):
    return lambda: nn.Dropout(p)


def block(p=0.4):
    return lambda: nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(p))


def words(points, seed=0):
    return torch.arange(points * 4).view(points, 4) * 7 % 11


def sentences(points, seed=0):
    return {"ids": words(points), "lengths": 1 + torch.arange(points) % 4}


class Texts(nn.Module):
    """Keywords in, the mean of the first words of each text."""

    def __init__(self):
        super().__init__()
        self.words, self.d, self.last = nn.Embedding(11, 8), nn.Dropout(0.3), nn.Linear(8, 3)

    def forward(self, ids, lengths):
        mask = (torch.arange(ids.shape[1]) < lengths[:, None])[..., None]
        return self.last((self.d(self.words(ids)) * mask).sum(1) / lengths[:, None])


class Attention(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words, self.last, self.kind = nn.Embedding(11, 8), nn.Linear(8, 3), kind
        self.layer = nn.MultiheadAttention(8, 2, 0.3, batch_first=True)
        if kind == "layer":
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=True)

    def forward(self, ids):
        x = self.words(ids)
        if self.kind == "function":
            p = 0.3 if self.training else 0.0
            return self.last(F.scaled_dot_product_attention(x, x, x, dropout_p=p).mean(1))
        y = self.layer(x) if self.kind == "layer" else self.layer(x, x, x)[0]
        return self.last(y.mean(1))


class Steps(nn.Module):
    """A recurrent cell with dropout at each step."""

    def __init__(self):
        super().__init__()
        self.words, self.cell, self.d = nn.Embedding(11, 8), nn.GRUCell(8, 8), nn.Dropout(0.3)
        self.last = nn.Linear(8, 3)

    def forward(self, ids):
        h = torch.zeros(len(ids), 8)
        for x in self.words(ids).unbind(1):
            h = self.cell(self.d(x), h)
        return self.last(h)


# ── branches and experts ─────────────────────────────────────────────────────────────────────────


def early_exit(self, x):
    """Points that are sure leave early: the others go through one more block."""
    h = self.d(self.a(x))
    out = self.c(h)
    on = x[:, 0] > 0
    if on.any():
        out[on] = self.c(self.more(h[on]))
    return out


def refined(self, x):
    """Another block for the whole batch, if any point needs it; its dropout comes before that of all."""
    h = self.a(x)
    needs = x[:, :1] > 0
    if needs.any():
        h = torch.where(needs, self.more(h), h)
    return self.c(self.d(h))


def refined_by_hand(self, x):
    """The same, with a call in forward, whose module makes no other."""
    h = self.a(x)
    needs = x[:, :1] > 0
    if needs.any():
        h = torch.where(needs, F.dropout(h, 0.5, self.training), h)
    return self.c(self.d(h))


def routed(self, x):
    h = self.a(x)
    out, which = torch.zeros_like(h), x[:, 0] > 0
    for at, expert in ((which, self.one), (~which, self.two)):
        out[at] = expert(h[at])
    return self.c(out)


def routed_where_needed(self, x):
    h = self.a(x)
    out, which = torch.zeros_like(h), x[:, 0] > 0
    for at, expert in ((which, self.one), (~which, self.two)):
        if at.any():
            out[at] = expert(h[at])
    return self.c(self.d(out))


def routed_in_a_graph(self, x):
    """torch.fx can trace this, and the number of rows still depends on the data."""
    h = self.a(x)
    one, two = (x[:, 0] > 0).nonzero()[:, 0], (x[:, 0] <= 0).nonzero()[:, 0]
    out = torch.zeros_like(h).index_add(0, one, self.one(h[one]))
    return self.c(out.index_add(0, two, self.two(h[two])))


def routed_words(self, x):
    """Six words for each point, of which each goes to one of two experts."""
    rows = self.a(x[:, None] * torch.arange(1, 7)[:, None] - x.roll(1, 1)[:, None]).flatten(0, 1)
    out, which = torch.zeros_like(rows), rows[:, 0] > 0
    out[which], out[~which] = self.one(rows[which]), self.two(rows[~which])
    return self.c(out.unflatten(0, (-1, 6)).sum(1))


def sorted_rows(self, x):
    order = x[:, 0].argsort()
    return self.c(self.d(self.a(x[order])))[order.argsort()]


def rows_by_word(self, x):
    """Dropout of [words · points]: the rows of a point do not come one after the other."""
    h = self.d(torch.stack([self.a(x), self.b(self.a(x))]).flatten(0, 1))
    return self.c(h.unflatten(0, (2, -1)).sum(0))


EXPERTS = {"one": block(), "two": block(0.2)}

# ── the others ───────────────────────────────────────────────────────────────────────────────────


def residual_block(self, x):
    h = self.a(x)
    return self.c(F.relu(h + self.d(self.b(F.relu(h)))))


def in_place(self, x):
    """Bug: torch's dropout in place changes `h`, so both terms are dropped; ours was not in place."""
    h = self.a(x)
    return self.c(h + self.d(h))


def alpha_by_hand(self, x):
    """Bug: F.alpha_dropout is off unless it is told to train; ours was on."""
    return self.c(self.d(F.alpha_dropout(self.a(x), 0.5)))


def two_heads(self, x):
    h = self.a(x)
    return torch.cat([self.c(self.d(h))[:, :2], self.head(self.e(h))], 1)


def tied(self, x):
    return self.c(self.d(self.b(self.d(self.b(self.a(x))))))


IMAGES, seq = inputs(2, 6, 6), nn.Sequential
KINDS = {
    "MLP": (lambda: seq(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)), inputs(6)),
    "a deep MLP": (
        lambda: seq(nn.Linear(6, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 8), nn.Dropout(0.5), nn.GELU(),
              nn.Linear(8, 3)), inputs(6),
    ),
    "CNN": (
        lambda: seq(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(16, 3)),
        IMAGES,
    ),
    "CNN, channels": (
        lambda: seq(nn.Conv2d(2, 4, 3), nn.Dropout2d(0.3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Dropout2d(0.3),
              nn.Flatten(), nn.Linear(16, 3)), IMAGES,
    ),
    "depthwise convolution": (
        lambda: seq(nn.Conv2d(2, 4, 3, groups=2), nn.Dropout2d(0.3), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)),
        IMAGES,
    ),
    "a residual block": (of(residual_block, b=lambda: nn.Linear(8, 8), d=drop()), inputs(6)),
    "batch norm": (lambda: seq(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.4), nn.Linear(8, 3)), inputs(6)),
    "layer norm": (lambda: seq(nn.Linear(6, 8), nn.Dropout(0.4), nn.LayerNorm(8), nn.Linear(8, 3)), inputs(6)),
    "group norm": (
        lambda: seq(nn.Conv2d(2, 4, 3), nn.Dropout(0.3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(64, 3)), IMAGES,
    ),
    "embedding": (lambda: seq(nn.Embedding(11, 5), nn.Dropout(0.3), nn.Flatten(), nn.Linear(20, 3)), words),
    "embedding bag": (lambda: seq(nn.EmbeddingBag(11, 5), nn.Dropout(0.3), nn.Linear(5, 3)), words),
    "multi-head attention": (lambda: Attention("weights"), words),
    "encoder layer": (lambda: Attention("layer"), words),
    "attention as a function": (lambda: Attention("function"), words),
    "functional": (of(lambda self, x: self.c(F.dropout(self.a(x), 0.4, self.training))), inputs(6)),
    "functional, always on": (of(lambda self, x: self.c(F.dropout(self.a(x), 0.4))), inputs(6)),
    "Dropout1d": (lambda: seq(nn.Conv1d(2, 4, 2), nn.Dropout1d(0.3), nn.Flatten(), nn.Linear(20, 3)), inputs(2, 6)),
    "Dropout2d": (lambda: seq(nn.Conv2d(2, 4, 2), nn.Dropout2d(0.3), nn.Flatten(), nn.Linear(100, 3)), IMAGES),
    "Dropout3d": (
        lambda: seq(nn.Conv3d(2, 4, 2), nn.Dropout3d(0.3), nn.Flatten(), nn.Linear(32, 3)), inputs(2, 3, 3, 3),
    ),
    "Dropout1d of rows": (lambda: seq(nn.Linear(6, 8), nn.Dropout1d(0.3), nn.Linear(8, 3)), inputs(6)),
    "Dropout3d of samples": (
        lambda: seq(nn.Conv2d(2, 4, 3), nn.Dropout3d(0.3), nn.Flatten(), nn.Linear(64, 3)), IMAGES,
    ),
    "alpha dropout": (lambda: seq(nn.Linear(6, 8), nn.SELU(), nn.AlphaDropout(0.3), nn.Linear(8, 3)), inputs(6)),
    "feature alpha dropout": (
        lambda: seq(nn.Conv2d(2, 4, 3), nn.FeatureAlphaDropout(0.3), nn.Flatten(), nn.Linear(64, 3)), IMAGES,
    ),
    "alpha dropout that is off": (of(alpha_by_hand, d=drop()), inputs(6)),
    "a dropout used twice": (
        of(lambda self, x: self.c(self.d(self.b(self.d(self.a(x))))), b=block(0.0), d=drop()), inputs(6),
    ),
    "tied weights": (of(tied, b=lambda: nn.Linear(8, 8), d=drop(0.3)), inputs(6)),
    "nested": (
        lambda: seq(seq(nn.Linear(6, 8), seq(nn.Dropout(0.3), nn.Tanh())), seq(nn.Linear(8, 8),
              nn.Dropout(0.3)), nn.Linear(8, 3)), inputs(6),
    ),
    "a dict": (Texts, sentences),
    "dropout on the inputs": (lambda: seq(nn.Dropout(0.3), nn.Linear(6, 8), nn.Sigmoid(), nn.Linear(8, 3)), inputs(6)),
    "dropout at the end": (lambda: seq(nn.Linear(6, 3), nn.Dropout(0.3)), inputs(6)),
    "view": (of(lambda self, x: self.c(self.d(self.a(x).view(-1, 2, 4)).view(len(x), 8)), d=drop()), inputs(6)),
    "points second": (of(lambda self, x: self.c(self.d(self.a(x).t()).t()), d=drop()), inputs(6)),
    "two heads": (of(two_heads, d=drop(), e=drop(0.2), head=lambda: nn.Linear(8, 1)), inputs(6)),
    "in place": (of(in_place, d=lambda: nn.Dropout(0.4, inplace=True)), inputs(6)),
    "recurrent steps": (Steps, words),
    "early exit": (of(early_exit, d=drop(), more=block()), inputs(6)),
    "a branch for some": (of(refined, d=drop(), more=block()), inputs(6)),
    "a branch for some, by hand": (of(refined_by_hand, d=drop()), inputs(6)),
    "experts": (of(routed, **EXPERTS), inputs(6)),
    "experts where needed": (of(routed_where_needed, d=drop(), **EXPERTS), inputs(6)),
    "experts in a graph": (of(routed_in_a_graph, **EXPERTS), inputs(6)),
    "experts of words": (of(routed_words, **EXPERTS), inputs(6)),
    "sorted rows": (of(sorted_rows, d=drop()), inputs(6)),
    "rows by word": (of(rows_by_word, b=lambda: nn.Linear(8, 8), d=drop()), inputs(6)),
}  # fmt: skip


ROUTED = list(KINDS)[list(KINDS).index("early exit") :]


def repeated(x, n):
    """n copies of a batch, one after the other."""
    return over(x, lambda v: v.repeat(n, *(1 for _ in v.shape[1:])))


def over(x, f):
    return {name: f(value) for name, value in x.items()} if isinstance(x, dict) else f(x)


def of_torch(model, x):
    """[copies, points, classes] in training mode, all else but dropout in evaluation mode."""
    model.train()
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._NormBase):
            part.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        batch = repeated(x, COPIES)
        out = model(**batch) if isinstance(batch, dict) else model(batch)
    return out.view(COPIES, POINTS, -1)


def assert_alike(found, expected):
    """Mean and variance of each logit differ by no more than 5 standard errors, by the spread of the larger sample."""
    found, expected = found.double(), expected.double()
    assert expected.var(0).max() > 1e-6
    squares = [(z - z.mean(0)).square() for z in (found, expected)]
    for a, b in ((found, expected), squares):
        error = (b.var(0) * (1 / len(a) + 1 / len(b))).sqrt()
        assert ((a.mean(0) - b.mean(0)).abs() <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("name", KINDS)
def test_draws_are_distributed_as_plain_dropout_is(name):
    (make, data), draws = KINDS[name], FEWER if name in ROUTED else DRAWS
    model, x = seeded(make), data(POINTS)
    expected, net = of_torch(model, x), Network(model)
    assert_alike(net(x, Masks(0, draws)), expected)
    own = net(repeated(x, draws), Masks(0, 1, True), torch.arange(draws * POINTS))
    assert_alike(own.view(draws, POINTS, -1), expected)


@pytest.mark.parametrize("name", ROUTED)
@pytest.mark.parametrize("per_point", [False, True], ids=["shared", "per-point"])
def test_a_point_is_the_same_whoever_is_beside_it_and_whoever_came_first(name, per_point):
    """Bug: dropout that the first two points did not reach was off. Each batch here has a network that plans on it."""
    make, data = KINDS[name]
    model, x, masks, at = seeded(make), data(12), Masks(3, 3, per_point), torch.arange(12)
    first = Network(model)
    together = first(x, masks, at)
    assert together.std(0).amax(-1).min() > 1e-3
    for rows in ([0], [4], [3, 2], [11, 10, 9, 8]):
        for net in (first, Network(model)):
            found = net(over(x, lambda v, rows=rows: v[rows]), masks, at[rows])
            torch.testing.assert_close(found, together[:, rows], rtol=1e-4, atol=1e-5)


# ── what later data reach ────────────────────────────────────────────────────────────────────────


def some_points(low, high):
    """Points whose first number is negative, then points whose first number is positive."""
    x = inputs(6)(low + high)
    x[:, 0] = x[:, 0].abs() + 0.1
    x[:low, 0] *= -1
    return x


def only_for_some(self, x):
    """Points with a positive first number go through dropout, and the others do not."""
    h, on = self.a(x), x[:, :1] > 0
    return self.c(torch.where(on, self.more(h), h)) if on.any() else self.c(h)


class Block(nn.Module):
    """Dropout by a call in forward, which follows a module that the first points do not reach."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return F.dropout(self.linear(x), 0.5, self.training)


@pytest.mark.parametrize("more", [block(), Block], ids=["a module", "a call"])
def test_dropout_that_only_later_data_reach_is_on(more):
    """Bug: the plan was made on two points, and dropout in parts that they do not reach stayed off: BALD was 0."""
    x, masks = some_points(20, 4), Masks(0, 50)
    net = Network(seeded(of(only_for_some, more=more, d=drop())))
    spread = torch.cat([net(batch, masks) for batch in (x[10:], x[:3], x[22:])], 1).std(0).amax(-1)
    assert (spread[:10] == 0).all()
    assert (spread[10:14] > 0.01).all()
    assert (spread[14:17] == 0).all()
    assert (spread[17:] > 0.01).all()


@pytest.mark.parametrize("more", [block(), Block], ids=["a module", "a call"])
def test_a_later_batch_that_reaches_more_dropout_changes_the_plan(more):
    """The masks that the first batch had stay what they are."""
    x, masks = some_points(20, 4), Masks(0, 20)
    model = seeded(of(refined, more=more, d=drop()))
    net = Network(model)
    first = net(x[:10], masks)
    plan = net.plan
    last = net(x[10:], masks)
    assert "some data reach" not in plan
    assert net.plan.startswith("by replay: ")
    assert net.plan.endswith("; only some data reach the dropout in more" + (".2" if more is not Block else ""))
    assert torch.equal(net(x[:10], masks), first)
    torch.testing.assert_close(Network(model)(x[10:], masks), last)


class Backbone(nn.Module):
    """A branch that torch.fx cannot trace, with dropout that the first points do not reach."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        h, on = self.linear(x), x[:, :1] > 0
        return torch.where(on, F.dropout(h, 0.5, self.training), h) if on.any() else h


def test_dropout_in_what_would_run_once_is_found():
    """Bug: what precedes the first dropout ran once, and so did dropout in a branch of it that later data reach."""
    x, masks = some_points(20, 4), Masks(0, 20)
    net = Network(seeded(of(lambda self, x: self.c(self.d(self.a(self.b(x)))), b=Backbone, d=drop())))
    net(x[:10], masks)
    assert net.plan.startswith("fast: ")
    found = net(x[10:], masks)
    assert net.plan.startswith("by replay: ")
    torch.testing.assert_close(found, Network(net.module, fast=False)(x[10:], masks))


def test_experts_run_one_point_at_a_time_and_the_plan_says_so():
    """Bug: RuntimeError, shape '[5, 0, 8]' is invalid for input of size 24."""
    net = Network(seeded(of(routed, **EXPERTS)))
    net(some_points(3, 2), Masks(0, 3))
    assert net.plan == (
        "one point at a time: the whole network runs once for each point and draw "
        "(the dropout in one.2 does not work on all points alike)"
    )


def test_all_points_of_a_pool_through_mc_dropout_and_experts():
    sampled = MCDropout(seeded(of(routed, **EXPERTS))).sample(20, seed=0, masks="per-point")
    m = sampled.moments(some_points(6, 6), torch.arange(12))
    assert (m.var.amax(-1) > 1e-5).all()


# ── what is refused, or left out in words ────────────────────────────────────────────────────────


def by_batch(self, x):
    return self.c(self.d(self.a(x)) if x[:, 0].mean() > 0 else self.e(self.a(x) * 2))


def by_number(self, x):
    h = self.a(x)
    if (x[:, 0] > 0).any():
        h = torch.where(x[:, :1] > 0, self.d(h), h)
    return self.c(self.d(h))


REFUSED = {
    "a branch by the mean of the batch": (
        of(by_batch, d=drop(), e=drop()), "depends on the other points of its batch.* branches that depend on all"
    ),
    "a number of calls that depends on the data": (
        of(by_number, d=drop()), "d makes 2 dropout calls for some data and 1 for others.* nn.Dropout of its own"
    ),
    "dropout of weights": (
        of(lambda self, x: F.linear(self.a(x), F.dropout(self.c.weight, 0.3, self.training))),
        r"dropout in the model works on shape \(3, 8\), in which no axis holds the points"
    ),
    "dropout that is never called": (
        of(lambda self, x: self.c(self.a(x)), d=drop()), r"no point of the first batch reaches .* \(in d\), .*equal"
    ),
    "a mask by hand in a part that is on": (
        of(lambda self, x: self.c(F.dropout(self.a(x), 0.3, self.training) + (torch.rand(8) if self.training else 0))),
        "random for another reason than dropout: it calls torch.rand"
    ),
    "p = 1 that later data reach": (
        of(refined, d=drop(), more=lambda: nn.Dropout(1.0)), "dropout in more has p = 1 and drops everything"
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:the model calls")
@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_kept_fixed_is_refused_in_words(make, message):
    net, x = Network(seeded(make)), some_points(20, 4)
    with pytest.raises(ValueError, match=message):
        [net(batch, Masks(0, 3)) for batch in (x[:12], x[19:])]


def by_hand(draw):
    def forward(self, x):
        h = self.d(self.a(x))
        return self.c(h * draw(h) * 2 if self.training else h)

    return of(forward, d=drop())


BY_HAND = {
    "torch.rand_like": lambda h: (torch.rand_like(h) > 0.5).float(),
    "torch.bernoulli": lambda h: torch.bernoulli(torch.full_like(h, 0.5)),
    "torch.bernoulli_": lambda h: torch.empty_like(h).bernoulli_(0.5),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_random_mask_made_by_hand_is_named_in_a_warning(name):
    """Bug: it was left out without a word."""
    net = Network(seeded(by_hand(BY_HAND[name])))
    with pytest.warns(UserWarning, match=f"calls {name} in training mode only; draws leave that out"):
        net(inputs(6)(4), Masks(0, 3))
