"""Questions: the items that a person is asked to label next, with what helps to answer."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from balent.project.audit import is_check
from balent.project.items import Known
from balent.project.state import ASKED, DIGITS, Question

RANDOM = "random check"
FIRST = "unlike anything labelled so far"
LAST = "one of the last items"


@dataclass(frozen=True)
class Item:
    """An item to label: the columns of ask.csv. One of `image`, `text` and `columns` is the content."""

    id: str
    kind: str
    rank: int
    score: float | None
    guess: str | None
    probability: float | None
    why: str
    round: int
    fingerprint: str = ""  # the first digits: answers then find the item, whatever its id is
    image: str | None = None
    text: str | None = None
    columns: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Proposal:
    """What becomes a question: an item by number."""

    number: int
    score: float | None = None
    audit: bool = False
    guess: str | None = None
    probability: float | None = None
    why: str = RANDOM


def checks(numbers: Iterable[int], every: int) -> list[Proposal]:
    """Items of the reserve as questions; where there are no random checks they are asked last, like anything else."""
    return [Proposal(number, audit=every > 0, why=RANDOM if every else LAST) for number in numbers]


def mixed(chosen: list[Proposal], checks: list[Proposal], asked: int, every: int, k: int) -> list[Proposal]:
    """k questions: every fifth, counted over the life of the project, is a random check. What lacks is filled up."""
    chosen, checks, result = chosen[:], checks[:], list[Proposal]()
    while len(result) < k and (chosen or checks):
        check = is_check(asked + len(result) + 1, every)
        result.append((checks or chosen).pop(0) if check else (chosen or checks).pop(0))
    return result


def checks_among(asked: int, every: int, k: int) -> int:
    """How many of the next k questions are random checks."""
    return sum(is_check(asked + i, every) for i in range(1, k + 1))


def columns(proposals: list[Proposal]) -> dict[str, list[Any]]:
    """The fields of an `ask` event."""
    return {name: [getattr(proposal, field) for proposal in proposals] for field, name in ASKED.items()}


def item(asked: Question, known: Known, kind: str, content: Any) -> Item:
    """The question as a person sees it."""
    shown = {"images": "image", "text": "text"}.get(kind, "columns")
    value = os.fspath(content) if shown == "image" else content
    if kind == "features":
        value = None
    about = (asked.rank, asked.score, asked.guess, asked.probability, asked.why, asked.round)
    return Item(known.id, kind, *about, known.fingerprint[:DIGITS], **{shown: value})
