"""What the doctor found about one subject: a sentence with its number, and what to do."""

from dataclasses import dataclass

# ok      looked at, nothing to do          open     cannot be told: something is missing, or there are too few labels
# note    worth knowing                     warning  costs labels or time; the run still works
# failure spoils the run: exit code 1
LEVELS = OK, NOTE, OPEN, WARNING, FAILURE = "ok", "note", "open", "warning", "failure"


@dataclass(frozen=True)
class Figure:
    """What a check measured, with its interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Finding:
    """One finding.

    level   one of LEVELS
    says    what was found, with its number
    action  what to do; "" where nothing is to be done
    figure  what was measured, for programs
    about   the subject: the name of the check
    """

    level: str
    says: str
    action: str = ""
    figure: Figure | None = None
    about: str = ""


class Missing(Exception):
    """A check cannot be made; the reason is a sentence. The finding is then open."""


class Incomparable(Missing):
    """Points are not vectors, and the model has no features of them."""


class Silent(Missing):
    """The model does not answer: it raised this error on the first points."""
