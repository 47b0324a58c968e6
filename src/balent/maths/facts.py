"""Facts that a measure declares about itself, for code that uses its scores without knowing its formula.

A measure that declares nothing (a bare function) has the default of every fact. A partial of a measure (another
precision) has the facts of the measure, under the same settings.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from torch import Tensor

from balent.types import Measure

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Facts:
    """spread: it measures how draws differ, so it needs at least two draws.
    balance: the measure that crosses zero where this one jumps; errors and noise are computed for that one.
    log_key: the logarithm of a positive number in the order of the scores, for `Power`; None: log of the score.
    """

    spread: bool = False
    balance: Measure | None = None
    log_key: Callable[[Tensor], Tensor] | None = None


def declares(**facts: Any) -> Callable[[F], F]:
    """A decorator that declares facts of a measure.

    >>> @declares(spread=True)
    ... def largest_sd(m):
    ...     return m.var.amax(-1).sqrt()
    >>> facts(largest_sd).spread
    True
    """

    def declare(measure: F) -> F:
        measure.facts = Facts(**facts)  # type: ignore[attr-defined]
        return measure

    return declare


def facts(measure: Measure) -> Facts:
    """What the measure declares."""
    if isinstance(measure, partial):
        known = facts(measure.func)
        balance = known.balance and partial(known.balance, *measure.args, **measure.keywords)
        return replace(known, balance=balance)
    return getattr(measure, "facts", Facts())
