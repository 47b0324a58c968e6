"""Draws computed by any framework, as a Sampled. Its pool consists of positions in the array of draws."""

import torch
from jaxtyping import Int
from torch import Tensor

from balent import checks
from balent.data.probabilities import Table
from balent.maths.moments import Moments
from balent.types import Array, Batch, Indices, Traits

BLOCK = 1 << 22  # elements: 16 MB of float32 at a time


class Draws:
    """A Sampled over an array [pool, draws, classes]; its pool is `numpy.arange(len(array))`.

    Probabilities, or logits with `logits=True`; numpy (memory-mapped too) or torch, in any layout; or a file of them,
    read in windows (`balent.data.probabilities.read`).
    """

    def __init__(self, array: Array | Table, features: Array | None = None, *, logits: bool = False) -> None:
        self.array = array if isinstance(array, Table) else checks.draws(array)
        self.logits = logits
        self._features = features

    def __len__(self) -> int:
        return len(self.array)

    @property
    def traits(self) -> Traits:
        _, draws, classes = self.array.shape
        block = max(1, BLOCK // (draws * classes))
        features = self._features is not None
        return Traits(draws, block, features=features, by_position=True, plan="draws computed elsewhere")

    def part(self, start: int, stop: int) -> "Draws":
        """Some of the draws; of a file, all are read and some are kept."""
        if isinstance(self.array, Table):
            whole, (points, _, classes) = self.array, self.array.shape
            some = Table((points, stop - start, classes), lambda a, b: whole.window(a, b)[:, start:stop], whole.names)
            return Draws(some, self._features, logits=self.logits)
        return Draws(self.array[:, start:stop], self._features, logits=self.logits)

    def groups(self, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        """The moments of groups of draws."""
        at = _positions(batch, len(self.array))
        return Moments.groups(self._rows(batch), min(count, self.array.shape[1]), logits=self.logits, positions=at)

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Tensor:
        rows = self._rows(batch)
        return rows.softmax(-1) if self.logits else rows

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return Moments.of(self._rows(batch), logits=self.logits, positions=_positions(batch, len(self.array)))

    def features(self, batch: Batch) -> Array:
        """The features given with the draws, at these positions."""
        if self._features is None:
            raise ValueError("this strategy compares features, but Draws has none; pass Draws(array, features=…)")
        return self._features[batch]

    def _rows(self, batch: Batch) -> Tensor:
        rows = _positions(batch, len(self.array))
        first, last = int(rows[0]), int(rows[-1])
        if last - first + 1 == len(rows) and bool((rows.diff() == 1).all()):
            return self._window(first, last + 1)
        if isinstance(self.array, Table):
            return torch.cat([self._window(i, i + 1) for i in rows.tolist()])
        return self.array[rows]

    def _window(self, start: int, stop: int) -> Tensor:
        """Consecutive points, as a view without a copy."""
        return checks.draws(self.array.window(start, stop)) if isinstance(self.array, Table) else self.array[start:stop]


def _positions(batch: Batch, points: int) -> Int[Tensor, " batch"]:
    """The positions in a batch of the pool, checked."""
    try:
        rows = torch.as_tensor(batch)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"the pool of Draws must be whole numbers (positions), but has {type(batch).__name__}"
        ) from None
    if rows.ndim != 1 or rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool:
        raise TypeError(
            f"the pool of Draws must be whole numbers (positions), but has {rows.dtype}; use np.arange({points})"
        )
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < points:
        raise ValueError(
            f"positions must be between 0 and {points - 1}, the {points} points of these draws, but reach from "
            f"{int(rows.min())} to {int(rows.max())}; use np.arange({points})"
        )
    return rows
