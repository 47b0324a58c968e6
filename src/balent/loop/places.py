"""Where the points of a journal are in the pool at hand.

With ids, a journal names points by their ids and a label belongs to its id. Positions are derived when the journal is
read, so the pool may come in another order, with more points, or with fewer. An id that the pool no longer has gets a
position beyond its end. Without ids, positions are what the journal holds. No torch here.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from balent.loop.labels import Event


class Places:
    """The points of a pool by position and, if they have ids, by id."""

    def __init__(self, ids: Sequence[str] | None, points: int) -> None:
        self.ids, self.points = ids, points
        self._at = {} if ids is None else {name: i for i, name in enumerate(ids)}
        self._before: dict[int, str] = {}  # ids of positions in events that were written before events held ids

    def read(self, events: Iterable[Event]) -> None:
        """Learn from the events of a journal what positions meant before it held ids."""
        for event in events:
            if event.get("event") == "pin" and "ids" in event:
                self._before |= dict(zip(event.get("indices", []), event["ids"], strict=True))

    def placed(self, event: Event) -> Event:
        """An event of a journal, by positions in this pool."""
        if event.get("event") == "pin":
            return event
        if "ids" in event:
            others = {name: value for name, value in event.items() if name != "ids"}
            return others | {"indices": self._positions(event["ids"])}
        if self._before and "indices" in event:
            return event | {"indices": self.now(event["indices"])}
        return event

    def named(self, event: Event) -> Event:
        """The event as a journal holds it: by ids, if points have some."""
        if self.ids is None or "indices" not in event or event["event"] == "pin":
            return event
        others = {name: value for name, value in event.items() if name != "indices"}
        return others | {"ids": self.names(event["indices"])}

    def names(self, positions: Iterable[int]) -> list[str]:
        """The ids of points."""
        return [self.id(position) for position in positions]

    def id(self, position: int) -> str:
        """The id of a point, also of one beyond the end."""
        if self.ids is not None and position < self.points:
            return self.ids[position]
        return next(name for name, at in self._at.items() if at == position)

    def now(self, points: Iterable[int | str]) -> list[int]:
        """Positions in this pool of what a journal holds: ids, or positions of the time when it held those."""
        return [self._position(p) if isinstance(p, str) else self._moved(p) for p in points]

    def _positions(self, names: Any) -> list[int]:
        if not isinstance(names, list):
            raise ValueError(f"ids must be a list, but are {str(names)[:40]}")
        return [self._position(name) for name in names]

    def _moved(self, position: int) -> int:
        if self._before and position not in self._before:
            raise ValueError(f"the id of the point that was at position {str(position)[:40]} is not recorded")
        return self._position(self._before[position]) if self._before else position

    def _position(self, name: Any) -> int:
        if not isinstance(name, str):
            raise ValueError(f"ids must be texts, but one is {str(name)[:40]}")
        return self._at.setdefault(name, len(self._at))
