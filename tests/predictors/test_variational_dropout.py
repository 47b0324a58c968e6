"""Variational dropout: its divergence against the exact one, and that outputs with noise are sums of noisy weights."""

import math

import pytest
import torch
from helpers.examples import normal
from helpers.labelled import blobs, generator, network
from torch import nn
from torch.testing import assert_close

from balent.predictors.variational_dropout import VariationalDropout, VariationalLinear


def layer(alpha=0.25, inputs=4, outputs=3):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return VariationalLinear(inputs, outputs, alpha=alpha)


def exact_divergence(alpha):
    """−½ log α + E log|1 + √α ε|, less its value at α = 1.

    (1 + √α ε)²/α is a noncentral χ² of one degree and noncentrality 1/α: a Poisson(1/2α) mixture of central ones,
    whose expected logarithms are ψ(½ + j) + log 2.
    """

    def up_to_a_constant(a):
        rate, j = torch.tensor(0.5 / a).double(), torch.arange(4000).double()
        poisson = (j * rate.log() - rate - torch.lgamma(j + 1)).exp()
        return 0.5 * float((poisson * torch.digamma(0.5 + j)).sum())  # ½ log α has cancelled

    return up_to_a_constant(alpha) - up_to_a_constant(1.0)


def test_the_divergence_at_one_half_by_hand():
    """Σ c_k (1 − 2⁻ᵏ) + ½ log 2 = 0.5807 − 1.1265 + 0.5130 + 0.3466 for each weight."""
    assert_close(layer(0.5, 1, 1).divergence().item(), 0.3138, rtol=0, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.25, 0.5, 0.9])
def test_the_divergence_is_near_the_exact_one(alpha):
    """The polynomial of Kingma et al. is a fit: within 0.035 nats a weight, of 2.5 at α = 0.01."""
    assert_close(layer(alpha).divergence().item() / 12, exact_divergence(alpha), rtol=0, atol=0.035)


def test_the_divergence_does_not_depend_on_the_weights():
    one = layer()
    before = one.divergence()
    with torch.no_grad():
        one.weight.mul_(7)
    assert_close(one.divergence(), before, rtol=0, atol=0)


def test_noise_of_outputs_is_that_of_weights():
    """Local reparametrisation: 40,000 points with their own noise, or as many weight matrices at one point.

    Means within five standard errors of σ/200; variances, whose standard errors are 0.7 %, within 4 %.
    """
    one, x = layer(0.5).train(), normal(1, 4, dtype=torch.float32)
    variance = (x.square() @ (one.alpha * one.weight.square()).T).squeeze(0)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        by_output = one.noise(x.expand(40_000, -1))
        g = generator(1)
        by_weight = torch.cat([x @ (one.drawn(g) - one.weight).T for _ in range(40_000)])
    for noise in (by_output, by_weight):
        assert (noise.mean(0).abs() < 5 * (variance / 40_000).sqrt()).all()
        assert_close(noise.var(0), variance.detach(), rtol=0.04, atol=0)


def test_a_layer_is_its_mean_in_eval_mode_and_noisy_in_training():
    one, x = layer().eval(), normal(5, 4, dtype=torch.float32)
    assert torch.equal(one(x), (x @ one.weight.T + one.bias).relu())
    one.train()
    assert not torch.equal(one(x), one(x))


def test_a_point_without_features_has_a_gradient():
    """√0 has an infinite slope: without its floor all weights would be NaN after one step."""
    one = layer().train()
    one(torch.zeros(2, 4)).sum().backward()
    assert all(p.grad.isfinite().all() for p in one.parameters())


def model():
    return nn.Sequential(layer(outputs=8), nn.Linear(8, 3))


def test_without_labels_to_speak_of_the_prior_wins():
    """The bound weighs the divergence against the labels: much of it drives every α towards 1, none leaves them."""
    levels = []
    for kl_weight in (1000.0, 0.0):
        predictor = VariationalDropout(model(), kl_weight=kl_weight, epochs=30, learning_rate=0.05)
        predictor.fit(blobs(), generator=generator())
        levels.append(predictor.model[0].alpha.mean().item())
    assert levels[0] > 0.7  # from 0.25
    assert levels[1] < 0.3


def test_it_learns_what_is_easy_to_learn():
    predictor = VariationalDropout(model(), epochs=40, learning_rate=0.01)
    predictor.fit(blobs(), generator=generator())
    x, y = blobs(300, seed=1)
    assert (predictor.sample(20, seed=0).moments(x).mean.argmax(1) == y).float().mean() > 0.95


def test_a_draw_is_one_network_for_all_points():
    """So it is linear where ReLU is: the function at the middle of two points is the mean of its values there."""
    one = model()
    with torch.no_grad():
        one[0].bias.fill_(100.0)  # every unit is on
    sampled = VariationalDropout(one).sample(5, seed=0)
    a, b = normal(2, 1, 4, dtype=torch.float32)
    middle = sampled.logits((a + b) / 2, None)
    assert_close(middle, (sampled.logits(a, None) + sampled.logits(b, None)) / 2, rtol=1e-4, atol=1e-4)


def test_a_model_without_variational_layers_is_refused():
    with pytest.raises(ValueError, match=r"no VariationalLinear layer; replace nn\.Linear layers by it"):
        VariationalDropout(network())


def test_alpha_stays_below_one():
    """Where the polynomial ends, whatever the optimizer does."""
    one = layer()
    with torch.no_grad():
        one.rho.fill_(50.0)
    assert one.alpha.max() <= 1
    assert math.isfinite(one.divergence().item())
