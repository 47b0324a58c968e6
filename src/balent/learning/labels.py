"""What is known of a pool's labels, as the sum of events: asked, told, skipped.

Events are what the journal holds. The state is a function of them and of nothing else, so that a
process that died is continued by adding them up again. Last word wins; earlier ones are kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


@dataclass
class Labels:
    """Which points are told, which wait for an answer, and which are not to be asked again."""

    told: dict[int, int] = field(default_factory=dict)  # position: label
    pending: dict[int, float] = field(default_factory=dict)  # position: score; asked, not yet told or skipped
    skipped: set[int] = field(default_factory=set)
    history: dict[int, list[tuple[str | None, int]]] = field(default_factory=dict)  # position: (who, label), in order
    asks: int = 0  # how often was asked
    asked: int = 0  # for how many points

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Labels":
        labels = cls()
        for event in events:
            labels.add(event)
        return labels

    def add(self, event: Event) -> None:
        kinds = {"start": self._start, "ask": self._ask, "tell": self._tell, "skip": self._skip}
        if event.get("event") not in kinds:
            raise ValueError(
                f"the journal speaks of {event.get('event')!r}, which this version of balent does not know"
            )
        kinds[event["event"]](event)

    def open(self, pool: int) -> Iterator[int]:
        """Positions that may be asked."""
        closed = self.told.keys() | self.pending.keys() | self.skipped
        return (position for position in range(pool) if position not in closed)

    def _start(self, event: Event) -> None:
        pass

    def _ask(self, event: Event) -> None:
        self.pending.update(zip(event["indices"], map(float, event["scores"]), strict=True))
        self.asks += 1
        self.asked += len(event["indices"])

    def _tell(self, event: Event) -> None:
        for position, label in zip(event["indices"], event["labels"], strict=True):
            self.told[position] = label
            self.history.setdefault(position, []).append((event.get("who"), label))
            self.pending.pop(position, None)
            self.skipped.discard(position)

    def _skip(self, event: Event) -> None:
        for position in event["indices"]:
            self.pending.pop(position, None)
            self.told.pop(position, None)
            self.skipped.add(position)
