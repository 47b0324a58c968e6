"""A pool, a block at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from balent.types import Sampled

BLOCK = 1024  # points, where `sampled` does not say what it likes best


def blocks(sampled: Sampled, pool: Any) -> Iterator[tuple[Any, Tensor]]:
    """Batches of the pool in order, each with its positions."""
    size = getattr(sampled, "block", BLOCK)
    if hasattr(pool, "blocks"):
        yield from pool.blocks(size)
        return
    for start in range(0, len(pool), size):
        stop = min(start + size, len(pool))
        yield pool[start:stop], torch.arange(start, stop)


def length(pool: Any) -> int | None:
    """How many points there are; None for a stream that does not know."""
    try:
        return len(pool)
    except TypeError:
        return None
