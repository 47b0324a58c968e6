"""Draws computed elsewhere, as functions over positions: the door for models of any framework."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from balent import checks
from balent.maths.moments import Moments
from balent.types import Array, Indices

BLOCK = 1 << 22  # elements: 16 MB of float32 at a time


class Draws:
    """A Sampled over an array [pool, draws, classes]; its pool is `numpy.arange(len(array))`.

    Probabilities, or logits with `logits=True`; numpy (memory-mapped too) or torch, in any layout.
    """

    def __init__(self, array: Array, features: Array | None = None, *, logits: bool = False) -> None:
        self.array, self.logits = checks.draws(array), logits
        self._features = features
        _, draws, classes = self.array.shape
        self.block = max(1, BLOCK // (draws * classes))

    def __len__(self) -> int:
        return len(self.array)

    def __call__(self, batch: Any, positions: Indices | None = None) -> Tensor:
        rows = self._rows(batch)
        return rows.softmax(-1) if self.logits else rows

    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        return Moments.of(self._rows(batch), logits=self.logits, positions=_positions(batch, len(self.array)))

    def features(self, batch: Any) -> Array:
        """The features given with the draws, at these positions."""
        if self._features is None:
            raise ValueError("this strategy compares features, but Draws has none; pass Draws(array, features=…)")
        return self._features[batch]

    def _rows(self, batch: Any) -> Tensor:
        rows = _positions(batch, len(self.array))
        first, last = int(rows[0]), int(rows[-1])
        if last - first + 1 == len(rows) and bool((rows.diff() == 1).all()):
            return self.array[first : last + 1]  # a view: nothing is copied
        return self.array[rows]


def _positions(batch: Any, points: int) -> Int[Tensor, " batch"]:
    """Whole numbers, each the position of a point; the pool of Draws is made of these."""
    try:
        rows = torch.as_tensor(batch)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"the pool of Draws must be positions, whole numbers, but has {type(batch).__name__}") from None
    if rows.ndim != 1 or rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool:
        raise TypeError(
            f"the pool of Draws must be positions, whole numbers, but has {rows.dtype}; use np.arange({points})"
        )
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < points:
        raise ValueError(
            f"positions must be between 0 and {points - 1}, the {points} points of these draws, but reach from "
            f"{int(rows.min())} to {int(rows.max())}; use np.arange({points})"
        )
    return rows
