"""Start sets: points that are labelled before the first model is trained."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from balent import checks
from balent.loop.seeds import seed_of
from balent.strategies.reservoir import smallest


def order(pool: int, seed: int, keys: Tensor | None = None) -> list[int]:
    """The positions of a pool in random order; with keys, their order moves with the points and outlives new ones."""
    if keys is not None:
        return smallest(seed_of(seed, "start"), keys, 0, pool).tolist()
    return torch.randperm(pool, generator=Generator().manual_seed(seed_of(seed, "start"))).tolist()


def balanced(labels: Sequence[int], k: int, seed: int) -> list[int]:
    """k positions at random, balanced over classes as far as possible; for pools whose labels are known.

    >>> [[0, 0, 0, 0, 1, 2][i] for i in sorted(balanced([0, 0, 0, 0, 1, 2], 4, seed=0))]
    [0, 0, 1, 2]
    """
    checks.batch_size(k, len(labels))
    seen: dict[int, int] = {}
    turns: list[tuple[int, int, int]] = []
    for position in order(len(labels), seed):
        label = int(labels[position])
        seen[label] = seen.get(label, 0) + 1
        turns.append((seen[label], len(turns), position))  # the first of every class, then the second of every class, …
    return [position for _, _, position in sorted(turns)[:k]]
