"""What a page says, checked: types are strict, unknown names are refused. Nothing here trusts the client."""

import re
from dataclasses import dataclass
from typing import Any

from balent.project.classes import is_text

EVENTS = ("label", "skip", "flag", "retract", "resolve")
FIELDS = {"id", "event", "item", "items", "label", "tab", "seconds", "note", "replace", "who"}
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
TAB = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST = 200  # items of one event
LONGEST = 2000  # characters of a note


class Refused(Exception):
    """An answer other than 200: the status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True)
class Said:
    """An event that a person caused."""

    id: str
    event: str
    items: list[int]
    label: str | None
    tab: str
    seconds: float | None
    note: str
    replace: bool


def said(body: Any, who: str | None = None) -> Said:
    """A body of POST /api/event, sent by somebody.

    If it names somebody else, two people have opened their links in one browser: it waits for the right one.
    """
    _require(isinstance(body, dict), "an event is a JSON object")
    if body.get("who", who) != who:
        raise Refused(401, "another person's link was opened in this browser; open your own again")
    unknown = sorted(set(body) - FIELDS)
    _require(not unknown, f"the field {unknown[0]!r} is not known" if unknown else "")
    event = body.get("event")
    _require(event in EVENTS, f"event must be one of {', '.join(EVENTS)}")
    label = body.get("label")
    _require(label is None or isinstance(label, str), "label must be the name of a class")
    _require((label is not None) == (event in ("label", "resolve")), f"the event {event!r} and its label do not fit")
    return Said(
        key(body.get("id")),
        str(event),
        _items(body),
        label,
        tab(body.get("tab")),
        _seconds(body.get("seconds")),
        text(body.get("note", ""), "note", LONGEST),
        _flag(body.get("replace", False)),
    )


def left(body: Any) -> tuple[str, int]:
    """A body of POST /api/leave: a tab, and when its page was opened."""
    _require(isinstance(body, dict) and set(body) == {"tab", "page"}, "a page that is closed names its tab and itself")
    _require(type(body["page"]) is int and 0 <= body["page"] < 10**15, "page must be a time in milliseconds")
    return tab(body["tab"]), body["page"]


def key(value: Any) -> str:
    _require(isinstance(value, str) and KEY.fullmatch(value), "id must be 1 to 64 letters, digits, - or _")
    return str(value)


def tab(value: Any) -> str:
    _require(isinstance(value, str) and TAB.fullmatch(value), "tab must be 1 to 64 letters, digits, - or _")
    return str(value)


def text(value: Any, name: str, longest: int) -> str:
    good = isinstance(value, str) and len(value) <= longest and is_text(value)
    _require(good, f"{name} must be text of at most {longest} characters")
    return str(value)


def count(value: str | None, default: int, most: int) -> int:
    """A number of a query."""
    if value is None:
        return default
    _require(
        value.isascii() and value.isdigit() and len(value) <= max(9, len(str(most))),
        f"a whole number was expected, but {value!r} is given",
    )
    return min(int(value), most)


def _items(body: dict[str, Any]) -> list[int]:
    _require(("item" in body) != ("items" in body), "either item or items is needed")
    items = [body["item"]] if "item" in body else body["items"]
    good = isinstance(items, list) and 1 <= len(items) <= MOST and all(type(item) is int for item in items)
    _require(good, f"items are 1 to {MOST} whole numbers")
    _require(len(set(items)) == len(items), "an item is named twice")
    return list(items)


def _seconds(value: Any) -> float | None:
    _require(value is None or (type(value) in (int, float) and 0 <= value < 1e6), "seconds must be a number, 0 or more")
    return None if value is None else round(float(value), 3)


def _flag(value: Any) -> bool:
    _require(isinstance(value, bool), "replace must be true or false")
    return bool(value)


def _require(good: Any, sentence: str) -> None:
    if not good:
        raise Refused(422, sentence)
