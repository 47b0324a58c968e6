"""Annotations of Label Studio on their way into the journal: each told once, whatever was killed in between.

The key of an event is made of the server, the project, the annotation and the time it was changed last. A key stands
in the journal once, so an annotation that is seen again is not told again, and one that was edited is told as a
change. What a person has said in balent after an annotation of her own is kept. No torch here.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from balent.apps.connect.labelstudio import Task, address
from balent.apps.connect.task_data import named
from balent.project.log import now, written
from balent.project.project import Project
from balent.project.state import Event
from balent.project.telling import number_of


@dataclass(frozen=True)
class Saying:
    """What an annotation says. Without a label it is a skip."""

    key: str
    number: int
    label: str | None
    who: str
    when: str
    seconds: float | None


@dataclass
class Heard:
    """What was new: labels, skips, and sentences about what could not be used."""

    labels: int = 0
    skips: int = 0
    problems: list[str] = field(default_factory=list)


def tell(project: Project, server: str, tasks: Iterable[Task], people: Mapping[int, str]) -> Heard:
    """Records what is new in annotations, in one append.

    server      tells annotations of one project of one server from all others
    people      names of users by number
    """
    given, heard = [*tasks], Heard()

    def events() -> list[Event]:
        nonlocal heard
        heard = Heard()
        return [_event(project, saying) for saying in _new(project, server, given, people, heard)]

    project.happen_together(events)
    return heard


def _new(
    project: Project, server: str, tasks: Iterable[Task], people: Mapping[int, str], heard: Heard
) -> Iterator[Saying]:
    """Checked against the newest state, in the order in which people said it."""
    found = [saying for task in tasks for saying in _sayings(project, server, task, people, heard)]
    for saying in sorted(found, key=lambda saying: saying.when):
        if saying.label is not None and saying.label not in project.state.classes:
            heard.problems.append(
                f"{project.items[saying.number].id} was labelled {saying.label!r}, which is not a class: add it, and "
                f"it is read again: balent classes {project.path} --add {saying.label!r}"
            )
        elif not _is_known(project, saying):
            heard.labels += saying.label is not None
            heard.skips += saying.label is None
            yield saying


def _sayings(project: Project, server: str, task: Task, people: Mapping[int, str], heard: Heard) -> Iterator[Saying]:
    id, print = named(task.get("data"))
    annotations = [a for a in task.get("annotations") or () if isinstance(a, dict)]
    number = number_of(project, id, print) if id and annotations else None
    if number is None:
        if annotations:
            heard.problems.append(f"task {task.get('id')} has answers, but is not about an item of this project")
        return
    for annotation in annotations:
        try:
            yield _saying(number, server, annotation, people)
        except ValueError as error:
            heard.problems.append(f"the answer for {id} cannot be used: {error}")


def _saying(number: int, server: str, annotation: Mapping[str, Any], people: Mapping[int, str]) -> Saying:
    changed = annotation.get("updated_at") or annotation.get("created_at") or ""
    about = f"{server} {annotation.get('id')} {changed}"
    key = f"ls-{hashlib.sha256(about.encode('utf-8', 'backslashreplace')).hexdigest()[:24]}"
    label = None if annotation.get("was_cancelled") else chosen(annotation.get("result"))
    who = annotator(annotation.get("completed_by"), people)
    return Saying(key, number, label, who, time_of(changed), seconds_of(annotation.get("lead_time")))


def chosen(result: object) -> str:
    """The one choice of a result."""
    lines = [line for line in result if isinstance(line, dict)] if isinstance(result, list) else []
    values = [line.get("value") for line in lines if line.get("from_name") == "label"]
    names = [name for value in values if isinstance(value, dict) for name in value.get("choices") or ()]
    if len(names) != 1 or not isinstance(names[0], str):
        raise ValueError(f"it was to have one choice of `label`, but has {len(names)}")
    return names[0]


def annotator(given: object, people: Mapping[int, str]) -> str:
    """Whose annotation it is: a number of a user, or the user."""
    user: Mapping[str, Any] = given if isinstance(given, dict) else {"id": given}
    id = user.get("id")
    known = people.get(id) if isinstance(id, int) else None
    return known or address(user) or f"user {id}"


def time_of(text: str) -> str:
    """A time of Label Studio in the form of our journal; now, if it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return now()
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return written(found.astimezone(UTC))


def seconds_of(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    return float(value)


def _is_known(project: Project, saying: Saying) -> bool:
    """Was it told before, or has the same person said so, or something newer, by another way?"""
    state = project.state
    if saying.key in state.keys:
        return True
    before = state.answers.get(saying.number, {}).get(saying.who)
    if before is not None and before.when > saying.when:
        return True
    if saying.label is None:
        return saying.number in state.skipped or saying.who in state.passed.get(saying.number, ())
    return before is not None and state.classes.name(before.label) == saying.label


def _event(project: Project, saying: Saying) -> Event:
    name, labels = ("skip", []) if saying.label is None else ("label", [saying.label])
    ids = [project.items[saying.number].id]
    event = project.event(name, ids, saying.who, labels=labels or None, seconds=saying.seconds)
    return event | {"key": saying.key, "when": saying.when}
