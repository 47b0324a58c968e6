"""The Gaussian process: its targets, and draws that are functions with the exact posterior's moments."""

import math
import sys
from dataclasses import replace

import pytest
import torch
from helpers.examples import f64, normal
from helpers.labelled import blobs, generator
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from balent.predictors import GaussianProcess
from balent.predictors.gaussian_process import (
    Fitted,
    dirichlet_targets,
    gpytorch,
    kernel,
    learned,
    paths,
    square_distances,
    waves,
)

CLASSES, POINTS = 3, 12


def fitted():
    """A Gaussian process with a kernel of its own for each class."""
    x, y = blobs(POINTS)
    targets, noise = dirichlet_targets(y, CLASSES)
    return Fitted(x.double(), targets, noise, f64([-1.0, -2.0, 0.5]), f64([1.0, 3.0, 2.0]), f64([1.5, 2.5, 4.0]))


def exact(f, x, c):
    """Mean and covariance of the posterior of one class, by the textbook."""
    inner = kernel(square_distances(f.x, f.x), f.scale[c], f.lengthscale[c]) + f.noise[c].diag()
    across = kernel(square_distances(x, f.x), f.scale[c], f.lengthscale[c])
    outer = kernel(square_distances(x, x), f.scale[c], f.lengthscale[c])
    mean = f.mean[c] + across @ torch.linalg.solve(inner, f.targets[c] - f.mean[c])
    return mean, outer - across @ torch.linalg.solve(inner, across.T)


def evidence(f):
    """log p(ỹ) of all classes."""
    squares = square_distances(f.x, f.x)
    total = 0.0
    for c in range(CLASSES):
        covariance = kernel(squares, f.scale[c], f.lengthscale[c]) + f.noise[c].diag()
        total += MultivariateNormal(f.mean[c].expand(len(f.x)), covariance).log_prob(f.targets[c]).item()
    return total


def test_targets_by_hand():
    """a = 1.01 and 0.01; s² = log(1/a + 1) = 0.6882 and 4.6151; ỹ = log a − s²/2 = −0.3342 and −6.9127."""
    targets, noise = dirichlet_targets(torch.tensor([0]), 2)
    assert_close(noise, f64([[0.6882], [4.6151]]), rtol=0, atol=1e-4)
    assert_close(targets, f64([[-0.3342], [-6.9127]]), rtol=0, atol=1e-4)


def test_targets_are_those_of_gpytorch():
    y = torch.tensor([0, 2, 1, 2])
    likelihood = gpytorch().likelihoods.DirichletClassificationLikelihood(y, dtype=torch.float64)
    targets, noise = dirichlet_targets(y, 3)
    assert_close(targets, likelihood.transformed_targets)
    assert_close(noise, likelihood.noise)


def test_fourier_features_have_the_kernel_as_inner_products():
    """At one point exactly (cos² + sin² = 1); between points with a standard error below 1/√features: five allowed."""
    x, scale, lengthscale = normal(6, 4), f64(3.0), f64(2.0)
    phi = waves(x @ normal(4000, 4, seed=1).T, scale, lengthscale, torch.eye(8000)).double()
    products = phi @ phi.T
    assert_close(products.diag(), torch.full((6,), 3.0).double(), rtol=1e-6, atol=0)
    assert_close(products / 3, kernel(square_distances(x, x), f64(1.0), lengthscale), rtol=0, atol=5 / math.sqrt(4000))


def test_draws_pass_through_labels_without_noise():
    """Matheron's correction is exact at the labelled points, whatever the prior's draw."""
    f = fitted()
    f = replace(f, noise=torch.full_like(f.noise, 1e-10))
    drawn = paths(f, 4, 32, generator())(f.x)  # [points, draws, classes]
    assert_close(drawn, f.targets.T[:, None].expand_as(drawn), rtol=0, atol=1e-4)


@pytest.mark.parametrize("c", range(CLASSES))
def test_draws_have_the_moments_of_the_exact_posterior(c):
    """4,000 draws: the mean has a standard error of σ/63 (five allowed); the covariance also that of the features."""
    f, x = fitted(), normal(5, 4, seed=3) + 1
    mean, covariance = exact(f, x, c)
    drawn = paths(f, 4000, 2000, generator())(x)[:, :, c]
    assert ((drawn.mean(1) - mean).abs() < 5 * covariance.diag().sqrt() / math.sqrt(4000)).all()
    assert_close(drawn.cov(), covariance, rtol=0, atol=0.12 * float(f.scale[c]))


def test_our_posterior_mean_is_that_of_gpytorch():
    """The kernel's parameters mean the same on both sides."""
    from balent.predictors import gaussian_process

    f, gp = fitted(), gpytorch()
    noise = gp.likelihoods.FixedNoiseGaussianLikelihood(
        f.noise, learn_additional_noise=True, batch_shape=torch.Size([3])
    )
    model = gaussian_process._model(f.x, f.targets, noise).double().eval()
    x = normal(5, 4, seed=3)
    theirs = model(x)
    ours = gaussian_process._fitted(f.x, f.targets, model)
    for c in range(CLASSES):
        mean, covariance = exact(ours, x, c)
        assert_close(theirs.mean[c], mean, rtol=1e-4, atol=1e-4)
        assert_close(theirs.variance[c], covariance.diag(), rtol=1e-3, atol=1e-3)


def test_learning_makes_the_labels_more_likely():
    x, y = blobs(POINTS)
    before, after = (learned(x.double(), y, CLASSES, iterations, 0.1) for iterations in (0, 40))
    assert evidence(after) > evidence(before) + 1


def test_it_learns_what_is_easy_to_learn():
    predictor = GaussianProcess(CLASSES, iterations=20)
    predictor.fit(blobs(), generator=generator())
    x, y = blobs(300, seed=1)
    assert (predictor.sample(50, seed=0).moments(x).mean.argmax(1) == y).float().mean() > 0.95


def test_a_class_without_labels_is_possible():
    """Three classes, labels of two."""
    x, y = blobs(classes=2)
    predictor = GaussianProcess(CLASSES, iterations=3)
    predictor.fit((x, y), generator=generator())
    assert predictor.sample(4, seed=0)(x).shape == (60, 4, 3)


def test_images_are_flattened():
    x, y = blobs()
    predictor = GaussianProcess(CLASSES, iterations=3)
    predictor.fit((x.view(-1, 1, 2, 2), y), generator=generator())
    assert predictor.sample(4, seed=0).features(x.view(-1, 1, 2, 2)).shape == (60, 4)


def test_progress_counts_iterations():
    seen = []
    GaussianProcess(CLASSES, iterations=3).fit(blobs(), generator=generator(), progress=lambda *i: seen.append(i))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_there_are_no_functions_before_the_first_fit():
    with pytest.raises(ValueError, match=r"knows no labels yet; call fit\(labelled, generator=…\) first"):
        GaussianProcess(CLASSES).sample(3, seed=0)


def test_without_gpytorch_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    with pytest.raises(ImportError, match=r"pip install 'balent\[gp\]'"):
        GaussianProcess(CLASSES)
