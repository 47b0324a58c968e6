"""How far a score can be trusted: its standard error over groups of draws (a jackknife)."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from balent.moments import Moments
from balent.types import Indices, Sampled, Scores

GROUPS = 10  # of draws, for a standard error


def groups_of(sampled: Sampled, batch: Any, positions: Indices | None, count: int = GROUPS) -> list[Moments]:
    """The moments of groups of draws at these points."""
    own = getattr(sampled, "groups", None)
    if own is not None:
        return own(batch, positions, count)
    draws = sampled(batch, positions)
    return Moments.groups(draws, min(count, draws.shape[1]), positions=positions)


def merged(groups: list[Moments]) -> Moments:
    """The moments of all draws."""
    total = groups[0]
    for m in groups[1:]:
        total = total + m
    return total


def jackknife(groups: list[Moments], measure: Callable[[Moments], Scores]) -> Tensor:
    """The standard error of a measure of all draws (Quenouille, 1956).

    se² = (g - 1)/g Σ_i (s_i - s̄)²,  s_i the score without group i
    """
    without = torch.stack([measure(merged(groups[:i] + groups[i + 1 :])) for i in range(len(groups))])
    return without.std(0, correction=0) * (len(groups) - 1) ** 0.5
