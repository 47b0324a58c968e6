"""The Gaussian around the last layer: against autograd, against inverses computed outright, and what it refuses."""

import math

import pytest
import torch
from helpers.examples import f64, normal
from helpers.labelled import blobs, generator, network
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from balent.predictors import laplace
from balent.predictors.laplace import Full, Kronecker, LastLayerLaplace, Posterior, hessian, log_evidence, posterior

POINTS, FEATURES, CLASSES = 7, 4, 3


def problem():
    """Features, weights, and the probabilities that they give."""
    phi, mean = normal(POINTS, FEATURES), normal(CLASSES, FEATURES, seed=1)
    return phi, mean, (phi @ mean.T).softmax(-1)


def covariance(curvature, precision):
    """A Aᵀ, where the draws are A times standard normal numbers, one for each eigenvalue."""
    spread = (curvature.eigenvalues + precision).rsqrt()
    a = curvature.weights(torch.diag(spread.flatten()).unflatten(1, spread.shape)).flatten(1)
    return a.T @ a


def test_two_classes_and_one_feature_by_hand():
    """At W = 0, p = (½, ½) and H = φ²/4 · [[1, −1], [−1, 1]]: with φ = 2, τ = 1 the inverse is [[2, 1], [1, 2]]/3."""
    curvature = Full.of(f64([[2.0]]), f64([[0.5, 0.5]]))
    assert_close(hessian(f64([[2.0]]), f64([[0.5, 0.5]])), f64([[1.0, -1.0], [-1.0, 1.0]]))
    assert_close(covariance(curvature, 1.0), f64([[2.0, 1.0], [1.0, 2.0]]) / 3)


def test_the_curvature_is_the_second_derivative_of_the_loss(monkeypatch):
    """Exactly: for a linear layer under cross-entropy, Gauss–Newton leaves nothing out. In blocks of 3 points, too."""
    monkeypatch.setattr(laplace, "BLOCK", 3)
    phi, mean, p = problem()
    y = torch.arange(POINTS) % CLASSES

    def loss(flat):
        return cross_entropy(phi @ flat.view(CLASSES, FEATURES).T, y, reduction="sum")

    assert_close(hessian(phi, p), torch.autograd.functional.hessian(loss, mean.flatten()))


def test_the_posterior_covariance_is_the_inverse_of_curvature_plus_prior():
    phi, _, p = problem()
    expected = torch.linalg.inv(hessian(phi, p) + 0.3 * torch.eye(CLASSES * FEATURES).double())
    assert_close(covariance(Full.of(phi, p), 0.3), expected)


def test_kronecker_factors_are_exact_where_all_points_have_the_same_probabilities():
    """Then Σ_n G ⊗ φ_n φ_nᵀ is G ⊗ Σ φφᵀ."""
    phi, _, p = problem()
    same = p[:1].expand(POINTS, -1)
    assert_close(covariance(Kronecker.of(phi, same), 0.3), covariance(Full.of(phi, same), 0.3))


@pytest.mark.parametrize("kind", [Full, Kronecker])
def test_draws_have_the_posterior_mean_and_covariance(kind):
    """20,000 draws: standard errors of 0.7 % of a standard deviation, 1 % of a variance; five of them are allowed."""
    phi, mean, p = problem()
    curvature = kind.of(phi, p)
    drawn = Posterior(mean, curvature, 2.0).draw(20_000, generator()).flatten(1)
    expected = covariance(curvature, 2.0)
    assert_close(drawn.mean(0), mean.flatten(), rtol=0, atol=5 * math.sqrt(expected.max() / 20_000))
    assert_close(drawn.T.cov(), expected, rtol=0, atol=5 * 0.01 * float(expected.max()))


@pytest.mark.parametrize("precision", [0.01, 1.0, 50.0])
def test_the_evidence_is_that_of_its_definition(precision):
    """½ [P log τ − τ |W*|² − log det(H + τ I)]"""
    phi, mean, p = problem()
    size = mean.numel()
    det = torch.linalg.slogdet(hessian(phi, p) + precision * torch.eye(size).double()).logabsdet
    expected = (size * math.log(precision) - precision * mean.square().sum() - det) / 2
    assert_close(log_evidence(mean, Full.of(phi, p), precision), expected)


def test_the_prior_is_the_most_likely_one_of_the_grid_or_the_one_given():
    model, (x, y) = network(), blobs()
    found = posterior(model, x, len(y))
    best = max(laplace.GRID, key=lambda tau: float(log_evidence(found.mean, found.curvature, tau)))
    assert found.precision == best
    assert posterior(model, x, len(y), 0.7).precision == 0.7


def test_more_than_a_few_weights_take_kronecker_factors(monkeypatch):
    model, (x, y) = network(), blobs()  # 3 · (8 + 1) weights in the last layer
    kinds = []
    for limit in (27, 26):
        monkeypatch.setattr(laplace, "FULL", limit)
        kinds.append(type(posterior(model, x, len(y)).curvature))
    assert kinds == [Full, Kronecker]


@pytest.mark.parametrize("bias", [True, False])
def test_a_prior_of_great_precision_leaves_the_network_itself(bias):
    """Var W ≤ 1/τ: every draw is the trained network."""
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3, bias=bias))
    predictor = LastLayerLaplace(model, prior_precision=1e12, epochs=2)
    predictor.fit(blobs(), generator=generator())
    x, _ = blobs(9, seed=5)
    draws = predictor.sample(4, seed=0)(x)
    assert_close(draws, model(x).softmax(-1)[:, None].expand_as(draws), rtol=0, atol=1e-4)


def test_doubt_grows_away_from_the_labels():
    predictor = LastLayerLaplace(network(p=0.0), epochs=30, learning_rate=0.01)
    predictor.fit(blobs(), generator=generator())
    near, far = (predictor.sample(200, seed=0).moments(scale * blobs(30)[0]).var.sum() for scale in (1.0, -3.0))
    assert far > 3 * near


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Conv2d(1, 3, 4), nn.Flatten()), "no nn.Linear layer"),
        (nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Softmax(-1)), "something comes after it; let the model give"),
    ],
)
def test_a_model_must_end_in_a_linear_layer(model, message):
    with pytest.raises(ValueError, match=message):
        LastLayerLaplace(model, epochs=1).fit(blobs(), generator=generator())


def test_there_is_no_posterior_before_the_first_fit():
    with pytest.raises(ValueError, match=r"no posterior yet; call fit\(labelled, generator=…\) first"):
        LastLayerLaplace(network()).sample(3, seed=0)


def test_a_prior_precision_is_positive():
    with pytest.raises(ValueError, match="prior_precision must be positive, but is -1"):
        LastLayerLaplace(network(), prior_precision=-1.0)
