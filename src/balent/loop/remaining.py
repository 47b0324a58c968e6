"""The part of a pool that may still be asked; masks per point and errors are told the true positions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent.data.pool import Pool
from balent.maths.error import groups_of
from balent.maths.moments import Moments
from balent.types import Indices


@dataclass(frozen=True)
class Remaining(Pool):
    """Some points of a pool, read from where they are. A Pool, since that is what `acquire` reads in batches."""

    left: Any = None  # positions in the whole pool, ascending

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, points: slice | Tensor) -> Any:
        at: Tensor = self.left[points]
        first, last = int(at[0]), int(at[-1])
        whole = last - first + 1 == len(at) and not isinstance(points, Tensor)
        return Pool(self.source, self.collate)[slice(first, last + 1) if whole else at]


@dataclass(frozen=True)
class Placed:
    """Functions that are told the true positions of points."""

    sampled: Any
    left: Tensor

    def __call__(self, batch: Any, positions: Indices | None = None) -> Any:
        return self.sampled(batch, self._true(positions))

    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        return self.sampled.moments(batch, self._true(positions))

    def groups(self, batch: Any, positions: Indices | None, count: int) -> list[Moments]:
        return groups_of(self.sampled, batch, self._true(positions), count)

    def _true(self, positions: Indices | None) -> Indices | None:
        return None if positions is None else self.left[positions]

    def __getattr__(self, name: str) -> Any:
        """What functions may offer beyond the protocol: features, parts, how many they are."""
        if name.startswith("__") or name == "sampled":
            raise AttributeError(name)
        found = getattr(self.sampled, name)
        return self._placed(found) if name == "part" else found

    def _placed(self, part: Callable[[int, int], Any]) -> Callable[[int, int], "Placed"]:
        return lambda start, stop: Placed(part(start, stop), self.left)


def remaining(pool: Pool, left: np.ndarray, sampled: Any) -> tuple[Remaining, Placed, Tensor]:
    """The pool without what is closed, the functions on it, and the positions of its points."""
    positions = torch.from_numpy(left)
    return Remaining(pool.source, pool.collate, positions), Placed(sampled, positions), positions
