"""Points that are computed when they are read: images stored as bytes, pools that repeat every point.

Both are indexed as a tensor of points is, by a position, a slice or positions, and give float32
tensors. Neither holds more than what it was given, so a data set is never in memory as floats.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Images:
    """Bytes [n, channels, height, width], in memory or mapped from a file; what is read is float32 in [0, 1].

    >>> images = Images(np.full((5, 1, 2, 2), 51, np.uint8))
    >>> images[1:3].shape, float(images[0].max())
    (torch.Size([2, 1, 2, 2]), 0.20000000298023224)
    """

    array: np.ndarray

    def __post_init__(self) -> None:
        if self.array.dtype != np.uint8 or self.array.ndim != 4:
            raise TypeError(
                f"images must be bytes [n, channels, height, width], but are {self.array.dtype} {self.array.shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Tensor:
        rows = at.numpy() if isinstance(at, Tensor) else at
        # A copy, since torch does not take memory that it may not write to; of bytes, so it is a small one.
        return torch.from_numpy(np.array(self.array[rows])).float().div_(255)


@dataclass(frozen=True, eq=False)
class Repeated:
    """A pool repeated several times, without copying: positions i, i + n, i + 2n, … are the same point.

    >>> Repeated(torch.tensor([[1.0], [2.0]]), 3)[1:4].tolist()
    [[2.0], [1.0], [2.0]]
    """

    source: Tensor | Images
    times: int

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ValueError(f"times must be 1 or more, but is {self.times}")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.source.shape[1:])

    def __len__(self) -> int:
        return self.times * len(self.source)

    def __getitem__(self, at: Any) -> Tensor:
        n = len(self.source)
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step == 1 and start < stop and start // n == (stop - 1) // n:
                return self.source[start % n : (stop - 1) % n + 1]  # within one copy: nothing to look up
            at = np.arange(start, stop, step)
        if isinstance(at, int):
            return self.source[range(len(self))[at] % n]
        return self.source[self._once(torch.as_tensor(at))]

    def _once(self, at: Tensor) -> Tensor:
        """The rows of the source at these positions, checked."""
        outside = (at < -len(self)) | (at >= len(self))
        if bool(outside.any()):
            raise IndexError(f"positions must be 0..{len(self) - 1} in this pool, but one is {int(at[outside][0])}")
        return at % len(self.source)


Points = Tensor | Images | Repeated
