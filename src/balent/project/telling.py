"""Answers on their way into the journal: all of a file, or none.

Every line is checked against the newest state before anything is written, and an error names the lines. All events of
a file are one append. A machine that fails in the middle of it can keep the first of them; telling the same file again
then adds the others, because what is known already is left out. No torch here.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from balent.data.cells import shown, unescaped
from balent.project.classes import checked
from balent.project.exchange import MOST, Reply, refuse
from balent.project.state import Event

if TYPE_CHECKING:
    from balent.project.project import Project

HALF = re.compile(r"\\ud[89a-f][0-9a-f]{2}")  # a byte of a file name that is not UTF-8, as CSV files show it
ROUNDED = re.compile(r"\d(?:[.,]\d+)?E\+?\d+", re.I)  # what spreadsheets make of long numbers
NEAR = 5000  # items among which a similar id is looked for


@dataclass(frozen=True)
class Told:
    """What a file of answers said: new labels, new skips, lines without an answer, and what was known already."""

    labelled: int
    skipped: int
    unanswered: int
    known: int
    classes: tuple[str, ...] = ()  # that were added

    def __str__(self) -> str:
        parts = [f"{self.labelled} labelled", f"{self.skipped} skipped", f"{self.unanswered} unanswered"]
        parts += [f"{self.known} known before"] if self.known else []
        return ", ".join(parts + ([f"new classes: {', '.join(self.classes)}"] if self.classes else []))


def apply(
    project: "Project",
    answers: Sequence[Reply],
    who: str | None = None,
    *,
    add_classes: bool = False,
    resolve: bool = False,
    source: str = "the answers",
) -> Told:
    """Records answers: all of them, or none if one of them is refused.

    answers         lines, as `read_answers` gives them; items need not have been asked
    who             who answered where a line does not say it
    add_classes     adds classes that are not known, instead of refusing them
    resolve         decides items that people disagree on
    source          what errors call the answers: the file's name
    """
    if any(number_of(project, answer.id, answer.fingerprint) is None for answer in answers):
        project.refresh()  # the item may be new
    batch = Batch(project, answers, who, add_classes, resolve, source)
    project.happen_together(batch.events)
    for name in batch.classes:
        project.describe_class(name, key=project.free_key(name))
    labelled, skipped = (sum(a.skip is skip for _, a in batch.new) for skip in (False, True))
    unanswered = sum(not answer.says for answer in answers)
    known = len(answers) - labelled - skipped - unanswered
    return Told(labelled, skipped, unanswered, known, tuple(batch.classes))


class Batch:
    """Answers on their way into the journal, checked against its newest state."""

    def __init__(
        self,
        project: "Project",
        answers: Sequence[Reply],
        who: str | None,
        add_classes: bool,
        resolve: bool,
        source: str,
    ) -> None:
        self.project, self.answers, self.who = project, answers, who
        self.add_classes, self.resolve, self.source = add_classes, resolve, source
        self.classes: list[str] = []
        self.new: list[tuple[int, Reply]] = []  # items with what is new of them

    def events(self) -> list[Event]:
        """One for each new class, then one for all answers of a person that are alike."""
        self.classes, first, wrong = [], dict[tuple[int, str | None], Reply](), list[str]()
        for answer in self.answers:
            try:
                self._check(answer, first)
            except ValueError as error:
                wrong.append(f"line {answer.line}: {error}")
                if len(wrong) == MOST:
                    break  # similar ids are slow to find
        refuse(self.source, wrong)
        self.new = [(number, answer) for (number, _), answer in first.items() if not self._is_known(number, answer)]
        return [*self._class_events(), *self._answer_events()]

    def _check(self, answer: Reply, first: dict[tuple[int, str | None], Reply]) -> None:
        """Raises if the line cannot be recorded; `first` has what earlier lines say."""
        number = number_of(self.project, answer.id, answer.fingerprint)
        if number is None:
            raise ValueError(f"{_unknown(self.project, answer.id)}{_hint(answer.id)}")
        if answer.says:
            answer = replace(answer, label=self._class(answer.label))
            before = first.setdefault((number, self._person(answer)), answer)
            if before.label != answer.label:
                raise ValueError(f"{answer.says} for {shown(answer.id)}, but line {before.line} says {before.says}")

    def _class(self, label: str | None) -> str | None:
        """The class as the project names it."""
        if label is None:
            return None
        for name in (label, unescaped(label)):
            if name in self.project.state.classes or name in self.classes:
                return name
        if not self.add_classes:
            self.project.state.classes.number(label)
        self.classes.append(checked(label))
        return label

    def _person(self, answer: Reply) -> str | None:
        return answer.who or self.who

    def _is_known(self, number: int, answer: Reply) -> bool:
        """Has this person said so before?"""
        state = self.project.state
        if answer.skip:
            return number in state.skipped
        given = state.answers.get(number, {}).get(self._person(answer))
        before = state.decided.get(number, given) if self.resolve else given
        said = before is not None and state.classes.name(before.label) == answer.label
        return said and not (self.resolve and number in state.disagreements())

    def _class_events(self) -> Iterator[Event]:
        for name in self.classes:
            yield self.project.event("class", [], None, labels=[name])

    def _answer_events(self) -> Iterator[Event]:
        alike: dict[tuple[bool, str | None, float | None, str], list[tuple[int, Reply]]] = {}
        for number, answer in self.new:
            about = (answer.skip, self._person(answer), answer.seconds, answer.note)
            alike.setdefault(about, []).append((number, answer))
        for (skip, who, seconds, note), some in alike.items():
            ids = [self.project.items[number].id for number, _ in some]
            labels = None if skip else [answer.label for _, answer in some]
            extra = {"resolve": True} if self.resolve and not skip else {}
            name = "skip" if skip else "label"
            yield self.project.event(name, ids, who, labels=labels, seconds=seconds, note=note, **extra)


def number_of(project: "Project", id: str, print: str | None = None) -> int | None:
    """The item of an id: as it stands, or as files of questions and spreadsheets may have changed it."""
    forms = (id, id.strip(), unescaped(id), HALF.sub(lambda half: json.loads(f'"{half[0]}"'), id))
    return next((number for form in forms if (number := project.items.number(form, print)) is not None), None)


def _unknown(project: "Project", id: str) -> str:
    near = get_close_matches(id, (item.id for item in project.items.all[:NEAR]), 1)
    return f"the item {shown(id)} is not known" + (f"; did you mean {shown(near[0])}?" if near else "")


def _hint(id: str) -> str:
    """Spreadsheets take ids for numbers."""
    return "; a spreadsheet has rounded it: import the column id as text" if ROUNDED.fullmatch(id) else ""
