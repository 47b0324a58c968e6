"""A fold that keeps a few numbers per point, for strategies that need all points before they choose."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from balent.types import Batch, Indices, Pool, Reading, Sampled

FIRST = 4096  # points to begin with


@dataclass
class Column:
    """What a reading gives for each point, in the order of the pool, and where each is.

    One buffer that doubles: many small results, kept among large ones that come and go, would leave holes in memory.
    """

    what: Reading
    dtype: torch.dtype = torch.float64
    count: int = 0
    _positions: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    _values: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self._values = torch.empty(0, dtype=self.dtype)

    @property
    def positions(self) -> Tensor:
        return self._positions[: self.count]

    @property
    def values(self) -> Tensor:
        return self._values[: self.count]

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        self._append(self.what(sampled, batch, positions).to("cpu", self.dtype), positions)

    def merge(self, other: "Column") -> "Column":
        if other.count:  # else it does not know the width of its rows
            self._append(other.values, other.positions)
        return self

    def state(self) -> dict[str, Tensor]:
        return {"positions": self.positions, "values": self.values}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._positions, self._values, self.count = state["positions"], state["values"], len(state["positions"])

    def _append(self, values: Tensor, positions: Tensor) -> None:
        end = self.count + len(values)
        if end > len(self._positions):
            room = max(FIRST, 2 * end)
            self._positions = _grown(self.positions, room)
            self._values = _grown(self.values if self.count else values[:0], room)
        self._positions[self.count : end], self._values[self.count : end] = positions, values
        self.count = end


def _grown(x: Tensor, room: int) -> Tensor:
    grown = x.new_empty((room, *x.shape[1:]))
    grown[: len(x)] = x
    return grown


def of_all(sampled: Sampled, pool: Pool, what: Reading) -> tuple[Indices, Tensor]:
    """The positions of all points, and the reading at each."""
    found = pool.scan(sampled, Column(what))
    return found.positions, found.values
