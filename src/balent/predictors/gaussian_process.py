"""Exact Gaussian-process classification with a Dirichlet likelihood (Milios et al., 2018), as in the paper.

Labels become, class by class, noisy observations of a Gaussian process:

    a_c = ε + 1[y = c],   s²_c = log(1/a_c + 1),   ỹ_c = log a_c − s²_c / 2,   P = softmax(f)

gpytorch learns the kernel. Functions are drawn from the posterior by Matheron's rule (Wilson et al.,
2020): a function of the prior, corrected where it misses the labels,

    f(·) = g(·) + k(·, X) (K + S)⁻¹ (ỹ − g(X) − noise)

with g a sum of random Fourier features. So a draw is a function that can be evaluated anywhere, block
by block, and gives the same value whatever else is in the block. The waves of g, most of the work, are
float32 (features are off by 1/√features anyway); what is solved and exponentiated is float64.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from balent.predictors.asked import shared_draws
from balent.predictors.functions import Functions
from balent.predictors.inputs import as_pairs
from balent.predictors.tasks import check_labels
from balent.predictors.training import Progress, check_sizes, reproducible
from balent.types import Indices

BLOCK = 256  # points whose waves do not leave the cache


@dataclass(frozen=True)
class Fitted:
    """What was learned, in float64; one Gaussian process for each class."""

    x: Tensor  # [points, inputs]
    targets: Tensor  # ỹ [classes, points]
    noise: Tensor  # s² [classes, points]
    mean: Tensor  # of the prior [classes]
    scale: Tensor  # variance of the prior [classes]
    lengthscale: Tensor  # [classes]


@dataclass(frozen=True)
class PathDraws:
    """n functions for each class: Fourier features of the prior, and weights of the kernel at the labelled points."""

    fitted: Fitted
    frequencies: Tensor  # [features, inputs], for lengthscale 1
    prior: Tensor  # [classes, 2·features, draws], float32
    update: Tensor  # [classes, points, draws]

    def __call__(self, batch: Tensor, positions: Indices | None = None) -> Tensor:
        x = flat(batch)
        squares = square_distances(x, self.fitted.x)
        phases = x @ self.frequencies.T
        return torch.stack([self.of_class(c, squares, phases) for c in range(len(self.prior))], -1)

    def of_class(self, c: int, squares: Tensor, phases: Tensor) -> Tensor:
        """f_c at each point under each draw."""
        f = self.fitted
        moved = kernel(squares, f.scale[c], f.lengthscale[c]) @ self.update[c]
        return f.mean[c] + waves(phases, f.scale[c], f.lengthscale[c], self.prior[c]) + moved


def flat(batch: Tensor) -> Tensor:
    """Points as rows of numbers."""
    return batch.flatten(1).double()


def square_distances(a: Tensor, b: Tensor) -> Tensor:
    return (a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T).clamp_min(0)  # below 0 is rounding


def kernel(squares: Tensor, scale: Tensor, lengthscale: Tensor) -> Tensor:
    """scale · exp(−|x − x'|² / 2ℓ²)"""
    return scale * (squares / (-2 * lengthscale.square())).exp()


def waves(phases: Tensor, scale: Tensor, lengthscale: Tensor, weights: Tensor) -> Tensor:
    """Random Fourier features, weighted and summed: [points, draws] for weights [2·features, draws].

    Inner products of the features are the kernel, up to 1/√features.
    """
    turned, (cosines, sines) = (phases / lengthscale).float(), weights.chunk(2)
    return (scale / phases.shape[1]).sqrt() * (turned.cos() @ cosines + turned.sin() @ sines)


def paths(fitted: Fitted, n: int, features: int, generator: Generator) -> PathDraws:
    """n functions from the posterior."""
    classes, inputs = len(fitted.mean), fitted.x.shape[1]
    frequencies = torch.randn(features, inputs, generator=generator).double()
    prior = torch.randn(classes, 2 * features, n, generator=generator)
    unseen = torch.randn(classes, len(fitted.x), n, generator=generator).double()
    squares, phases = square_distances(fitted.x, fitted.x), fitted.x @ frequencies.T
    update = [_update(fitted, c, squares, phases, prior[c], unseen[c]) for c in range(classes)]
    return PathDraws(fitted, frequencies, prior, torch.stack(update))


def _update(f: Fitted, c: int, squares: Tensor, phases: Tensor, prior: Tensor, unseen: Tensor) -> Tensor:
    """(K + S)⁻¹ (ỹ − g(X) − noise) of one class, for all draws."""
    covariance = kernel(squares, f.scale[c], f.lengthscale[c]) + f.noise[c].diag()
    g = f.mean[c] + waves(phases, f.scale[c], f.lengthscale[c], prior)
    missed = f.targets[c][:, None] - g - f.noise[c].sqrt()[:, None] * unseen
    return torch.cholesky_solve(missed, torch.linalg.cholesky(covariance))


class GaussianProcess:
    """For features: [batch, inputs] of numbers (other shapes are flattened), and thousands of labels at most.

    Each iteration costs classes · labels³; the paper takes 5,000 of them, a few hundred change little.
    """

    def __init__(
        self,
        classes: int,
        *,
        iterations: int = 300,
        learning_rate: float = 0.1,
        features: int = 1024,
        one_class: bool = False,
    ) -> None:
        gpytorch()
        self.classes, self.iterations, self.learning_rate = classes, iterations, learning_rate
        self.features, self.one_class = features, one_class
        self.fitted: Fitted | None = None

    def fit(self, labelled: Any, *, generator: Generator, progress: Progress | None = None) -> None:
        x, y = as_pairs(labelled)
        check_sizes(x, y)
        check_labels(y, self.classes, one_class=self.one_class)
        if not isinstance(x, Tensor) or not flat(x).isfinite().all():
            raise ValueError("a Gaussian process takes finite numbers [batch, inputs]; look for NaN in the inputs")
        with reproducible(generator):
            self.fitted = learned(flat(x), y, self.classes, self.iterations, self.learning_rate, progress)

    def state(self) -> dict[str, Tensor]:
        """Nothing: every fit starts anew."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Nothing to put back."""

    def width(self, batch: Any) -> int:
        """How many classes it was made for."""
        return self.classes

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        shared_draws(n, masks, "a draw of a GaussianProcess is one function for all points")
        if self.fitted is None:
            raise ValueError("GaussianProcess knows no labels yet; call fit(labelled, generator=…) first")
        draws = paths(self.fitted, n, self.features, Generator().manual_seed(seed))
        plan = f"{n} functions by Matheron's rule: {2 * self.features} Fourier features, {len(self.fitted.x)} labels"
        return Functions(draws, n, plan, flat, block=BLOCK)


def dirichlet_targets(y: Tensor, classes: int, epsilon: float = 0.01) -> tuple[Tensor, Tensor]:
    """ỹ and s², each [classes, points]."""
    a = epsilon + torch.nn.functional.one_hot(y, classes).T.double()
    noise = a.reciprocal().log1p()
    return a.log() - noise / 2, noise


def learned(
    x: Tensor, y: Tensor, classes: int, iterations: int, learning_rate: float, progress: Progress | None = None
) -> Fitted:
    """The kernel of each class under which its targets are most likely, by Adam."""
    gp, (targets, noise) = gpytorch(), dirichlet_targets(y, classes)
    likelihood = gp.likelihoods.FixedNoiseGaussianLikelihood(
        noise, learn_additional_noise=True, batch_shape=torch.Size([classes])
    )
    model = _model(x, targets, likelihood).double().train()
    evidence = gp.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    # Exact also beyond 800 points, where gpytorch would turn to iterations that are random.
    with gp.settings.max_cholesky_size(len(y) + 1):
        for i in range(iterations):
            optimizer.zero_grad()
            _finite(-evidence(model(x), targets).sum(), i).backward()
            optimizer.step()
            if progress is not None:
                progress(i + 1, iterations)
    return _fitted(x, targets, model)


def _model(x: Tensor, targets: Tensor, likelihood: Any) -> Any:
    """A constant mean and a squared-exponential kernel for each class; it begins at the points' median distance."""
    gp, shape = gpytorch(), torch.Size([len(targets)])

    class Model(gp.models.ExactGP):  # type: ignore[name-defined]  # imported only here
        def __init__(self) -> None:
            super().__init__(x, targets, likelihood)
            self.mean = gp.means.ConstantMean(batch_shape=shape)
            self.kernel = gp.kernels.ScaleKernel(gp.kernels.RBFKernel(batch_shape=shape), batch_shape=shape)

        def forward(self, x: Tensor) -> Any:
            return gp.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model()
    median = square_distances(x, x).sqrt().median()
    model.kernel.base_kernel.lengthscale = median if median > 0 else torch.tensor(1.0)
    return model


@torch.no_grad()
def _fitted(x: Tensor, targets: Tensor, model: Any) -> Fitted:
    noise = model.likelihood.noise  # s² and what was learned on top of it
    scale, lengthscale = model.kernel.outputscale, model.kernel.base_kernel.lengthscale
    return Fitted(*(t.detach().clone() for t in (x, targets, noise, model.mean.constant, scale, lengthscale.flatten())))


def _finite(loss: Tensor, iteration: int) -> Tensor:
    if not loss.isfinite():
        raise ValueError(f"the evidence must be finite, but is not at iteration {iteration}; lower learning_rate")
    return loss


def gpytorch() -> Any:
    """The package, or how to get it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch, about what gpytorch's import does
        try:
            import gpytorch
        except ImportError as error:
            raise ImportError(
                "GaussianProcess learns its kernel with gpytorch; install it with: pip install 'balent[gp]'"
            ) from error
    return gpytorch
