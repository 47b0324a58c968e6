"""Findings as a person reads them: a line each, what to do below, and the sum."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape

from balent.apps.doctor.finding import FAILURE, LEVELS, NOTE, OK, OPEN, WARNING, Finding

COLOURS = {OK: "green", NOTE: "blue", OPEN: "dim", WARNING: "yellow", FAILURE: "bold red"}
LEVEL, ABOUT = 9, 17  # characters of a column


def lines(title: str, findings: Sequence[Finding]) -> Iterator[str]:
    """With markup. What cannot be told stands at the end, each reason once."""
    yield f"[bold]{escape(title)}[/]"
    yield ""
    for found in findings:
        if found.level != OPEN:
            yield _line(found.level, found.about, found.says)
            if found.action:
                yield f"{'':<{LEVEL + ABOUT}}→ {escape(found.action)}"
    for reason in dict.fromkeys(found.says for found in findings if found.level == OPEN):
        yield _line(OPEN, ", ".join(found.about for found in findings if found.says == reason), reason)
    yield ""
    yield total(findings)


def _line(level: str, about: str, says: str) -> str:
    """A subject that is too long for its column has a line of its own."""
    apart = "\n" + " " * (LEVEL + ABOUT) if len(about) >= ABOUT else ""
    return f"[{COLOURS[level]}]{level:<{LEVEL}}[/]{about:<{ABOUT}}{apart}{escape(says)}"


def total(findings: Iterable[Finding]) -> str:
    """How many of each level, the worst first."""
    counts = Counter(found.level for found in findings)
    return ", ".join(_counted(level, counts[level]) for level in reversed(LEVELS) if counts[level])


def as_json(title: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """The same for programs."""
    worst = max((LEVELS.index(found.level) for found in findings), default=0)
    return {"about": title, "worst": LEVELS[worst], "findings": [asdict(found) for found in findings]}


def spoils(findings: Iterable[Finding]) -> bool:
    """Would the run be spoilt?"""
    return any(found.level == FAILURE for found in findings)


def _counted(level: str, count: int) -> str:
    return f"{count} {level}{'s' if count > 1 and level in (NOTE, WARNING, FAILURE) else ''}"
