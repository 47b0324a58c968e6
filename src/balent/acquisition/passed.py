"""A fold that passes what a reading gives to a writer, block by block: scores or features of all points, into files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from balent.strategies.column import Column
from balent.types import Batch, Indices, Reading, Sampled


@dataclass
class Passed:
    """What a reading gives, passed on. Sent to a worker it has no writer, and keeps the rows of its span."""

    what: Reading
    write: Callable[[Indices, Tensor], None] | None = field(repr=False)
    dtype: torch.dtype = torch.float64
    column: Column = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.column = Column(self.what, dtype=self.dtype)

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        if self.write is None:
            self.column.add(sampled, batch, positions)
        else:
            self.write(positions, self.what(sampled, batch, positions))

    def merge(self, other: "Passed") -> "Passed":
        """The writer is here; what comes from workers is written."""
        if self.write is None:
            self.column.merge(other.column)
        elif other.column.count:
            self.write(other.column.positions, other.column.values)
        return self

    def state(self) -> dict[str, Tensor]:
        return self.column.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.column.load_state(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "write": None}
