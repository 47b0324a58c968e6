"""Draws of several points seen together: a draw is one function, and what it says at two points belongs together.

Methods that compare points through their draws (BatchBALD, CoreMSE) need functions that are the same
at every point, and points that can be read again.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent import checks
from balent.kernels import SUM_TOLERANCE
from balent.strategies.blocks import length
from balent.types import Draws, Indices, Sampled

EXACT = 1e-6  # draws whose sums are as close to 1 as float32 comes need no division


def check(sampled: Sampled, pool: Any, k: int, who: str) -> int:
    """How many points there are, if the pool can be read twice and the draws are functions of the whole of it."""
    points = length(pool)
    if points is None or not hasattr(pool, "__getitem__"):
        raise ValueError(
            f"{who} reads points again, but a stream is read only once; pass an array, a Dataset or a DataLoader of one"
        )
    checks.batch_size(k, points)
    if getattr(getattr(sampled, "masks", None), "per_point", False):
        raise ValueError(
            f"{who} needs draws that are the same functions at every point, but masks are drawn per point, so that "
            'points have nothing in common; use sample(..., masks="shared")'
        )
    return points


def points_at(pool: Any, positions: Indices) -> Any:
    """These points as a batch. A list knows no lists of positions; an array takes a tensor of one for a number."""
    if isinstance(pool, list | tuple | range):
        return [pool[i] for i in positions.tolist()]
    return pool[positions.numpy() if isinstance(pool, np.ndarray) else positions]


def distributions(draws: Tensor, positions: Indices) -> Draws:
    """The draws with rows that sum to 1; those that are no distributions are refused, with their point."""
    if draws.shape[1] < 2:
        raise ValueError(
            "batch_bald, core_mse and core_log see points through how their draws differ, but each point has 1 draw; "
            "use 2 draws or more"
        )
    total = draws.sum(-1)
    off = (total - 1).abs()
    bad = ~(off <= SUM_TOLERANCE[draws.dtype]) | (draws.amin(-1) < 0)
    if bad.any():
        point, draw = bad.nonzero()[0].tolist()
        raise checks.bad_row(draws, point, draw, logits=False, positions=positions)
    x = draws.detach().cpu()
    x = x if x.dtype == torch.float64 else x.float()
    return x if float(off.max()) <= EXACT else x / x.sum(-1, keepdim=True)


def draws_at(sampled: Sampled, pool: Any, positions: Indices) -> Draws:
    """The draws of these points, in float32 or float64 as they come (half precision in float32)."""
    return distributions(sampled(points_at(pool, positions), positions), positions)
