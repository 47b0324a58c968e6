"""Answers: what people say, into the journal. It is on disk before it is acknowledged.

An item is asked when it is answered: both events are written together. So items that were only shown leave no trace,
and the same labels give the same next questions, whether they came through the page, through files or through Python.
"""

from dataclasses import replace

from balent.apps.label.lending import Lending
from balent.apps.label.said import Refused, Said
from balent.project import overlap, questions
from balent.project.project import Project
from balent.project.questions import Proposal
from balent.project.state import Event

JOURNAL = {"resolve": "label"}  # events of the page that have another name there
EARLIER = "shown before the server was started again"


class Answers:
    """Events of the page. An event whose id is known is not written again."""

    def __init__(self, project: Project, lending: Lending) -> None:
        self.project, self.lending = project, lending
        self._answered: dict[int, str] = {}  # item: the tab that answered it

    def write(self, said: Said, who: str | None) -> int:
        """Writes an event; returns how many items it names, 0 if it was there already."""
        kinds = {"label": self._label, "resolve": self._resolve, "retract": self._retract, "skip": self._skip}

        def events() -> list[Event]:
            nonlocal said
            self._check_known(said)
            if said.id in self.project.state.keys:
                self._check_repeated(said)
                return []
            if said.event in ("label", "skip"):
                said = self._free(said, who)
            *before, event = kinds.get(said.event, self._flag)(said, who)
            return [*before, event | {"key": said.id}]

        written = self.project.happen_together(events)
        if written:
            self._lend(said, who)
        return written

    def _label(self, said: Said, who: str | None) -> list[Event]:
        if not said.replace:
            return [*self._ask(said), self._labels(said, who, seconds=said.seconds)]
        state = self.project.state  # a correction answers no question, and that of another's label decides
        others = any(number in state.last and who not in state.answers.get(number, ()) for number in said.items)
        return [self._labels(said, who, seconds=said.seconds, resolve=others or None)]

    def _resolve(self, said: Said, who: str | None) -> list[Event]:
        return [self._labels(said, who, resolve=True)]

    def _labels(self, said: Said, who: str | None, **more: float | bool | None) -> Event:
        if said.label not in self.project.state.classes.names():
            raise Refused(422, f"the class {said.label!r} is not known; add it in the view Classes")
        return self.project.event("label", self._ids(said), who, labels=[said.label] * len(said.items), **more)

    def _skip(self, said: Said, who: str | None) -> list[Event]:
        return [*self._ask(said), self.project.event("skip", self._ids(said), who, note=said.note)]

    def _flag(self, said: Said, who: str | None) -> list[Event]:
        return [self.project.event("flag", self._ids(said), who, note=said.note)]

    def _retract(self, said: Said, who: str | None) -> list[Event]:
        state = self.project.state
        for number in said.items:
            decision = state.decided.get(number)
            people = {*state.answers.get(number, ()), *state.passed.get(number, ())}
            people |= {decision.who} if decision is not None else set()
            if not people and number not in state.skipped and number not in state.flagged:
                raise Refused(422, f"{self.project.items[number].id} has no label, skip or flag to take back")
            if who is not None and number in state.last and who not in people and number not in state.flagged:
                raise Refused(409, "it is the label of somebody else: give it another label instead")
        return [self.project.event("retract", self._ids(said), who)]

    def _ask(self, said: Said) -> list[Event]:
        """The question, if it is not in the journal yet."""
        new = [number for number in said.items if number not in self.project.state.asked]
        found = [self.lending.proposal(number) or Proposal(number, why=EARLIER) for number in new]
        ids = [self.project.items[number].id for number in new]
        queue = self.lending.queue
        round = max(queue.round, self.project.state.rounds, 1)
        return (
            [self.project.event("ask", ids, None, round=round, **questions.columns(found), **queue.rule)]
            if found
            else []
        )

    def _check_known(self, said: Said) -> None:
        for number in said.items:
            if not 0 <= number < len(self.project.items):
                raise Refused(404, f"there is no item {number}")

    def _check_repeated(self, said: Said) -> None:
        """An id that was used for something else would swallow this event."""
        history = self.project.state.history
        events = [event for number in said.items for event in history.get(number, ()) if event["key"] == said.id]
        if not any(event["event"] == JOURNAL.get(said.event, said.event) for event in events):
            raise Refused(422, f"the id {said.id!r} was used for another event; give each event an id of its own")

    def _free(self, said: Said, who: str | None) -> Said:
        """Without items that somebody else has answered, unless this is a correction. If none is left: refused."""
        free = [number for number in said.items if said.replace or not self._is_taken(number, said.tab, who)]
        if not free:
            id = self.project.items[said.items[0]].id
            raise Refused(409, f"{id} has been answered already, by another person or in another tab")
        return replace(said, items=free)

    def _is_taken(self, number: int, tab: str, who: str | None) -> bool:
        """A second opinion may be wanted, and a person may change her mind where she gave the label."""
        state, last = self.project.state, self.project.state.last.get(number)
        mine = last is not None and last.who == who and self._answered.get(number, tab) == tab
        taken = number in state.skipped or (last is not None and not mine)
        return taken and not overlap.wants(self.project, number, who)

    def _lend(self, said: Said, who: str | None) -> None:
        """What the event changes for the tabs."""
        leases = self.lending.leases
        leases.renew(said.tab, who)
        if said.event == "retract":
            self.lending.give_back(said.items, said.tab)
        elif said.event != "flag":
            leases.drop(said.items, said.tab)
            self._answered |= dict.fromkeys(said.items, said.tab)
            for number in said.items:
                self.lending.queue.drop(number)

    def _ids(self, said: Said) -> list[str]:
        return [self.project.items[number].id for number in said.items]
