"""History: what people said, newest first; searched and filtered."""

from collections.abc import Callable
from typing import Any

from balent.apps.label.desk import Desk

Message = dict[str, Any]
SHOW = ("all", "labelled", "skipped", "flagged", "changed", "suspicious", "mine")


def history(desk: Desk, who: str | None, filters: dict[str, str], first: int, n: int) -> Message:
    """A page of the history.

    filters     q (part of an id or a text), class, who, show (one of SHOW)
    first, n    which part
    """
    with desk.lock:
        desk.look()
        doubtful = {line["item"]: line for line in desk.suspicious()}
        split = desk.project.state.disagreements()
        lines = [_line(desk, number, doubtful) | {"disagree": number in split} for number in _touched(desk)]
        found = [line for line in lines if _fits(desk, line, who, filters)]
        found.sort(key=lambda line: line["when"], reverse=True)
        part = found[first : first + n]
        return {"items": [desk.cards.of(line["item"]) | line for line in part], "total": len(found)}


def _touched(desk: Desk) -> list[int]:
    state = desk.project.state
    numbers = {*state.last, *state.skipped, *state.flagged}
    return [number for number in numbers if not desk.project.items[number].gone]


def _line(desk: Desk, number: int, doubtful: dict[int, Message]) -> Message:
    state, last = desk.project.state, desk.project.state.last.get(number)
    fingerprint, event = desk.project.items[number].fingerprint, state.history[number][-1]
    return {
        "item": number,
        "id": desk.project.items[number].id,
        "label": None if last is None else state.classes.name(last.label),
        "skipped": number in state.skipped,
        "flagged": state.flagged.get(number),
        "who": event.get("who") if last is None else last.who,
        "when": event["when"] if last is None else last.when,
        "audit": state.is_audit(number),
        "changed": last is not None and not fingerprint.startswith(last.print),
        "suspicious": _doubt(doubtful.get(number)),
    }


def _doubt(line: Message | None) -> Message | None:
    return None if line is None else {"guess": line["guess"], "probability": line["probability"]}


def _fits(desk: Desk, line: Message, who: str | None, filters: dict[str, str]) -> bool:
    shows: dict[str, Callable[[], bool]] = {
        "labelled": lambda: line["label"] is not None,
        "skipped": lambda: line["skipped"],
        "flagged": lambda: line["flagged"] is not None,
        "changed": lambda: line["changed"],
        "suspicious": lambda: line["suspicious"] is not None,
        "mine": lambda: line["who"] == who,
    }
    show, name, person, words = (filters.get(key, "") for key in ("show", "class", "who", "q"))
    if show in shows and not shows[show]():
        return False
    if (name and line["label"] != name) or (person and line["who"] != person):
        return False
    return not words or words.lower() in line["id"].lower() or words.lower() in _text(desk, line["item"])


def _text(desk: Desk, number: int) -> str:
    """What can be searched of a content."""
    kind = desk.project.settings.kind
    return str(desk.cards.read(number)).lower() if kind in ("text", "table") else ""
