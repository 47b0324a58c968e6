"""Noise of each point: a pure function of seed and position, independent of the blocks and their order.

So the picks of a strategy with noise are the same on one machine and on a cluster, in one pass or in parts.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from balent.kernels.hashing import mixed, unit
from balent.types import Indices

Noise = Float[Tensor, " pool"]


# Purposes: 0 the random measure and `Uniform`, 1 Gumbel noise of `Power`, 0.. the groups of `Jitter`,
# 2 references of `Herding`, 2^10 the sample of `ClusterMargin`, 2^10 + 1 what fills up `Seals`, 2^20.. k-means++.


def uniform(seed: int, positions: Indices, purpose: int | Tensor = 0) -> Noise:
    """Uniform on (0, 1), for each position. Different purposes give different numbers."""
    signed = (seed + (1 << 63)) % (1 << 64) - (1 << 63)  # a generator tells its seed -5 as 2⁶⁴ - 5
    return unit(mixed(mixed(signed, purpose), positions))


def exponential(seed: int, positions: Indices, purpose: int | Tensor = 0) -> Noise:
    """Exponential(1), for each position."""
    return -uniform(seed, positions, purpose).log()


def gumbel(seed: int, positions: Indices, purpose: int = 0) -> Noise:
    """Gumbel(0, 1), for each position: -log of Exponential(1)."""
    return -exponential(seed, positions, purpose).log()


def normal(seed: int, positions: Indices, count: int) -> Float[Tensor, "pool count"]:
    """Standard normal numbers, `count` for each position."""
    columns = [torch.special.ndtri(uniform(seed, positions, purpose)) for purpose in range(count)]
    return torch.stack(columns, 1)
