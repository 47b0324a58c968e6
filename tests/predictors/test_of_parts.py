"""Items with parts and items with several labels: scores against loops over draws, items, parts and classes."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import balent
from balent import MEASURES, Moments
from balent.maths.measures import zero_first
from balent.predictors import of_parts, part_moments
from balent.predictors.tasks import PerPart, Several


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pixels(classes=3):
    """[batch, classes, height, width], dropout in the middle."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Dropout2d(0.3), nn.Conv2d(6, classes, 1))


class Tokens(nn.Module):
    """[batch, tokens, classes], called with keywords."""

    def __init__(self):
        super().__init__()
        self.embed, self.drop, self.head = nn.Embedding(10, 8), nn.Dropout(0.3), nn.Linear(8, 3)

    def forward(self, input_ids, attention_mask):
        h = self.embed(input_ids) * attention_mask[..., None]
        return self.head(self.drop(h + h.mean(1, keepdim=True)).relu())


def tokens():
    torch.manual_seed(0)
    return Tokens()


def several(labels=4):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, labels))


IMAGES = torch.randn(6, 2, 4, 5, generator=generator())
TEXTS = {
    "input_ids": torch.randint(10, (6, 7), generator=generator()),
    "attention_mask": (torch.arange(7) < torch.tensor([7, 3, 5, 1, 7, 2])[:, None]).long(),
}
ROWS = torch.randn(6, 5, generator=generator())


def by_loops(name, probabilities, aggregate):
    """The score of one item whose parts are [parts][draws, classes], each part alone."""
    balance = "balent" if name == "balentacq" else name
    values = [float(MEASURES[balance](Moments.of(p[None]))) for p in probabilities]
    if aggregate == "max":
        return max(float(MEASURES[name](Moments.of(p[None]))) for p in probabilities)
    total = sum(values) if aggregate == "sum" else sum(values) / len(values)
    return float(zero_first(torch.tensor(total, dtype=torch.float64))) if name == "balentacq" else total


def drawn(predictor, batch, n=8):
    return predictor.sample(n, seed=3).outputs(batch).double()


@pytest.mark.parametrize("aggregate", ["mean", "max", "sum"])
@pytest.mark.parametrize("name", ["balentacq", "bald", "entropy", "mean_sd"])
def test_pixels_score_as_loops_over_them_do(name, aggregate):
    inside = balent.MCDropout(pixels())
    p = drawn(inside, IMAGES).softmax(2)  # [items, draws, classes, height, width]
    expected = [by_loops(name, [p[i, :, :, y, x] for y in range(4) for x in range(5)], aggregate) for i in range(6)]
    sampled = balent.Parts(inside, class_axis=1, aggregate=aggregate).sample(8, seed=3)
    picks = balent.acquire(sampled, IMAGES, k=6, strategy=name)
    assert_close(picks.scores, torch.tensor(expected, dtype=torch.float64)[picks.indices], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("aggregate", ["mean", "max", "sum"])
@pytest.mark.parametrize("name", ["balentacq", "bald"])
def test_tokens_score_as_loops_over_those_that_count(name, aggregate):
    inside = balent.MCDropout(tokens())
    p = drawn(inside, TEXTS).softmax(-1)
    lengths = TEXTS["attention_mask"].sum(1)
    expected = [by_loops(name, [p[i, :, t] for t in range(lengths[i])], aggregate) for i in range(6)]
    sampled = balent.Parts(inside, mask="attention_mask", aggregate=aggregate).sample(8, seed=3)
    picks = balent.acquire(sampled, TEXTS, k=6, strategy=name)
    assert_close(picks.scores, torch.tensor(expected, dtype=torch.float64)[picks.indices], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("aggregate", ["mean", "max", "sum"])
@pytest.mark.parametrize("name", ["balentacq", "bald", "mean_sd", "balent"])
def test_several_labels_score_as_loops_over_bernoullis(name, aggregate):
    inside = balent.MCDropout(several())
    p = drawn(inside, ROWS).sigmoid()
    both = torch.stack([1 - p, p], -1)  # [items, draws, labels, no and yes]
    expected = [by_loops(name, [both[i, :, label] for label in range(4)], aggregate) for i in range(6)]
    sampled = balent.SeveralLabels(inside, aggregate=aggregate).sample(8, seed=3)
    picks = balent.acquire(sampled, ROWS, k=6, strategy=name)
    assert_close(picks.scores, torch.tensor(expected, dtype=torch.float64)[picks.indices], rtol=1e-4, atol=1e-6)


def test_blocks_and_draws_at_a_time_do_not_change_scores(monkeypatch):
    """One item and one draw at a time, against all at once: equal up to the rounding of merged moments."""
    predictor = balent.Parts(balent.MCDropout(pixels()), class_axis=1)
    whole = predictor.sample(8, seed=3).moments(IMAGES)
    monkeypatch.setattr(part_moments, "MEMORY", 1)
    sampled = predictor.sample(8, seed=3)
    for i in range(6):
        m = sampled.moments(IMAGES[i : i + 1], torch.tensor([i]))
        assert m.n == 8
        for name in ("mean", "var", "within", "entropy"):
            assert_close(getattr(m, name), getattr(whole, name)[20 * i : 20 * (i + 1)], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("masks", ["shared", "per-point"])
def test_scores_do_not_depend_on_the_block(masks):
    sampled = balent.Parts(balent.MCDropout(tokens()), mask="attention_mask").sample(8, seed=3, masks=masks)
    one = balent.acquire(sampled, TEXTS, k=6, strategy="bald", memory=1)
    other = balent.acquire(sampled, TEXTS, k=6, strategy="bald")
    assert one.indices.tolist() == other.indices.tolist()
    assert_close(one.scores, other.scores, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    ("predictor", "pool"),
    [
        (balent.Parts(balent.MCDropout(pixels()), class_axis=1), IMAGES),
        (balent.Parts(balent.MCDropout(tokens()), mask="attention_mask"), TEXTS),
        (balent.SeveralLabels(balent.MCDropout(several())), ROWS),
        (balent.SeveralLabels(balent.Ensemble(several(), members=20)), ROWS),
    ],
    ids=["pixels", "tokens", "several", "ensemble"],
)
@pytest.mark.parametrize("strategy", ["auto", "herding", "power_bald", "jitter:balentacq", "random", "balentacq"])
def test_strategies_that_use_moments_serve_items_with_parts(predictor, pool, strategy):
    picks = balent.acquire(predictor.sample(20, seed=0), pool, k=3, strategy=strategy)
    assert len(set(picks.indices.tolist())) == 3


def test_errors_of_scores_are_those_of_items():
    sampled = balent.SeveralLabels(balent.MCDropout(several())).sample(40, seed=0)
    picks = balent.acquire(sampled, ROWS, k=3, strategy="bald", with_error=True)
    assert picks.errors.shape == (3,)
    assert bool((picks.errors > 0).all())
    assert picks.stability is not None


def test_a_sampled_can_be_pickled():
    sampled = balent.Parts(balent.MCDropout(pixels()), class_axis=1).sample(4, seed=0)
    again = pickle.loads(pickle.dumps(sampled))
    assert_close(again.moments(IMAGES).mean, sampled.moments(IMAGES).mean)


def test_features_of_tokens_leave_padding_out():
    """The mean over the tokens that count of what the last layer sees."""
    module = tokens().eval()
    sampled = balent.Parts(balent.MCDropout(module), mask="attention_mask").sample(4, seed=0)
    h = module.embed(TEXTS["input_ids"]) * TEXTS["attention_mask"][..., None]
    h = (h + h.mean(1, keepdim=True)).relu()
    expected = torch.stack([h[i, :n].mean(0) for i, n in enumerate(TEXTS["attention_mask"].sum(1))])
    assert_close(sampled.features(TEXTS), expected.detach())


# ── training ─────────────────────────────────────────────────────────────────────────────────────


def test_a_network_learns_labels_of_pixels():
    """The class of a pixel is the sign of its first channel; void pixels are ignored, whatever they show."""
    x = torch.randn(40, 2, 4, 5, generator=generator())
    y = (x[:, 0] > 0).long()
    y[:, 0] = -100
    predictor = balent.Parts(balent.MCDropout(pixels(2), epochs=60, learning_rate=0.02), class_axis=1)
    predictor.fit((x, y), generator=generator())
    mean = predictor.sample(10).moments(x)
    right = (mean.items.grid(mean.mean).argmax(-1) == y)[y >= 0].double().mean()
    assert right > 0.9


def test_a_network_learns_several_labels():
    x = torch.randn(200, 5, generator=generator())
    y = (x[:, :4] > 0).long()
    predictor = balent.SeveralLabels(balent.MCDropout(several(), epochs=60, learning_rate=0.01))
    predictor.fit((x, y.numpy()), generator=generator())
    m = predictor.sample(10).moments(x)
    assert ((m.shares > 0.5) == y.bool()).double().mean() > 0.9


@pytest.mark.parametrize("make", [balent.MCDropout, lambda m, **s: balent.Ensemble(m, members=3, **s)])
def test_the_loss_is_that_of_each_part(make):
    """One class of three everywhere: the mean probability of it rises, for every predictor."""
    predictor = balent.Parts(make(pixels(), epochs=20, one_class=True, learning_rate=0.02), class_axis=1)
    predictor.fit((IMAGES, torch.full((6, 4, 5), 2)), generator=generator())
    assert predictor.sample(3, seed=0).moments(IMAGES).mean[:, 2].mean() > 0.8


def test_the_loss_of_a_batch_without_labels_is_zero():
    y = torch.full((2, 4, 5), -100)
    assert PerPart(1).loss(torch.randn(2, 3, 4, 5), y) == 0
    assert Several().loss(torch.randn(2, 3), torch.full((2, 3), -100)) == 0


# ── bad input ────────────────────────────────────────────────────────────────────────────────────

Y = torch.randint(3, (6, 4, 5), generator=generator())


def fit(predictor, x, y):
    predictor.fit((x, y), generator=generator())


REFUSED = {
    "classes not last": (
        lambda: fit(balent.Parts(balent.MCDropout(pixels())), IMAGES, Y),
        r"a label must have the shape \(3, 4\), but has \(4, 5\); these labels fit class_axis=1",
    ),
    "labels of another shape": (
        lambda: fit(balent.Parts(balent.MCDropout(pixels()), class_axis=1), IMAGES, Y[:, :3]),
        r"a label must have the shape \(4, 5\), but has \(3, 5\)",
    ),
    "no such axis": (
        lambda: fit(balent.Parts(balent.MCDropout(pixels()), class_axis=4), IMAGES, Y),
        r"\[batch, 3, 4, 5\], which has no axis 4; set class_axis",
    ),
    "the axis of the batch": (
        lambda: balent.Parts(balent.MCDropout(pixels()), class_axis=0),
        "axis 0 is the batch; use 1 or -1",
    ),
    "labels of different lengths": (
        lambda: fit(balent.Parts(balent.MCDropout(tokens())), TEXTS, [[0] * n for n in (7, 3, 5, 1, 7, 2)]),
        r"item 0 has \(7,\) and item 1 has \(3,\); pad the shorter ones with -100, and name a mask",
    ),
    "every label ignored": (
        lambda: fit(balent.Parts(balent.MCDropout(pixels()), class_axis=1), IMAGES, torch.full_like(Y, -100)),
        "every part of every label is -100",
    ),
    "a class too many": (
        lambda: fit(balent.Parts(balent.MCDropout(pixels()), class_axis=1), IMAGES, Y + 1),
        r"labels must be 0\.\.2 for the 3 classes of the model",
    ),
    "lengths without a mask": (
        lambda: balent.Parts(balent.MCDropout(tokens())).sample(4).moments(TEXTS),
        "attention_mask has zeros.*pass mask='attention_mask' to leave padding out, or mask=False",
    ),
    "a mask that hides everything": (
        lambda: balent.acquire(
            balent.Parts(balent.MCDropout(tokens()), mask="attention_mask").sample(4),
            TEXTS | {"attention_mask": TEXTS["attention_mask"] * torch.tensor([1, 1, 1, 1, 0, 1])[:, None]},
            k=2,
        ),
        "the mask hides every part of point 4",
    ),
    "a mask of another shape": (
        lambda: balent.Parts(balent.MCDropout(pixels()), class_axis=1, mask=lambda x: x > 0).sample(4).moments(IMAGES),
        r"one value per part, shape \(6, 4, 5\), but has \(6, 2, 4, 5\)",
    ),
    "a mask that is not there": (
        lambda: balent.Parts(balent.MCDropout(tokens()), mask="void").sample(4).moments(TEXTS),
        "mask='void' must be a name in the batch, but that has input_ids, attention_mask",
    ),
    "probabilities": (
        lambda: (
            balent.Parts(balent.MCDropout(nn.Sequential(*pixels(), nn.Softmax(1))), class_axis=1)
            .sample(4)
            .moments(IMAGES)
        ),
        "take its softmax off",
    ),
    "draws": (
        lambda: balent.acquire(balent.SeveralLabels(balent.MCDropout(several())).sample(4), ROWS, 2, "batch_bald"),
        "there are no draws .*use auto, herding, or a measure",
    ),
    "gradients": (
        lambda: balent.acquire(balent.SeveralLabels(balent.MCDropout(several())).sample(4), ROWS, 2, "badge"),
        "items have many parts or several labels; use auto",
    ),
    "a race": (
        lambda: balent.acquire(
            balent.SeveralLabels(balent.MCDropout(several())).sample(40), ROWS, 2, "bald", draws="auto"
        ),
        "items have many parts or several labels; use auto",
    ),
    "values between": (
        lambda: fit(balent.SeveralLabels(balent.MCDropout(several())), ROWS, np.full((6, 4), 0.5)),
        "rows of 0 and 1 .* but one value is 0.5",
    ),
    "a label too few": (
        lambda: fit(balent.SeveralLabels(balent.MCDropout(several())), ROWS, np.eye(6, 3)),
        r"shape \(4,\), but its label has \(3,\)",
    ),
    "parts in a model of labels": (
        lambda: balent.SeveralLabels(balent.MCDropout(pixels())).sample(4).moments(IMAGES),
        r"a model that gives \[batch, labels\], but it gives \[batch, 3, 4, 5\]",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_mask_belongs_to_a_batch():
    with pytest.raises(TypeError, match="put it beside the inputs in a pool that is a dict, and pass its name"):
        of_parts.check(balent.MCDropout(pixels()), torch.ones(6, 4, 5))


def test_only_predictors_of_modules_have_parts():
    with pytest.raises(TypeError, match="Logistic has no method learn"):
        of_parts.check(balent.Logistic(classes=3), None)
