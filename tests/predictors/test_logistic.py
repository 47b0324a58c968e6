"""The head for few labels: against scikit-learn, against refits, and where labels are few or extreme."""

import numpy as np
import pytest
import torch
from helpers.examples import normal
from sklearn.linear_model import LogisticRegression
from torch.testing import assert_close

from balent import Learner, Logistic
from balent.maths import noise
from balent.predictors.logistic import Objective, Regression, unit_rows
from balent.predictors.neighbours import Neighbours, hashes


def labelled(points=60, classes=3, features=8, seed=0):
    centres = normal(classes, features, seed=seed + 100).float()
    y = torch.arange(points) % classes
    return centres[y] + 0.8 * normal(points, features, seed=seed).float(), y


def fitted(x, y, classes=3, **options):
    predictor = Logistic(classes, **options)
    predictor.fit((x, y), generator=torch.Generator())
    return predictor


def best(predictor):
    view = predictor.views[0]
    return view.regression.weights(view.start)[0]


# ── the fit ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("points", [6, 60, 300])
@pytest.mark.parametrize("classes", [3, 5])
def test_the_best_weights_are_those_of_scikit_learn(points, classes):
    x, y = labelled(points, classes)
    rows = unit_rows(x).double().numpy()
    theirs = LogisticRegression(C=1 / 0.03, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(rows, y)
    assert_close(best(fitted(x, y, classes)), torch.from_numpy(theirs.coef_), rtol=1e-3, atol=1e-4)


def test_two_classes_are_scikit_learns_with_half_the_prior():
    """Two rows of weights w and -w share the penalty of one: |w|² + |w|² = ½ |2w|²."""
    x, y = labelled(50, 2)
    rows = unit_rows(x).double().numpy()
    theirs = LogisticRegression(C=2 / 0.03, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(rows, y)
    w = best(fitted(x, y, 2))
    assert_close(w[1] - w[0], torch.from_numpy(theirs.coef_[0]), rtol=1e-3, atol=1e-4)


def test_the_gradient_is_that_of_automatic_differentiation():
    x, y = labelled(20)
    r = Regression.of(unit_rows(x), y, 3, 0.03)
    v = torch.rand(4, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    w = torch.randn(4, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    losses = []
    for i in range(4):
        logits = r.x @ w[i].unflatten(0, (3, -1)).T
        each = torch.nn.functional.cross_entropy(logits, y, reduction="none")
        losses.append((v[i] * each).sum() + 0.015 * w[i].square().sum())
    expected = torch.autograd.grad(sum(losses), w)[0]
    value, gradient = Objective(r.x, r.hot, v, 0.03)(w.detach())
    assert_close(value, torch.stack(losses).detach())
    assert_close(gradient, expected)


def test_more_features_than_labels_and_more_labels_than_features():
    for points, features in ((6, 40), (40, 6)):
        x, y = labelled(points, features=features)
        predictor = fitted(x, y)
        assert best(predictor).shape == (3, features)
        assert (predictor.sample(20, seed=0).moments(x).mean.argmax(1) == y).double().mean() > 0.7


def test_data_that_a_plane_separates_have_finite_weights():
    x = torch.cat([torch.full((5, 3), 1.0), torch.full((5, 3), -1.0)])
    p = fitted(x, torch.arange(10) // 5, 2).sample(20, seed=0)(x)
    assert p.isfinite().all()
    assert p[:5, :, 0].min() > 0.5 > p[5:, :, 0].max()


def test_a_class_without_labels_has_a_small_probability():
    x, y = labelled(40, 2)
    mean = fitted(x, y, 4).sample(20, seed=0).moments(x).mean
    assert mean.shape == (40, 4)
    assert 0 < mean[:, 2:].max() < mean[:, :2].max(1).values.min()


def test_a_thousand_classes():
    x, y = labelled(1000, 1000, 16)
    predictor = fitted(x, y, 1000)
    assert predictor.sample(4, seed=0)(x[:3]).shape == (3, 4, 1000)


# ── draws ────────────────────────────────────────────────────────────────────────────────────────


def test_draws_are_refits_under_exponential_weights():
    x, y = labelled(60)
    predictor = fitted(x, y)
    drawn = predictor.sample(10, seed=5).logits.drawn(0, 10)
    rows = unit_rows(x).double().numpy()
    for j in range(10):
        v = noise.exponential(5, torch.arange(60), j).numpy()
        theirs = LogisticRegression(C=1 / 0.03, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(rows, y, v)
        p = torch.from_numpy(theirs.predict_proba(rows)).float()
        assert_close((unit_rows(x) @ drawn[j].T).softmax(1), p, rtol=0, atol=0.02)


def test_the_spread_of_draws_is_that_of_refits():
    """Variance of probabilities over 200 draws against that over 200 refits with other weights: a factor of 1.25 is
    far beyond what two samples of 200 differ by on average over 30 points and 3 classes."""
    x, y = labelled(45)
    rows, new = unit_rows(x).double().numpy(), labelled(30, seed=9)[0]
    ours = fitted(x, y).sample(200, seed=0).moments(new).var
    refits = []
    for j in range(200):
        v = noise.exponential(77, torch.arange(45), j).numpy()
        model = LogisticRegression(C=1 / 0.03, fit_intercept=False, max_iter=1000).fit(rows, y, v)
        refits.append(model.predict_proba(unit_rows(new).double().numpy()))
    theirs = np.stack(refits).var(0)
    assert 1 / 1.25 < float(ours.mean()) / theirs.mean() < 1.25


@pytest.mark.parametrize("anchored", [False, True])
def test_a_part_is_a_part_of_the_whole(anchored):
    x, y = labelled(30)
    sampled = fitted(x, y, anchors=x if anchored else None).sample(47, seed=1)
    whole = sampled(x)
    for start, stop in ((0, 20), (5, 6), (19, 47)):
        assert_close(sampled.part(start, stop)(x), whole[:, start:stop], rtol=1e-5, atol=1e-6)


def test_few_draws_are_the_first_of_many():
    x, y = labelled(30)
    predictor = fitted(x, y, anchors=x)
    assert_close(predictor.sample(7, seed=1)(x), predictor.sample(30, seed=1)(x)[:, :7])


def test_half_of_the_draws_see_the_neighbours():
    x, y = labelled(30)
    plain, both = (fitted(x, y, anchors=anchors).sample(20, seed=0) for anchors in (None, x))
    assert_close(both(x)[:, ::2].mean(1), plain(x).mean(1), rtol=0, atol=0.1)
    assert (both(x)[:, ::2].mean(1) - both(x)[:, 1::2].mean(1)).abs().max() > 0.01


def test_features_are_unit_rows():
    x, y = labelled(30)
    assert_close(fitted(x, y).sample(3, seed=0).features(5 * x), unit_rows(x))


def test_features_are_directions_from_the_middle_of_the_pool():
    x, y = labelled(30)
    seen = fitted(x, y, anchors=x + 1).sample(3, seed=0).features(x)
    assert_close(seen, (x - x.mean(0) - 1) / (x - x.mean(0) - 1).norm(dim=1, keepdim=True))


def test_where_the_origin_is_makes_no_difference_with_anchors():
    """Features that are never negative all point the same way from 0: seen from there few labels tell little."""
    x, y = labelled(30)
    here, there = (fitted(x + far, y, anchors=x + far).sample(6, seed=0)(x + far) for far in (0, 100))
    assert_close(here, there, rtol=0, atol=1e-3)


def test_anchors_and_their_middle_are_the_state():
    x, y = labelled(30)
    before, after = fitted(x, y, anchors=x + 1), Logistic(3)
    after.load_state(before.state())
    after.fit((x, y), generator=torch.Generator())
    assert torch.equal(before.sample(4, seed=0)(x), after.sample(4, seed=0)(x))


def test_masks_per_point_are_refused_and_auto_means_shared():
    x, y = labelled()
    drawn = [fitted(x, y).sample(3, seed=0, masks=masks)(x) for masks in ("auto", "shared")]
    assert torch.equal(*drawn)
    with pytest.raises(ValueError, match="one W for all points"):
        fitted(x, y).sample(3, seed=0, masks="per-point")


@pytest.mark.parametrize(("classes", "word"), [(1, "2 or more"), (True, "whole number")])
def test_classes_are_a_number_of_two_or_more(classes, word):
    with pytest.raises(ValueError, match=word):
        Logistic(classes)


def test_one_class_is_refused_without_advice_that_does_not_apply():
    """It said "pass one_class=True", which Logistic does not have."""
    x, _ = labelled()
    with pytest.raises(ValueError, match=r"chosen at random, say\)$"):
        fitted(x, torch.zeros(len(x), dtype=torch.int64))


def test_rows_that_are_no_numbers_are_named():
    x, y = labelled()
    x[7, 2] = torch.nan
    with pytest.raises(ValueError, match="row 7"):
        fitted(x, y)


# ── neighbours ───────────────────────────────────────────────────────────────────────────────────


ORIGIN = torch.zeros(6)


def test_the_view_by_its_definition():
    anchors, x = unit_rows(normal(200, 6)), unit_rows(normal(10, 6, seed=1))
    for row, view in zip(x, Neighbours(anchors, ORIGIN)(x), strict=True):
        cosines = anchors @ row
        nearest = cosines.argsort(descending=True)[:15]
        mean = (cosines[nearest].clamp(min=0)[:, None] ** 3 * anchors[nearest]).sum(0)
        both = row + mean / mean.norm()
        assert_close(view, both / both.norm(), rtol=1e-4, atol=1e-5)


def test_views_are_remembered_and_the_same():
    found, x = Neighbours.among(normal(100, 6).float()), unit_rows(normal(300, 6, seed=1))
    first = found(x)
    calls = []
    found._view = lambda rows: calls.append(len(rows)) or Neighbours(found.anchors, found.centre)._view(rows)
    assert torch.equal(found(x.flip(0)), first.flip(0))
    assert calls == []
    found(unit_rows(normal(4, 6, seed=2)))
    assert calls == [4]


def test_what_does_not_fit_in_memory_is_computed_again():
    anchors, x = unit_rows(normal(100, 6)), unit_rows(normal(30, 6, seed=1))
    small = Neighbours(anchors, ORIGIN, memory=0)
    assert_close(small(x), Neighbours(anchors, ORIGIN)(x))
    assert_close(small(x), Neighbours(anchors, ORIGIN)(x))


def test_rows_whose_keys_agree_are_told_apart(monkeypatch):
    anchors, x = unit_rows(normal(100, 6)), unit_rows(normal(30, 6, seed=1))
    expected = Neighbours(anchors, ORIGIN)(x)
    monkeypatch.setattr("balent.predictors.neighbours.hashes", lambda rows: torch.zeros(len(rows), dtype=torch.int64))
    found = Neighbours(anchors, ORIGIN)
    for _ in range(2):
        for row, view in zip(x.split(1), expected.split(1), strict=True):
            assert_close(found(row), view)


def test_keys_differ_where_rows_do():
    assert len(hashes(normal(1000, 6).float()).unique()) == 1000


def test_a_learner_gives_rows_of_its_pool_and_keeps_them(tmp_path):
    x, _ = labelled(50)
    with Learner(Logistic(3), x, directory=tmp_path) as learner:
        anchors = learner.predictor.anchors
    assert_close(anchors, unit_rows(x, x.mean(0)))
    with Learner(Logistic(3), x, directory=tmp_path) as again:
        assert torch.equal(again.predictor.anchors, anchors)


def test_anchors_that_a_person_gives_stay(tmp_path):
    x, _ = labelled(50)
    with Learner(Logistic(3, x[:9]), x, directory=tmp_path) as learner:
        assert len(learner.predictor.anchors) == 9
