"""Last-layer dropout without sampling: moments of logits are known exactly, those of probabilities nearly.

A last layer z = W(mask∘r)/(1 - p) + b has E z = W r + b and Cov z = p/(1 - p) W diag(r²) Wᵀ. From them

- `matched` gives draws of logits their exact mean and variance;
- `Analytic` gives the moments of class probabilities, with no draw at all. With π = softmax(E z), v_i the variance
  of z_i - Σ_j π_j z_j and v̄ = Σ_j π_j v_j, the log-odds of class i have

      variance  v_i / (1 - π_i)²
      mean      log π_i/(1 - π_i) - ½ [(v̄ - π_i v_i)/(1 - π_i) - (π_i/(1 - π_i))² v_i]

  to second order (the bracket is the variance of the other classes' logits around their own mean). They are nearly
  normal, as sums over many units, so P_i is a logistic function of a normal number, whose moments take five points of
  Gauss-Hermite quadrature. The delta method, Var P_i ≈ π_i² v_i, is the limit of small v.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from balent.maths.moments import Moments
from balent.predictors.dropout.chain import Stage
from balent.predictors.dropout.network import Network
from balent.predictors.inputs import as_tensor, fitted
from balent.predictors.last_layer import Features
from balent.types import Indices, Probabilities, Traits

# Gauss-Hermite: five points and weights of a standard normal number.
NODES = (
    [-2.8569700138728056, -1.355626179974266, 0.0, 1.355626179974266, 2.8569700138728056],
    [0.011257411327720688, 0.2220759220056126, 0.5333333333333333, 0.2220759220056126, 0.011257411327720688],
)
ENDLESS = 2**53  # draws that the moments stand for: no floor for few draws is felt


def matched(
    z: Float[Tensor, "draws pool classes"], hidden: Tensor, stage: Stage
) -> Float[Tensor, "draws pool classes"]:
    """The draws moved and stretched so that mean and variance of each logit over draws are exact."""
    r, weight, bias = stage.activated(hidden), stage.linear.weight, stage.linear.bias
    mean = torch.nn.functional.linear(r, weight, bias)
    sd = (stage.p / (1 - stage.p) * torch.nn.functional.linear(r.square(), weight.square())).sqrt()
    centre, spread = z.mean(0), z.std(0, correction=0)
    # Draws that all agree cannot be stretched; neither is there anything to stretch.
    return mean + (z - centre) * torch.where(spread > 0, sd / spread, 0)


@dataclass(frozen=True)
class Analytic:
    """A Sampled without draws: moments only, deterministic, a few products a point."""

    network: Network
    features_of: Features | None = None
    block: int = 1024

    @property
    def plan(self) -> str:
        return "no draws: normal log-odds for dropout in the last layer, after everything before it runs once"

    @property
    def traits(self) -> Traits:
        return Traits(block=self.block, plan=self.plan)

    def __call__(self, batch: Any, positions: Indices | None = None) -> Probabilities:
        raise ValueError("the analytic posterior has moments but no draws; use a strategy that needs only a measure")

    @torch.inference_mode()
    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        found = self.network.last_layer(fitted(self.network.like, batch))
        if found is None:
            raise ValueError(
                f"analytic moments need dropout in the last layer alone, but this network runs {self.network.plan}; "
                "draw a number of functions instead"
            )
        return logistic_normal(*found)

    def to(self, device: str) -> "Analytic":
        """The same, evaluated on another device."""
        features = None if self.features_of is None else self.features_of.to(device)
        return replace(self, network=self.network.to(device), features_of=features)

    @torch.inference_mode()
    def features(self, batch: Any) -> Float[Tensor, "pool features"]:
        """The inputs of the last linear layer, without dropout."""
        if self.features_of is None:
            raise ValueError("the model has no linear layer whose inputs could be its features")
        return self.features_of(as_tensor(batch))


def logistic_normal(hidden: Tensor, stage: Stage) -> Moments:
    """Moments of the class probabilities, each a logistic function of normal log-odds."""
    r, weight = stage.activated(hidden), stage.linear.weight
    pi = torch.nn.functional.linear(r, weight, stage.linear.bias).softmax(-1)
    v = stage.p / (1 - stage.p) * _relative_variance(r.square(), weight, pi)
    rest = _complement(pi).clamp(min=torch.finfo(pi.dtype).tiny)
    odds = pi / rest
    others = ((pi * v).sum(-1, keepdim=True) - pi * v) / rest - odds.square() * v
    centre = odds.clamp(min=torch.finfo(pi.dtype).tiny).log() - 0.5 * others
    return _normalised(*_quadrature(centre, v.sqrt() / rest))


def _relative_variance(rr: Tensor, weight: Tensor, pi: Tensor) -> Tensor:
    """Σ_k r_k² (W_ik - w̄_k)² with w̄ = Σ_j π_j W_j, in products: W² r² - 2 W (r² w̄) + Σ r² w̄²."""
    centre = pi @ weight
    v = rr @ weight.square().t() - 2 * (rr * centre) @ weight.t() + (rr * centre.square()).sum(-1, keepdim=True)
    return v.clamp(min=0)  # rounding


def _complement(p: Tensor) -> Tensor:
    """1 - p, for the leading class as a sum of the others."""
    top = p.argmax(-1, keepdim=True)
    return (1 - p).scatter(-1, top, p.scatter(-1, top, 0).sum(-1, keepdim=True))


def _quadrature(centre: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """E P, E P² and E[-P log P] of P = 1/(1 + e^-u), u ~ N(centre, sd²)."""
    mean, square, surprise = (torch.zeros_like(centre) for _ in range(3))
    for node, weight in zip(*NODES, strict=True):
        p = torch.addcmul(centre, sd, sd.new_tensor(node)).sigmoid_()
        mean.add_(p, alpha=weight)
        square.addcmul_(p, p, value=weight)
        surprise.add_(torch.special.entr(p), alpha=weight)
    return mean.double(), square.double(), surprise.double()


def _normalised(mean: Tensor, square: Tensor, surprise: Tensor) -> Moments:
    """Means that sum to 1, with variances in proportion; what varies within draws is the rest of E[P] (1 - E[P])."""
    total = mean.sum(-1, keepdim=True)
    var, mean = (square - mean.square()).clamp(min=0) / total.square(), mean / total
    both = mean * _complement(mean)
    var = torch.minimum(var, both)  # no variable on [0, 1] varies more
    return Moments(ENDLESS, mean, var, both - var, surprise.sum(-1) / total[:, 0])
