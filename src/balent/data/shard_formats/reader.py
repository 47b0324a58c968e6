"""What a format of shards offers: the rows of one file as arrays, in order or one by one.

A reader is used by one thread. It reads as much as it is asked for and keeps no rows, so memory does not grow with the
file. Rows that cannot be read are `Unreadable`; reading can go on behind them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class Wanted:
    """What to read of each row."""

    column: str | None = None  # which column, or several with commas between; None: the one that fits
    key: str | None = None  # the column that identifies a row
    size: int = 224  # pixels per side of an image
    exact: bool = False  # numbers as they are stored; else those in columns become float32


class Unreadable(Exception):
    """The rows first..stop - 1 cannot be read."""

    def __init__(self, first: int, stop: int, why: str) -> None:
        self.first, self.stop, self.why = first, stop, why
        super().__init__(why)


@runtime_checkable
class Reader(Protocol):
    """One shard, opened."""

    @property
    def rows(self) -> int: ...
    def pieces(self, first: int, stop: int, points: int, /) -> Iterator[tuple[int, np.ndarray]]:
        """The rows first..stop - 1 in order, in pieces of any length, each with the number of its first row.

        Pieces that end at multiples of `points` save a copy.
        """
        ...

    def at(self, rows: np.ndarray, /) -> np.ndarray: ...  # rows in ascending order, no two equal
    def keys(self, first: int, stop: int, /) -> list[str]: ...  # what identifies each row
    def name(self, row: int, /) -> str | None: ...  # of a point that is a file by itself
    def close(self) -> None: ...
