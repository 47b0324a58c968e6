"""Strategies of a user's own, by name: a function, a class, an object, or a measure, of which the top k is taken."""

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import update_wrapper
from typing import Any

from balent import by_name
from balent.strategies.top_k import TopK
from balent.types import Strategy


def own(name: str, settings: Mapping[str, Any]) -> Strategy:
    """What `file.py:name` or `module:name` names, with these settings. A function of one argument is a measure."""
    given = by_name.found(name)
    if isinstance(given, type):
        return _checked(_made(given, settings, name), name)
    if settings and is_dataclass(given):
        return _checked(_replaced(given, settings, name), name)
    chosen: Any = by_name.with_settings(given, settings, name)
    if chosen is not given:
        update_wrapper(chosen, given)  # what it declares to need
    return _checked(chosen, name)


def _made(given: type, settings: Mapping[str, Any], name: str) -> Any:
    maker = by_name.with_settings(given, settings, name)
    if not by_name.takes(maker):
        raise TypeError(
            f"the class {name} must be made without arguments, but its arguments are {by_name.arguments(maker)}; give "
            f"them defaults, or values in brackets: {name}(NAME=VALUE)"
        )
    return maker()


def _replaced(given: Any, settings: Mapping[str, Any], name: str) -> Any:
    by_name.with_settings(type(given), settings, name)
    return replace(given, **settings)


def _checked(given: Any, name: str) -> Strategy:
    """A strategy as it is; a measure as its top k."""
    if by_name.takes(given, None, None, 1, generator=None):
        return given
    if by_name.takes(given, None):
        return TopK(given)
    raise TypeError(
        f"{name} must be a strategy, (sampled, pool, k, *, generator), or a measure, a function of one argument, but "
        f"its arguments are {by_name.arguments(given)}"
    )
