"""Lending: which items a tab gets. Items that a tab has stay its own until they are answered or the lease ends.

Items that were pending when the page was opened, or undone on it, come first, then the queue. A random check that
somebody else has answered, and that this person should answer too, takes the place of a new check: overlap asks nobody
more checks. While there is no model, items of the reserve are lent: random checks need none. A tab that has
next to nothing gets some of them while the worker starts.
"""

from collections.abc import Iterable, Iterator

from balent.apps.label.leases import Leases
from balent.apps.label.queue import Queue
from balent.apps.label.trainer import Trainer
from balent.project import audit, overlap, questions
from balent.project.project import Project
from balent.project.questions import Proposal

MOST = 24  # items of a tab
FEW = 3  # so many that the next one can be loaded while one is looked at
WITHOUT = "the model does not run"


class Lending:
    """Items of a project on their way to tabs."""

    def __init__(self, project: Project, queue: Queue, leases: Leases, trainer: Trainer) -> None:
        self.project, self.queue, self.leases, self.trainer = project, queue, leases, trainer
        self.known: dict[int, Proposal] = {}  # whatever was lent, and how it was proposed
        self._ours = {*project.state.pending}
        self._version = -1  # of the items that these were made of:
        self._reserve: list[int] = []
        self._twice: set[int] = set()  # items that are equal to an earlier one
        self._doubles: dict[str, list[int]] = {}

    def next(self, name: str, who: str | None, n: int, page: int = 0) -> list[Proposal]:
        """All items of a tab, at most n: those that it has, and new ones."""
        tab = self.leases.renew(name, who, page)
        tab.items = {number: p for number, p in tab.items.items() if self.is_open(number, who)}
        while len(tab.items) < min(n, MOST) and (proposal := self._pick(who, len(tab.items) < FEW)) is not None:
            self.queue.drop(proposal.number)
            tab.items[proposal.number] = proposal
        self.known |= tab.items
        return [*tab.items.values()][:n]

    def lend(self, name: str, who: str | None, proposals: Iterable[Proposal]) -> list[Proposal]:
        """Lends items that the person chose (the grid), but not those that others look at."""
        tab = self.leases.renew(name, who)
        taken = self.leases.held() - {*tab.items}
        free = [p for p in proposals if p.number not in taken and self.is_open(p.number, who)]
        for proposal in free:
            tab.items[proposal.number] = self.known[proposal.number] = proposal
            self.queue.drop(proposal.number)
        return free

    def collect(self) -> None:
        """Takes back what nobody looks at any more."""
        self.queue.put(self.leases.expired())

    def take_back(self, name: str, but: Iterable[int]) -> None:
        """Takes back what a tab has, but for some items."""
        tab, kept = self.leases.tabs[name], {*but}
        self.queue.put(proposal for number, proposal in tab.items.items() if number not in kept)
        tab.items = {number: proposal for number, proposal in tab.items.items() if number in kept}

    def give_back(self, numbers: Iterable[int], name: str) -> None:
        """Items that were undone: they come first in their tab, and are pending."""
        back = {n: p for n in numbers if not self.project.items[n].gone and (p := self.proposal(n)) is not None}
        self._ours.update(back)
        tab = self.leases.tabs[name]
        tab.items = {**{n: p for n, p in back.items() if self.is_open(n, tab.who)}, **tab.items}

    def proposal(self, number: int) -> Proposal | None:
        """How an item was proposed. Items of the reserve are known for what they are after a restart, too."""
        asked = self.project.state.asked.get(number)
        if asked is not None:
            return Proposal(number, asked.score, asked.audit, asked.guess, asked.probability, asked.why)
        known = self.known.get(number) or self.queue.get(number)
        return known or next(iter(questions.checks({number} & {*self.reserve()}, self.project.settings.audit)), None)

    def is_open(self, number: int, who: str | None) -> bool:
        """May this person be asked? Items that another process has asked are left to it."""
        state, items = self.project.state, self.project.items
        if not 0 <= number < len(items) or items[number].gone or number in state.skipped:
            return False
        if number in state.last:
            return overlap.wants(self.project, number, who)
        return (number not in state.pending or number in self._ours) and not self._has_labelled_double(number)

    def unlabelled(self) -> Iterator[int]:
        """Items that still need a label, whoever is to give it. Those that cannot be read are never asked."""
        state, items, bad = self.project.state, self.project.items, self.trainer.standing.get("bad", {})
        self._look()
        closed = {*state.last, *state.skipped, *self._twice}
        for number in items.present():
            if number not in closed and items[number].id not in bad and not self._has_labelled_double(number):
                yield number

    def reserve(self) -> list[int]:
        """Items that no strategy picks, in the order of random checks."""
        self._look()
        return self._reserve

    def _pick(self, who: str | None, few: bool) -> Proposal | None:
        """The next question; `few` if the tab has next to none."""
        held = self.leases.held()

        def free(number: int) -> bool:
            return number not in held and self.is_open(number, who)

        again = next((n for n in self.project.state.pending if n in self._ours and free(n)), None)
        if again is not None:
            return self.proposal(again)
        head = self.queue.first(free)
        if head is None or head.audit:
            for number in overlap.wanted(self.project, who):
                if overlap.wants(self.project, number, who, self.leases.holders(number)):
                    return Proposal(number, audit=True)
        return head or next((p for p in self._without_model(few) if free(p.number)), None)

    def _without_model(self, few: bool) -> Iterator[Proposal]:
        """What can be asked while nothing is proposed."""
        if self.trainer.without_model() or (few and self.trainer.is_starting()):
            yield from questions.checks(self.reserve(), self.project.settings.audit)
        if self.trainer.model["state"] == "stopped":
            yield from (Proposal(number, why=WITHOUT) for number in self.unlabelled())

    def _has_labelled_double(self, number: int) -> bool:
        """Equal items are labelled once."""
        self._look()
        doubles = self._doubles.get(self.project.items[number].fingerprint, ())
        return any(double != number and double in self.project.state.last for double in doubles)

    def _look(self) -> None:
        """Sorts the items anew if they have changed."""
        items, settings = self.project.items, self.project.settings
        if self._version == items.version:
            return
        twice = items.duplicates() if settings.duplicates == "once" else {}
        self._version, self._doubles, self._twice = items.version, {}, {*twice}
        for number in {*twice, *twice.values()}:
            self._doubles.setdefault(items[number].fingerprint, []).append(number)
        prints = {n: items[n].fingerprint for n in items.present() if n not in twice}
        self._reserve = audit.reserve(settings.seed, prints)
