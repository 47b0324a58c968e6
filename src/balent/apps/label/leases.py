"""Leases: which tab of a browser shows which items, so that nobody labels an item that somebody else looks at.

A lease belongs to a tab, not to a person, who may have two tabs open. It is renewed by what the person does, never by
the page alone: so the items of somebody who has left are given to others after a while, and those of a tab that is
closed at once. A page says goodbye with the time it was opened at: if the tab shows a later page by then, it stays.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from balent.project.questions import Proposal

SECONDS = 120.0  # long enough to look closely at an item


@dataclass
class Tab:
    """A tab, the person at it, and its items in the order they are shown."""

    who: str | None
    seen: float
    page: int = 0  # when the page in it was opened
    items: dict[int, Proposal] = field(default_factory=dict)


class Leases:
    """All tabs that have items, or did something a short time ago."""

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self.tabs: dict[str, Tab] = {}

    def renew(self, name: str, who: str | None, page: int = 0) -> Tab:
        """The person at this tab has done something."""
        tab = self.tabs.setdefault(name, Tab(who, self.clock()))
        tab.who, tab.seen, tab.page = who, self.clock(), max(tab.page, page)
        return tab

    def left(self, name: str, page: int) -> list[Proposal]:
        """Takes the items of a tab whose page was closed."""
        tab = self.tabs.get(name)
        return [*self.tabs.pop(name).items.values()] if tab is not None and tab.page <= page else []

    def expired(self) -> list[Proposal]:
        """Takes the items of tabs where nobody has done anything for a while."""
        late = [name for name, tab in self.tabs.items() if self.clock() - tab.seen > self.seconds]
        return [proposal for name in late for proposal in self.tabs.pop(name).items.values()]

    def held(self, without: str | None = None) -> set[int]:
        """Items that some tab shows, but for those of one tab."""
        return {number for name, tab in self.tabs.items() if name != without for number in tab.items}

    def holders(self, number: int) -> set[str | None]:
        """The people who look at an item."""
        return {tab.who for tab in self.tabs.values() if number in tab.items}

    def drop(self, numbers: Iterable[int], name: str | None = None) -> None:
        """Ends the leases of items: of one tab, or of all."""
        gone = set(numbers)
        for tab in self.tabs.values() if name is None else filter(None, [self.tabs.get(name)]):
            tab.items = {number: proposal for number, proposal in tab.items.items() if number not in gone}

    def others(self, name: str, who: str | None) -> list[tuple[str | None, float]]:
        """Other people, and how many seconds ago they did something. Without names, two tabs are taken for two."""
        now, found = self.clock(), dict[str | None, float]()
        for other, tab in self.tabs.items():
            if other != name and (tab.who is None or tab.who != who):
                found[tab.who] = min(now - tab.seen, found.get(tab.who, now))
        return [*found.items()]
