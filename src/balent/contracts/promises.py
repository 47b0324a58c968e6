"""Promises: functions that take what is checked, and raise with a sentence where it does not do what balent relies on.

The first line of a promise's docstring says what is promised. A suite is a tuple of such functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Checked = TypeVar("Checked")


class BrokenPromise(AssertionError):
    """Something does not do what balent relies on."""


@dataclass(frozen=True)
class Finding:
    """One promise: what it says, and how it is broken; None where it is kept."""

    promise: str
    broken: str | None = None

    def __str__(self) -> str:
        return f"kept    {self.promise}" if self.broken is None else f"BROKEN  {self.promise}: {self.broken}"


class Findings(list[Finding]):
    """All promises, in order; prints one per line."""

    @property
    def broken(self) -> list[Finding]:
        return [finding for finding in self if finding.broken is not None]

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    __str__ = __repr__


def findings(suite: Sequence[Callable[[Checked], None]], checked: Checked, name: str, *, stop: bool) -> Findings:
    """Every promise of the suite, one after the other; with `stop` the first broken one is raised."""
    found = Findings()
    for promise in suite:
        words = str(promise.__doc__).partition("\n")[0].rstrip(".")
        try:
            promise(checked)
        except Exception as error:
            said = str(error) if isinstance(error, BrokenPromise) else f"{type(error).__name__}: {error}"
            if stop:
                raise BrokenPromise(f"{name} breaks a promise. {words}; but {said}") from error
            found.append(Finding(words, said))
        else:
            found.append(Finding(words))
    return found


def expect(kept: bool, said: str) -> None:
    """Breaks a promise with this sentence, unless it is kept."""
    if not kept:
        raise BrokenPromise(said)
