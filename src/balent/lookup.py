"""Things by name; an unknown name gets the nearest known ones as an answer. No torch here."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

Entry = TypeVar("Entry")


def lookup(table: Mapping[str, Entry], name: str, what: str) -> Entry:
    """The entry of that name. For an unknown name, the error lists the nearest known names."""
    if name not in table:
        raise ValueError(f"there is no {what} {name!r}; {nearest(name, table)}")
    return table[name]


def nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"choose from {', '.join(sorted(known))}"
