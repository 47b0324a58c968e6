"""What a model predicts: the mean of its posterior samples at each point, a block at a time."""

import itertools
from collections.abc import Iterable

import torch
from torch import Tensor

from balent.acquisition.engines.local import Local
from balent.data.pool import PoolLike, as_source
from balent.types import Batch, Indices, Sampled


def mean_probabilities(sampled: Sampled, pool: PoolLike) -> Tensor:
    """E[P] of each point, one row per point and one column per class. Only these rows are kept in memory.

    Of items with parts [items, parts…, classes], of several labels [items, labels].
    """
    source = as_source(pool)
    blocks = (rows for _, rows in Local().stream(sampled, source, _means)) if source.size != 0 else iter(())
    first = next(blocks, None)
    if first is None:
        raise ValueError("the points to predict must be at least one, but there is none")
    together = itertools.chain([first], blocks)
    return torch.cat([*together]) if source.size is None else _filled(source.size, together)


def _filled(points: int, blocks: Iterable[Tensor]) -> Tensor:
    """The blocks below each other, each forgotten once it is copied."""
    out, done = torch.empty(0), 0
    for rows in blocks:
        out = out if done else rows.new_empty(points, *rows.shape[1:])
        out[done : done + len(rows)] = rows
        done += len(rows)
    return out


def _means(sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
    m = sampled.moments(batch, positions)
    return (m.mean if m.items is None else m.items.grid(m.mean)).cpu()
