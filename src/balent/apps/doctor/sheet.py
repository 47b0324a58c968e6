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
    """With markup."""
    yield f"[bold]{escape(title)}[/]"
    yield ""
    for found in findings:
        yield f"[{COLOURS[found.level]}]{found.level:<{LEVEL}}[/]{found.about:<{ABOUT}}{escape(found.says)}"
        if found.action:
            yield f"{'':<{LEVEL + ABOUT}}→ {escape(found.action)}"
    yield ""
    yield total(findings)


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
