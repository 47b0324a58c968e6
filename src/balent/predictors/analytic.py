"""Last-layer dropout without sampling: moments of logits are known exactly, those of probabilities nearly.

A last layer z = W(mask∘r)/(1 - p) + b has E z = W r + b and Cov z = p/(1 - p) W diag(r²) Wᵀ. From them

- `matched` gives draws of logits their exact mean and variance;
- `Analytic` gives the moments of class probabilities by the delta method, with no draw at all: with
  π = softmax(E z) and v_i the variance of z_i - Σ_j π_j z_j,

      Var P_i ≈ π_i² v_i,   E P_i ∝ π_i exp(½(v_i - Σ_j π_j v_j)),   mutual information ≈ BetaMarginalBALD
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from balent.measures import beta_bald, entropy
from balent.moments import Moments
from balent.predictors.chain import Stage
from balent.predictors.functions import as_tensor
from balent.predictors.last_layer import Features
from balent.predictors.network import Network
from balent.types import Indices

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
    """A Sampled without draws: moments only, deterministic, five products a point."""

    network: Network
    features_of: Features | None = None
    block: int = 1024

    @property
    def plan(self) -> str:
        return "no draws: the delta method for dropout in the last layer, after everything before it runs once"

    def __call__(self, batch: Any, positions: Indices | None = None) -> Any:
        raise ValueError("the analytic posterior has moments but no draws; use a strategy that needs only a measure")

    @torch.inference_mode()
    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        found = self.network.last_layer(as_tensor(batch))
        if found is None:
            raise ValueError(
                f"analytic moments need dropout in the last layer alone, but this network runs {self.network.plan}; "
                "draw a number of functions instead"
            )
        return delta(*found)

    @torch.inference_mode()
    def features(self, batch: Any) -> Float[Tensor, "pool features"]:
        """The inputs of the last linear layer, without dropout."""
        if self.features_of is None:
            raise ValueError("the model has no linear layer whose inputs could be its features")
        return self.features_of(as_tensor(batch))


def delta(hidden: Tensor, stage: Stage) -> Moments:
    """Moments of the class probabilities, from the exact variances of logits relative to their weighted mean."""
    r, weight = stage.activated(hidden), stage.linear.weight
    pi = torch.nn.functional.linear(r, weight, stage.linear.bias).double().softmax(-1)
    v = stage.p / (1 - stage.p) * _relative_variance(r.square(), weight, pi.to(r.dtype)).double()
    tilt = 0.5 * (v - (pi * v).sum(-1, keepdim=True))
    mean = (pi.log() + tilt).softmax(-1)
    return _with_entropy(mean, pi.square() * v)


def _relative_variance(rr: Tensor, weight: Tensor, pi: Tensor) -> Tensor:
    """Σ_k r_k² (W_ik - w̄_k)² with w̄ = Σ_j π_j W_j, in products: W² r² - 2 W (r² w̄) + Σ r² w̄²."""
    centre = pi @ weight
    v = rr @ weight.square().t() - 2 * (rr * centre) @ weight.t() + (rr * centre.square()).sum(-1, keepdim=True)
    return v.clamp(min=0)  # rounding


def _with_entropy(mean: Tensor, var: Tensor) -> Moments:
    """With a population variance that leaves room for doubt within draws, and the noise that BetaMarginalBALD leaves."""
    top = mean.argmax(-1, keepdim=True)
    rest = (1 - mean).scatter(-1, top, mean.scatter(-1, top, 0).sum(-1, keepdim=True))
    total = mean * rest
    var = torch.minimum(var, total)  # no variable on [0, 1] varies more
    m = Moments(ENDLESS, mean, var, total - var, mean.new_zeros(len(mean)))
    return replace(m, entropy=(entropy(m) - beta_bald(m)).clamp(min=0))
