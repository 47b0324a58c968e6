"""The labels of a pool as the sum of events: asked, told, skipped, retracted.

Events are what the journal holds. The state is a function of them and of nothing else, so that a
process that died is continued by adding them up again. The last label of a point counts; earlier ones are kept.
No torch here: whoever reads journals needs none.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Event = dict[str, Any]
Label = Any  # the number of a class; of an item with parts or several labels, tuples of such numbers


@dataclass
class Labels:
    """Which points are labelled, pending, skipped or in the reserve, and the names of the classes."""

    told: dict[int, Label] = field(default_factory=dict)  # position: label
    asked: dict[int, float] = field(default_factory=dict)  # position: score, in the order they were asked
    skipped: set[int] = field(default_factory=set)
    reserve: set[int] = field(default_factory=set)  # positions that a strategy never picks
    history: dict[int, list[tuple[str | None, Label]]] = field(default_factory=dict)  # position: (who, label), in order
    classes: list[str] = field(default_factory=list)  # names by number; none if classes have numbers only
    asks: int = 0  # calls of ask

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Labels":
        labels = cls()
        for event in events:
            labels.add(event)
        return labels

    def add(self, event: Event) -> None:
        kinds = {
            "start": self._start,
            "pin": self._start,
            "ask": self._ask,
            "tell": self._tell,
            "skip": self._skip,
            "retract": self._retract,
            "classes": self._classes,
            "reserve": self._reserve,
        }
        if event.get("event") not in kinds:
            raise ValueError(f"the event {event.get('event')!r} is not known to this version of balent")
        try:
            kinds[event["event"]](event)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the event {event['event']!r} is damaged: {error}") from error

    @property
    def pending(self) -> dict[int, float]:
        """Points that were asked and are neither labelled nor skipped, with their scores, in the order of asking."""
        return {i: score for i, score in self.asked.items() if i not in self.told and i not in self.skipped}

    def closed(self) -> set[int]:
        """Positions that are not to be asked: labelled, pending or skipped."""
        return {*self.told, *self.asked, *self.skipped}

    def open(self, pool: int) -> np.ndarray:
        """Positions that a strategy may pick, ascending."""
        left = np.ones(pool, dtype=bool)
        left[[*self.closed(), *self.reserve]] = False
        return left.nonzero()[0]

    def state_of(self, position: int) -> str:
        """One word on a point."""
        if position in self.told:
            return "labelled"
        return "skipped" if position in self.skipped else "pending" if position in self.asked else "open"

    def classes_told(self) -> set[int]:
        """Numbers of the classes that have labels. Of several labels per item: 0 and 1."""
        return {number for label in self.told.values() for number in set(_numbers(label)) if number >= 0}

    def within(self, pool: int) -> "Labels":
        """Without the points that lie beyond the pool, where ids are put that it no longer has."""
        return Labels(
            {i: label for i, label in self.told.items() if i < pool},
            {i: score for i, score in self.asked.items() if i < pool},
            {i for i in self.skipped if i < pool},
            {i for i in self.reserve if i < pool},
            {i: given for i, given in self.history.items() if i < pool},
            self.classes,
            self.asks,
        )

    def _start(self, event: Event) -> None:
        """Identifies the pool and the settings; it holds no labels."""

    def _ask(self, event: Event) -> None:
        self.asked.update(zip(_whole(event["indices"]), map(float, event["scores"]), strict=True))
        self.asks += 1

    def _tell(self, event: Event) -> None:
        for position, label in zip(_whole(event["indices"]), _labels(event["labels"]), strict=True):
            self.told[position] = label
            self.history.setdefault(position, []).append((event.get("who"), label))
            self.skipped.discard(position)

    def _skip(self, event: Event) -> None:
        for position in _whole(event["indices"]):
            self.told.pop(position, None)
            self.skipped.add(position)

    def _retract(self, event: Event) -> None:
        for position in _whole(event["indices"]):
            self.told.pop(position, None)
            self.skipped.discard(position)

    def _classes(self, event: Event) -> None:
        names = event["names"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"names of classes must be a list of texts, but are {str(names)[:40]}")
        self.classes = [*self.classes, *names]

    def _reserve(self, event: Event) -> None:
        self.reserve = set(_whole(event["indices"]))


def _whole(values: Any) -> list[int]:
    if not isinstance(values, list) or any(type(value) is not int or value < 0 for value in values):
        raise ValueError(f"positions and labels must be lists of whole numbers, but one is {str(values)[:40]}")
    return values


def _labels(values: Any) -> list[Label]:
    """One label for each point: a class number, or a list of them for its parts, where negative ones do not count."""
    if not isinstance(values, list):
        raise ValueError(f"labels must be a list, but are {str(values)[:40]}")
    return [_of_parts(value) if isinstance(value, list) else _whole([value])[0] for value in values]


def _of_parts(values: list[Any]) -> tuple[Any, ...]:
    if any(type(value) not in (int, list) for value in values):
        raise ValueError(f"labels of parts must be whole numbers, but one is {str(values)[:40]}")
    return tuple(_of_parts(value) if isinstance(value, list) else value for value in values)


def _numbers(label: Label) -> Iterator[int]:
    """All numbers of a label."""
    if isinstance(label, tuple):
        for part in label:
            yield from _numbers(part)
    else:
        yield label
