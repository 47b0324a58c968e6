"""A pool, a block at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from balent.types import Pool, Sampled

BLOCK = 1024  # points, where `sampled` does not say what it likes best


def blocks(sampled: Sampled, pool: Pool) -> Iterator[tuple[Any, Tensor]]:
    """Batches of the pool in order, each with its positions."""
    size = getattr(sampled, "block", BLOCK)
    for start in range(0, len(pool), size):
        stop = min(start + size, len(pool))
        yield pool[start:stop], torch.arange(start, stop)
