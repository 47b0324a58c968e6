"""A Gaussian around the weights of the last layer (Laplace's approximation), the rest of the network fixed.

    H = Σ_n (diag p_n − p_n p_nᵀ) ⊗ φ_n φ_nᵀ        curvature of the loss in the weights W [classes, features]
    W ~ N(W*, (H + τ I)⁻¹)

W* is what training found, φ are the inputs of the last layer with a 1 for its bias, τ the prior's
precision: given, or the one of a grid under which the labels are most likely (MacKay, 1992). H is
exact up to `FULL` weights; beyond, it is the Kronecker product of its two mean factors (Ritter et
al., 2018). Both are kept by their eigenvectors, so that every τ and every draw costs little.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn

from balent.batches import take
from balent.predictors.asked import shared_draws
from balent.predictors.functions import Functions
from balent.predictors.inputs import Batch, as_pairs, fitting, logits_of
from balent.predictors.last_layer import Features, frozen, split
from balent.predictors.training import FromTraining, Progress, Trained, Training
from balent.types import Indices

FULL = 2048  # weights: 32 MB of curvature, whose eigenvectors take seconds
GRID = tuple(10 ** (k / 4) for k in range(-16, 17))  # 1e-4 … 1e4
BLOCK = 1024  # points at a time while the curvature is summed


@dataclass(frozen=True)
class Full:
    """The curvature of every pair of weights, by its eigenvectors."""

    eigenvalues: Tensor
    vectors: Tensor
    classes: int

    @classmethod
    def of(cls, features: Tensor, p: Tensor) -> "Full":
        eigenvalues, vectors = torch.linalg.eigh(hessian(features, p))
        return cls(eigenvalues.clamp_min(0), vectors, p.shape[1])  # below 0 is rounding: H is a sum of squares

    def weights(self, along: Tensor) -> Tensor:
        """Numbers along the eigenvectors, turned back into weights: [draws, classes, features]."""
        return (along @ self.vectors.T).unflatten(1, (self.classes, -1))


@dataclass(frozen=True)
class Kronecker:
    """The curvature as that of classes times that of features, by their eigenvectors."""

    of_classes: Tensor  # eigenvalues
    of_features: Tensor
    class_vectors: Tensor
    feature_vectors: Tensor

    @classmethod
    def of(cls, features: Tensor, p: Tensor) -> "Kronecker":
        by_class, class_vectors = torch.linalg.eigh(p.mean(0).diag() - p.T @ p / len(p))
        by_feature, feature_vectors = torch.linalg.eigh(features.T @ features)
        return cls(by_class.clamp_min(0), by_feature.clamp_min(0), class_vectors, feature_vectors)

    @property
    def eigenvalues(self) -> Tensor:
        return self.of_classes[:, None] * self.of_features

    def weights(self, along: Tensor) -> Tensor:
        return self.class_vectors @ along @ self.feature_vectors.T


Curvature = Full | Kronecker


def hessian(features: Tensor, p: Tensor) -> Tensor:
    """H, class by class:  Σ_n p_nc φ_n φ_nᵀ in the blocks of the diagonal, less Σ_n (p_n ⊗ φ_n)(p_n ⊗ φ_n)ᵀ."""
    blocks = [(features * by_class[:, None]).T @ features for by_class in p.T]
    total = torch.block_diag(*blocks)
    for phi, q in zip(features.split(BLOCK), p.split(BLOCK), strict=True):
        outer = (q[:, :, None] * phi[:, None, :]).flatten(1)
        total -= outer.T @ outer
    return total


@dataclass(frozen=True)
class Posterior:
    """The Gaussian over the last layer's weights [classes, features]."""

    mean: Tensor
    curvature: Curvature
    precision: float  # τ, of the prior

    def draw(self, n: int, generator: Generator) -> Tensor:
        spread = (self.curvature.eigenvalues + self.precision).rsqrt()
        noise = torch.randn((n, *spread.shape), generator=generator, dtype=spread.dtype)
        return self.mean + self.curvature.weights(noise * spread)


def log_evidence(mean: Tensor, curvature: Curvature, precision: float) -> Tensor:
    """log p(labels | τ), up to what does not depend on τ:  ½ [P log τ − τ |W*|² − Σ log(λ + τ)]."""
    shrunk = precision * mean.square().sum() + (curvature.eigenvalues / precision).log1p().sum()
    return -shrunk / 2


@dataclass(frozen=True)
class LinearDraws:
    """n last layers on one body: the logits of all draws are one matrix product."""

    body: Features
    drawn: Tensor  # [draws, classes, features]
    bias: bool

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Tensor:
        phi = with_bias(self.body(batch), self.bias)
        return (phi @ self.drawn.flatten(0, 1).T).unflatten(1, self.drawn.shape[:2])


def with_bias(features: Tensor, bias: bool) -> Tensor:
    return torch.cat([features, features.new_ones(len(features), 1)], 1) if bias else features


class LastLayerLaplace(FromTraining):
    """Any model that ends in a linear layer: trained as usual, then uncertain about that layer."""

    def __init__(self, model: nn.Module, *, prior_precision: float | None = None, **training: Any) -> None:
        if split(model) is None:
            raise ValueError("the model has no nn.Linear layer; end it with one")
        if prior_precision is not None and not prior_precision > 0:
            raise ValueError(f"prior_precision must be positive, but is {prior_precision}")
        self.model, self.prior_precision = model, prior_precision
        self.trained = Trained("model", model, Training(**training))
        self.posterior: Posterior | None = None

    def fit(self, labelled: Any, *, generator: Generator, progress: Progress | None = None) -> None:
        x, y = as_pairs(labelled)
        self.trained.fit((x, y), generator=generator, progress=progress)
        self.posterior = posterior(self.model, x, len(y), self.prior_precision)

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        shared_draws(n, masks, "a draw of LastLayerLaplace is one last layer for all points")
        if self.posterior is None:
            raise ValueError("LastLayerLaplace has no posterior yet; call fit(labelled, generator=…) first")
        body, head = _parts(self.model)
        drawn = self.posterior.draw(n, torch.Generator().manual_seed(seed)).to(head.weight)
        kind = type(self.posterior.curvature).__name__.lower()
        plan = (
            f"the body runs once, {n} last layers are one product; {kind} curvature, τ = {self.posterior.precision:g}"
        )
        return Functions(LinearDraws(body, drawn, head.bias is not None), n, plan, body)


@torch.inference_mode()
def posterior(model: nn.Module, x: Batch, points: int, precision: float | None = None) -> Posterior:
    """Laplace's approximation around the model's last layer as it is."""
    body, head = _parts(model)
    phi = torch.cat([body(take(x, slice(i, i + BLOCK))).double().cpu() for i in range(0, points, BLOCK)])
    phi = with_bias(phi, head.bias is not None)
    mean = (head.weight if head.bias is None else torch.cat([head.weight, head.bias[:, None]], 1)).double().cpu()
    _check_last(model, body, head, take(x, slice(0, 1)))
    curvature = (Full if mean.numel() <= FULL else Kronecker).of(phi, (phi @ mean.T).softmax(-1))
    best = precision or max(GRID, key=lambda tau: float(log_evidence(mean, curvature, tau)))
    return Posterior(mean, curvature, best)


def _parts(model: nn.Module) -> tuple[Features, nn.Linear]:
    parts = split(model)
    assert parts is not None  # checked when the predictor was made
    return parts


def _check_last(model: nn.Module, body: Features, head: nn.Linear, batch: Batch) -> None:
    """Does the model really end with that layer?"""
    whole = logits_of(frozen(model), fitting(model, batch))
    if not torch.allclose(head(body(batch)), whole, rtol=1e-3, atol=1e-4):
        raise ValueError(
            "the model's output must be that of its last nn.Linear layer, but something comes after it; "
            "let the model give logits, without softmax or scaling"
        )
