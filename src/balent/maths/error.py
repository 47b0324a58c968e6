"""The Monte-Carlo standard error of a score, from groups of draws, and noise of that size."""

from collections.abc import Callable
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

from balent import checks
from balent.maths import noise
from balent.maths.moments import Moments
from balent.maths.scored import scored
from balent.types import Indices, Scores

GROUPS = 10  # of draws, for a standard error
STEP = 0.1  # of weights: no normal number makes one negative


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
    checks.enough_draws(len(groups), 2)
    before, after = list(accumulate(groups)), list(accumulate(reversed(groups)))[::-1]
    inner = [a + b for a, b in zip(before, after[2:], strict=False)]
    without = torch.stack([scored(measure, m) for m in (after[1], *inner, before[-2])])
    return without.std(0, correction=0) * (len(groups) - 1) ** 0.5


def deviates(
    groups: list[Moments], measure: Callable[[Moments], Scores], seed: int, positions: Indices
) -> Float[Tensor, " pool"]:
    """A random change of each score with the score's standard error, as other draws would have caused it.

    groups     moments of groups of draws
    measure    the score, a function of moments
    seed       of the noise, which is keyed by (seed, position)
    positions  of the points

    The slope of the score along a random change of the groups' weights (the infinitesimal jackknife, Jaeckel, 1972):
    of a mean over g groups, weights 1 + ε_i with normal ε give (g - 1)/g of the variance that the jackknife finds.
    """
    g = len(groups)
    checks.enough_draws(g, 2)
    change = STEP * noise.normal(seed, positions, g).to(groups[0].mean.device)
    items = groups[0].items
    change = change if items is None else change[items.owner]  # all parts of an item by one number
    up, down = (scored(measure, weighted(groups, 1 + sign * change)) for sign in (1, -1))
    return (up - down) * (g / (g - 1)) ** 0.5 / (2 * STEP)


def weighted(groups: list[Moments], weights: Float[Tensor, "pool groups"]) -> Moments:
    """The moments of all draws, with the groups weighted; each point has its own weights."""
    shares = (weights / weights.sum(1, keepdim=True)).unbind(1)
    mean = _average(shares, [m.mean for m in groups])
    var = _average(shares, [m.var + (m.mean - mean).square() for m in groups])
    within, entropy = _average(shares, [m.within for m in groups]), _average(shares, [m.entropy for m in groups])
    return Moments(sum(m.n for m in groups), mean, var, within, entropy, groups[0].items)


def _average(shares: tuple[Tensor, ...], values: list[Tensor]) -> Tensor:
    total = torch.zeros_like(values[0])
    for share, value in zip(shares, values, strict=True):
        total.addcmul_(share.view(-1, *(1,) * (value.ndim - 1)), value)
    return total
