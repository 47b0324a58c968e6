"""CoreMSE in batches, as Tan et al. (2021) do it: labels that change predictions most, each at other places.

    candidates   the 10·k points of the largest CoreMSE (core_mse.py)
    changes      for each candidate x and each x' of a random set X':  Σ_y p(y|x) Σ_y' (p̂(y'|x') - p̄(y'|x'))²
    clusters     k means of these vectors; of each cluster the candidate nearest to its mean

Duplicates have equal changes, so they fall into one cluster, and one of them is picked.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from balent.geometry.distances import Points, squared
from balent.geometry.k_means import k_means
from balent.strategies import joint
from balent.strategies.core_mse import Columns, centred, most_changing, reciprocal_root, squared_error
from balent.strategies.reservoir import at_random
from balent.types import Batch, Indices, Needs, Picks, Pool, Sampled

PLACES = 1 << 11  # purpose of random numbers
TOGETHER = 1 << 24  # numbers at a time: candidates and classes by places and classes
Changes = Float[Tensor, "candidates places"]


@dataclass(frozen=True)
class CoreBatch:
    """k of the `candidates`·k points of the largest CoreMSE, one of each cluster of what they change.

    candidates   for each pick; 1 is the top k by CoreMSE
    places       random points of the pool at which changes are compared

    Needs draws shared by the pool (masks="shared") and a pool that can be read twice. Time beyond CoreMSE:
    candidates·k·places·C²·M operations. Scores are those of CoreMSE, the largest first.
    """

    candidates: int = 10
    places: int = 200
    needs: ClassVar[Needs] = Needs(shared=True, again=True, noise=True)

    def __post_init__(self) -> None:
        if self.candidates < 1 or self.places < 1:
            raise ValueError(f"candidates and places must be 1 or more, but are {self.candidates} and {self.places}")

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        seed = generator.initial_seed()
        size = min(self.candidates * k, pool.size or 0)
        best = most_changing(sampled, pool, size, None, squared_error, seed)
        at = at_random(pool, seed, PLACES, self.places).sort().values
        elsewhere = centred(pool.read(sampled, at, joint.drawn).double())[0]
        changes = pool.read(sampled, best.positions, Change(elsewhere))
        chosen = representatives(changes, k, seed, pool.keys(best.positions))
        return Picks(
            best.positions[chosen],
            best.scores[chosen],
            plan=f"{k:,} of the {size:,} points of the largest CoreMSE, by what they change at {len(at):,} places",
        )


@dataclass(frozen=True)
class Change:
    """A reading: how much a label of each point is expected to change the prediction at each place."""

    elsewhere: Columns

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Changes:
        draws = joint.drawn(sampled, batch, positions)
        size = max(1, TOGETHER // (draws.shape[2] * self.elsewhere[0].numel()))
        return torch.cat([changed(part, self.elsewhere).float() for part in draws.split(size)])


def changed(draws: Tensor, elsewhere: Columns) -> Changes:
    """Σ_y Σ_y' (qᵀq')² / (M² p(y)), with q and q' the draws less their mean at the point and at the place."""
    q, mean = centred(draws.double())  # the last bits of float32 depend on the block that a point is in
    moved = (q * reciprocal_root(mean)).flatten(1).t() @ elsewhere.flatten(1)
    return moved.square_().view(*mean.shape, *elsewhere.shape[1:]).sum((1, 3)) / len(q) ** 2


def representatives(changes: Changes, k: int, seed: int, keys: Tensor) -> Indices:
    """k different rows: of each cluster the one nearest to its mean; the first rows fill up."""
    found = squared(k_means(changes, k, seed=seed, keys=keys), Points.of(changes))
    chosen: list[int] = []
    for distances in found:
        distances[chosen] = torch.inf
        chosen.append(int(distances.argmin()))
    rest = [row for row in range(len(changes)) if row not in set(chosen)]
    return torch.tensor(sorted([*chosen, *rest[: k - len(chosen)]]))
