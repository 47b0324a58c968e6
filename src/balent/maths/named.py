"""Measures by name: those of balent, and a user's own."""

from typing import Any

from balent import by_name
from balent.lookup import lookup
from balent.maths.measures import MEASURES
from balent.types import Measure


def measure(name: str) -> Measure:
    """One of MEASURES, or `file.py:name` or `module:name` of a function of the moments."""
    if not by_name.is_name(name):
        return lookup(MEASURES, name, "measure")
    found: Any = by_name.function(name)
    if isinstance(found, type):
        found = found()
    if not by_name.takes(found, None):
        raise TypeError(
            f"{name} must be a measure, a function of one argument (the moments), but its arguments are "
            f"{by_name.arguments(found)}"
        )
    return found
