"""Variational dropout (Kingma, Salimans & Welling, 2015): every weight has a noise level, learned.

    w = θ (1 + √α ε),  ε ~ N(0, 1),  0 < α < 1

In training each point has noise of its own, in the space of outputs, where sums of independent weights
are Gaussian (the local reparametrisation: less variance of the gradient). Functions that are drawn
are the other way round: one weight matrix for all points. They are drawn again, from the seed, for
each block of points, since a hundred copies of the paper's network would fill 1.3 GB.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn.functional import linear, logsigmoid, relu

from balent.predictors.asked import shared_draws
from balent.predictors.functions import Functions
from balent.predictors.inputs import Batch, as_pairs, fitting
from balent.predictors.last_layer import features_of, frozen
from balent.predictors.tasks import CLASSES
from balent.predictors.training import FromTraining, Progress, Trained, Training
from balent.types import Indices, Task

C1, C2, C3 = 1.16145124, -1.50204118, 0.58629921  # Kingma et al. (2015), equation 14


class VariationalLinear(nn.Module):
    """A linear layer whose weights are random, then ReLU. In eval mode every weight is its mean.

    The paper prints no activation between its layers; without one they would be a single linear map.
    """

    def __init__(self, in_features: int, out_features: int, *, alpha: float = 0.25) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        plain = nn.Linear(in_features, out_features)
        self.weight, self.bias = plain.weight, plain.bias  # θ: begins as in any linear layer
        # α = sigmoid(rho) stays below 1, where the approximation of the divergence ends.
        self.rho = nn.Parameter(torch.full_like(self.weight, alpha).logit())

    @property
    def alpha(self) -> Tensor:
        return self.rho.sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        mean = linear(x, self.weight, self.bias)
        return relu(mean + self.noise(x) if self.training else mean)

    def noise(self, x: Tensor) -> Tensor:
        """Σ_j x_j θ_ij √α_ij ε_ij, which is Gaussian: drawn for each point and output."""
        variance = linear(x.square(), self.alpha * self.weight.square())
        # A point whose features are all 0 has no noise, and √ has no slope there: the floor gives it slope 0.
        return variance.clamp_min(torch.finfo(x.dtype).tiny).sqrt() * torch.randn_like(variance)

    def drawn(self, generator: Generator) -> Tensor:
        """One weight matrix from the posterior."""
        noise = torch.randn(self.weight.shape, generator=generator).to(self.weight)
        return self.weight * (1 + self.alpha.sqrt() * noise)

    def divergence(self) -> Tensor:
        """KL to the log-uniform prior, up to a constant: 0 at α = 1, larger below. It does not depend on θ."""
        a = self.alpha
        return (C1 + C2 + C3 - logsigmoid(self.rho) / 2 - a * (C1 + a * (C2 + a * C3))).sum()

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


@dataclass(frozen=True)
class WeightDraws:
    """n networks that differ in the weights of their variational layers."""

    model: nn.Module
    n: int
    seed: int

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Tensor:
        x = fitting(self.model, batch)
        return torch.stack([functional_call(self.model, self.weights(k), (x,)) for k in range(self.n)], 1)

    def weights(self, draw: int) -> dict[str, Tensor]:
        """The weights of one draw, by their names in the model."""
        state = np.random.SeedSequence([self.seed, draw]).generate_state(1, np.uint32)
        generator = Generator().manual_seed(int(state[0]))
        return {f"{name}.weight": layer.drawn(generator) for name, layer in variational_layers(self.model)}


def variational_layers(model: nn.Module) -> list[tuple[str, VariationalLinear]]:
    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, VariationalLinear)]


class VariationalDropout(FromTraining):
    """A model with VariationalLinear layers, trained to the evidence lower bound.

    `kl_weight` below 1 trusts few labels more than the bound does.
    """

    def __init__(self, model: nn.Module, *, kl_weight: float = 1.0, **training: Any) -> None:
        if not variational_layers(model):
            raise ValueError("the model has no VariationalLinear layer; replace nn.Linear layers by it")
        self.model, self.kl_weight = model, kl_weight
        self.trained = Trained("model", model, Training(**training))

    def fit(self, labelled: Any, *, generator: Generator, progress: Progress | None = None) -> None:
        self.learn(labelled, CLASSES, generator=generator, progress=progress)

    def learn(self, labelled: Any, task: Task, *, generator: Generator, progress: Progress | None = None) -> None:
        """Train on labels of any task."""
        x, y = as_pairs(labelled, task.labels)

        def penalty() -> Tensor:
            return self.kl_weight / len(y) * self.divergence()

        self.trained.fit((x, y), task, generator=generator, penalty=penalty, progress=progress)

    def divergence(self) -> Tensor:
        """KL of all weights to their prior, up to a constant."""
        return torch.stack([layer.divergence() for _, layer in variational_layers(self.model)]).sum()

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        shared_draws(n, masks, "a draw of VariationalDropout is one network for all points")
        plan = f"{n} weight draws, made again from the seed for each block of points"
        return Functions(WeightDraws(frozen(self.model), n, seed), n, plan, features_of(self.model), block=4096)
