"""Draws of several points together: a draw is one function, so its values at two points belong together.

Methods that compare points through their draws (BatchBALD, CoreMSE) need draws that are the same
functions at every point, and points that can be read again.
"""

import torch
from torch import Tensor

from balent import checks
from balent.kernels import SUM_TOLERANCE
from balent.types import Batch, Indices, Probabilities, Sampled

EXACT = 1e-6  # draws whose sums are within float32 precision of 1 need no division


def distributions(draws: Tensor, positions: Indices) -> Probabilities:
    """The draws with rows that sum to 1; rows that are not distributions are refused, with their point."""
    if draws.shape[1] < 2:
        raise ValueError(
            "batch_bald, core_mse and core_log compare draws, but each point has 1 draw; use 2 draws or more"
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


def drawn(sampled: Sampled, batch: Batch, positions: Indices) -> Probabilities:
    """A reading: the draws of these points, in float32 or float64 as they are (half precision in float32)."""
    return distributions(sampled(batch, positions), positions)
