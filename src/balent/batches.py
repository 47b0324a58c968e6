"""Batches, whatever a model takes: a tensor, an array, or a dict of them by name."""

from collections.abc import Mapping
from typing import Any

import torch

from balent.types import Batch


def size(batch: Any) -> int:
    """How many points are in a batch."""
    return len(next(iter(batch.values()))) if isinstance(batch, Mapping) else len(batch)


def take(batch: Batch, rows: Any) -> Any:
    """Some points of a batch."""
    return {name: value[rows] for name, value in batch.items()} if isinstance(batch, Mapping) else batch[rows]


def joined(one: Batch, other: Batch) -> Any:
    """Two batches as one."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {name: joined(value, other[name]) for name, value in one.items()}
    return torch.cat([torch.as_tensor(one), torch.as_tensor(other)])
