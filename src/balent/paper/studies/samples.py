"""Points whose distribution we choose: softmax of Gaussians, by draws, and Dirichlets, by draws or exactly.

The paper generates "100 softmax applied C-dimensional Gaussian samples" and says neither which means and variances
the Gaussians have, nor how many draws a sample has. So studies take several readings of it, by name.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from balent.maths.beta import digamma_rise
from balent.maths.moments import Moments
from balent.types import ByClass

BLOCK = 1 << 23  # numbers drawn at a time: 32 MB


@dataclass(frozen=True)
class Gaussian:
    """Logits N(μ, diag σ²) at each point, with μ_c ~ N(0, centre²) and σ uniform from `low` to `high`.

    σ is one number for a point, or one for each of its classes (`by_class`).
    """

    centre: float
    low: float
    high: float
    by_class: bool = False

    def moments(self, points: int, draws: int, classes: int, generator: Generator) -> Moments:
        block = max(1, BLOCK // (draws * classes))
        sizes = [min(block, points - start) for start in range(0, points, block)]
        return Moments.cat(Moments.of(self._logits(size, draws, classes, generator), logits=True) for size in sizes)

    def _logits(self, points: int, draws: int, classes: int, generator: Generator) -> Tensor:
        centre = self.centre * torch.randn(points, 1, classes, generator=generator)
        spreads = torch.rand(points, 1, classes if self.by_class else 1, generator=generator)
        spread = self.low + (self.high - self.low) * spreads
        return torch.randn(points, draws, classes, generator=generator).mul_(spread).add_(centre)


READINGS = {
    "N(0, 1)": Gaussian(0.0, 1.0, 1.0),  # to the letter: all points have one distribution, and differ by chance
    "spread by class": Gaussian(1.0, 0.0, 1.0, by_class=True),  # each class has its own mean and variance
    "spread by point": Gaussian(1.0, 0.2, 2.0),  # points are known more or less well, as in a pool
}


def dirichlet_draws(eta: np.ndarray, draws: int, generator: np.random.Generator) -> Moments:
    """Moments of draws from Dirichlet(η) at each point, η [pool, classes]."""
    gamma = generator.standard_gamma(eta[:, None], (len(eta), draws, eta.shape[1]))
    return Moments.of(gamma / gamma.sum(-1, keepdims=True))


def dirichlet(eta: ByClass) -> Moments:
    """The exact moments of P ~ Dirichlet(η), as infinitely many draws would have them."""
    total = eta.sum(-1, keepdim=True)
    mean = eta / total
    doubt = mean * (1 - mean)
    entropy = (mean * digamma_rise(eta + 1, total - eta)).sum(-1)
    return Moments(1 << 62, mean, doubt / (total + 1), doubt * total / (total + 1), entropy)
