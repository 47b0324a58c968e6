"""What has happened in a project, added up: labels, questions, skips and flags by item.

    {"format": 1, "event": "label", "key": "…", "ids": ["a/1.jpg"], "prints": ["5e8…"], "labels": ["cat"],
     "who": "ann", "when": "2026-…Z", "seconds": 1.2}

The journal is the truth, and the state a function of it and of `items.ndjson`. Events name items by id and by the
first digits of the fingerprint, never by position: so a label stays with its content when another file gets the id.
No torch here: the labelling page reads journals too.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from balent.project.classes import Classes
from balent.project.items import Items

FORMAT = 1
DIGITS = 16  # of a fingerprint
ASKED = {"score": "scores", "audit": "audit", "guess": "guesses", "probability": "probabilities", "why": "whys"}
Event = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """An item that was asked, and why. `audit` marks a random check, which is asked without a guess."""

    number: int
    round: int
    rank: int
    score: float | None
    audit: bool
    guess: str | None
    probability: float | None
    why: str


@dataclass(frozen=True)
class Answer:
    """A label that somebody gave."""

    label: int
    who: str | None
    when: str
    print: str  # what the item's content was
    imported: bool


@dataclass
class State:
    """What the events add up to.

    Answers are what people said of an item without looking at what others said: agreement is counted from them. A
    decision is kept apart, and taking it back brings the answers back.
    """

    items: Items
    classes: Classes = field(default_factory=Classes)
    answers: dict[int, dict[str | None, Answer]] = field(default_factory=dict)  # item: the last one of each person
    last: dict[int, Answer] = field(default_factory=dict)
    asked: dict[int, Question] = field(default_factory=dict)
    pending: dict[int, Question] = field(default_factory=dict)  # asked, and neither labelled nor skipped
    skipped: dict[int, str] = field(default_factory=dict)  # item: note
    passed: dict[int, set[str]] = field(default_factory=dict)  # item: who skipped it, where others have labelled it
    flagged: dict[int, str] = field(default_factory=dict)
    decided: dict[int, Answer] = field(default_factory=dict)  # by somebody who knew what others said: no answer
    history: dict[int, list[Event]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)  # ids of events whose items are lost
    rounds: int = 0
    questions: int = 0

    def add(self, event: Event) -> None:
        """One event more. One whose key is known was added already."""
        if event.get("key") in self.keys:
            return
        kinds: dict[str, Callable[[Event], None]] = {
            "ask": self._ask,
            "label": self._label,
            "skip": self._skip,
            "flag": self._flag,
            "retract": self._retract,
            "class": lambda e: self.classes.add(*e["labels"]),
            "rename": lambda e: self.classes.rename(*e["labels"]),
            "merge": lambda e: self.classes.merge(*e["labels"]),
        }
        if event.get("event") not in kinds:
            raise ValueError(f"the event {event.get('event')!r} is not known to this version of balent")
        try:
            kinds[event["event"]](event)
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the event {event['event']!r} is damaged: {error!r}") from error
        self.keys.add(event["key"])

    def numbers(self, event: Event) -> list[int | None]:
        """The items of an event. Those that `items.ndjson` does not know are reported, not guessed."""
        prints = event.get("prints") or [None] * len(event["ids"])
        found = [self.items.number(id, print) for id, print in zip(event["ids"], prints, strict=True)]
        self.unknown += [id for id, number in zip(event["ids"], found, strict=True) if number is None]
        for number in found:
            if number is not None:
                self.history.setdefault(number, []).append(event)
        return found

    # ── what is known ────────────────────────────────────────────────────────────────────────────────

    def labels(self) -> dict[int, int]:
        """Class numbers by item, without items that people disagree on."""
        split = self.disagreements()
        return {number: self.classes.of(last.label) for number, last in self.last.items() if number not in split}

    def disagreements(self) -> dict[int, dict[str | None, int]]:
        """Random checks that several people answered differently, and that nobody has resolved."""
        found = {}
        for number, given in self.answers.items():
            labels = {who: self.classes.of(answer.label) for who, answer in given.items()}
            if len(set(labels.values())) > 1 and self.is_audit(number) and number not in self.decided:
                found[number] = labels
        return found

    def is_audit(self, number: int) -> bool:
        """Was it asked as a random check?"""
        return number in self.asked and self.asked[number].audit

    def people(self) -> dict[str, int]:
        """How many items each person has labelled, whether others labelled them too. Imported labels are nobody's."""
        said = {number: [*self.answers.get(number, {}).values()] for number in self.last}
        for number, answer in self.decided.items():
            said[number] += [] if answer.who in self.answers.get(number, {}) else [answer]
        return dict(Counter(a.who or "" for answers in said.values() for a in answers if not a.imported))

    # ── events ───────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, event: Event) -> None:
        self.rounds = event.get("round", self.rounds + 1)  # the page asks item by item, several in a round
        for rank, number in enumerate(self.numbers(event), 1):
            self.questions += 1
            if number is not None:
                at = {name: event[column][rank - 1] for name, column in ASKED.items()}
                asked = Question(number, self.rounds, rank, **at)
                self.asked[number] = asked
                if number not in self.last and number not in self.skipped:
                    self.pending[number] = asked

    def _label(self, event: Event) -> None:
        for i, (number, name) in enumerate(zip(self.numbers(event), event["labels"], strict=True)):
            if number is None:
                continue
            given = Answer(
                self.classes.number(name),
                event.get("who"),
                event["when"],
                event["prints"][i],
                event.get("imported", False),
            )
            if event.get("resolve"):
                self.decided[number] = given
            else:
                before = self.answers.setdefault(number, {})
                before.pop(given.who, None)
                before[given.who] = given
            self.last[number] = given
            self.pending.pop(number, None)
            self.skipped.pop(number, None)

    def _skip(self, event: Event) -> None:
        """What others have said of an item stays: then the skip is that of one person."""
        who = event.get("who")
        for number in self.numbers(event):
            if number is None:
                continue
            if who is not None and self._without(number, who):
                self.passed.setdefault(number, set()).add(who)
            else:
                self._forget(number)
                self.pending.pop(number, None)
                self.skipped[number] = event.get("note") or ""

    def _flag(self, event: Event) -> None:
        for number in self.numbers(event):
            if number is not None:
                self.flagged[number] = event.get("note") or ""

    def _retract(self, event: Event) -> None:
        """Labels, skips and flags are taken back: of one person, if the event names one. Then it is pending again."""
        for number in self.numbers(event):
            if number is not None:
                who = event.get("who")
                self.passed.get(number, set()).discard(who or "")
                self.flagged.pop(number, None)
                if who is not None and self._without(number, who):
                    continue
                self._forget(number)
                self.skipped.pop(number, None)
                if number in self.asked:
                    self.pending[number] = self.asked[number]

    def _without(self, number: int, who: str) -> bool:
        """Leaves out what one person said last, a decision or an answer; whether anything is left."""
        given, decision = self.answers.get(number, {}), self.decided.get(number)
        if decision is not None and decision.who == who:
            del self.decided[number]
        else:
            given.pop(who, None)
        left = [*given.values(), *filter(None, [self.decided.get(number)])]
        if left:
            self.last[number] = left[-1]
        return bool(left)

    def _forget(self, number: int) -> None:
        for known in (self.last, self.answers, self.decided):
            known.pop(number, None)


def check_said(who: object, seconds: object, note: object) -> None:
    """What an event says beside its items, of whatever origin: nothing of another type gets into a journal."""
    for name, value in {"who": who, "note": note}.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be text, but is {value!r}; nothing was recorded")
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError(f"seconds must be a number of 0 or more, but is {seconds!r}; nothing was recorded")
