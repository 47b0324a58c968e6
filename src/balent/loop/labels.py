"""The labels of a pool as the sum of events: asked, told, skipped.

Events are what the journal holds. The state is a function of them and of nothing else, so that a
process that died is continued by adding them up again. The last label of a point counts; earlier ones are kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Event = dict[str, Any]


@dataclass
class Labels:
    """Which points are labelled, pending, or skipped."""

    told: dict[int, int] = field(default_factory=dict)  # position: label
    pending: dict[int, float] = field(default_factory=dict)  # position: score; asked, not yet told or skipped
    skipped: set[int] = field(default_factory=set)
    history: dict[int, list[tuple[str | None, int]]] = field(default_factory=dict)  # position: (who, label), in order
    asks: int = 0  # calls of ask
    asked: int = 0  # points asked in all

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Labels":
        labels = cls()
        for event in events:
            labels.add(event)
        return labels

    def add(self, event: Event) -> None:
        kinds = {"start": self._start, "pin": self._start, "ask": self._ask, "tell": self._tell, "skip": self._skip}
        if event.get("event") not in kinds:
            raise ValueError(f"the event {event.get('event')!r} is not known to this version of balent")
        try:
            kinds[event["event"]](event)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the event {event['event']!r} is damaged: {error}") from error

    def closed(self) -> set[int]:
        """Positions that are not to be asked: labelled, pending or skipped."""
        return {*self.told, *self.pending, *self.skipped}

    def open(self, pool: int) -> np.ndarray:
        """Positions that may be asked, ascending."""
        left = np.ones(pool, dtype=bool)
        left[list(self.closed())] = False
        return left.nonzero()[0]

    def _start(self, event: Event) -> None:
        """Identifies the pool and the settings; it holds no labels."""

    def _ask(self, event: Event) -> None:
        indices = _whole(event["indices"])
        self.pending.update(zip(indices, map(float, event["scores"]), strict=True))
        self.asks += 1
        self.asked += len(indices)

    def _tell(self, event: Event) -> None:
        for position, label in zip(_whole(event["indices"]), _whole(event["labels"]), strict=True):
            self.told[position] = label
            self.history.setdefault(position, []).append((event.get("who"), label))
            self.pending.pop(position, None)
            self.skipped.discard(position)

    def _skip(self, event: Event) -> None:
        for position in _whole(event["indices"]):
            self.pending.pop(position, None)
            self.told.pop(position, None)
            self.skipped.add(position)


def _whole(values: Any) -> list[int]:
    if not isinstance(values, list) or any(type(value) is not int or value < 0 for value in values):
        raise ValueError(f"positions and labels must be lists of whole numbers, but one is {str(values)[:40]}")
    return values
