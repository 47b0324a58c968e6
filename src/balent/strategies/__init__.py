"""Which k points to label next: strategies, and the table of their names."""

import math
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any

from balent import adapt, by_name
from balent.lookup import lookup, nearest
from balent.maths.measures import MEASURES, bald, margin
from balent.maths.named import measure
from balent.strategies.badge import Badge
from balent.strategies.batch_bald import BatchBALD
from balent.strategies.cluster_margin import ClusterMargin
from balent.strategies.core_batch import CoreBatch
from balent.strategies.core_mse import CoreLog, CoreMSE
from balent.strategies.core_set import CoreSet
from balent.strategies.diverse import Diverse
from balent.strategies.herding import Herding
from balent.strategies.jitter import Jitter
from balent.strategies.own import own
from balent.strategies.power import Power
from balent.strategies.race import Race
from balent.strategies.seals import Seals
from balent.strategies.top_k import Best, TopK
from balent.strategies.uniform import Uniform
from balent.types import Strategy

__all__ = [
    "STRATEGIES",
    "Badge",
    "BatchBALD",
    "Best",
    "ClusterMargin",
    "CoreBatch",
    "CoreLog",
    "CoreMSE",
    "CoreSet",
    "Diverse",
    "Herding",
    "Jitter",
    "Power",
    "Race",
    "Seals",
    "TopK",
    "Uniform",
    "strategy",
]

STRATEGIES: dict[str, Strategy] = {
    **{name: TopK(measure) for name, measure in MEASURES.items()},
    "random": Uniform(),
    "auto": Herding(margin),
    "herding": Herding(),
    "power_bald": Power(bald),
    "badge": Badge(),
    "core_set": CoreSet(),
    "cluster_margin": ClusterMargin(),
    "batch_bald": BatchBALD(),
    "core_mse": CoreMSE(),
    "core_log": CoreLog(),
    "core_batch": CoreBatch(),
}
PREFIXES = {"power": Power, "jitter": Jitter, "diverse": Diverse, "herding": Herding}  # of a measure
WRAPPERS = {"seals": Seals}  # of any strategy


NO_SETTINGS = ("measure", "stable", "strategy")  # fields of strategies that a name cannot set


def strategy(name: str) -> Strategy:
    """The strategy of that name: one of STRATEGIES, or `power:<measure>`, `jitter:<measure>`, `diverse:<measure>`,
    `herding:<measure>`, or `seals:<strategy>`.

    `file.py:name` and `module:name` are a user's own. Settings stand in brackets, those of the strategy and those of
    its measure: `balentacq(precision=2)`, `power:bald(beta=8)`, `core_mse(reference=1000)`. Those of `seals` stand
    beside those of its strategy: `seals:diverse:bald(neighbours=50, times=20)`.
    """
    head, _ = by_name.split(name)
    return _named(head, by_name.settings(name), name)


def _named(head: str, settings: dict[str, Any], name: str) -> Strategy:
    prefix, _, inner = head.partition(":")
    if inner and prefix in WRAPPERS:
        return _wrapped(WRAPPERS[prefix], inner, settings, name)
    if inner and prefix in PREFIXES:
        return _set(PREFIXES[prefix](measure(inner)), settings, name)
    if not by_name.is_name(head):
        return _set(lookup(STRATEGIES, head, "strategy"), settings, name)
    if not by_name.exists(head):
        raise ValueError(
            f"there is no kind of strategy {prefix!r}, and no module of that name; "
            f"{nearest(prefix, PREFIXES | WRAPPERS)}"
        )
    return own(head, settings)


def _wrapped(wrapper: type[Seals], inner: str, settings: dict[str, Any], name: str) -> Strategy:
    """The wrapper takes its own settings, and its strategy the others."""
    own = {field.name for field in fields(wrapper)} - {"strategy"}
    theirs = {key: value for key, value in settings.items() if key not in own}
    wrapped = wrapper(_named(inner, theirs, name))
    return _set(wrapped, {key: value for key, value in settings.items() if key in own}, name)


def _set(chosen: Any, settings: dict[str, Any], name: str) -> Strategy:
    """The strategy with other settings; those it does not have are its measure's."""
    if not settings:
        return chosen
    formula: Any = adapt.measure_of(chosen)
    theirs = {key: p.default for key, p in islice(signature(formula).parameters.items(), 1, None)} if formula else {}
    own = {field.name: vars(chosen)[field.name] for field in fields(chosen) if field.name not in NO_SETTINGS}
    for key in settings:
        lookup(theirs | own, key, f"setting of {name.partition('(')[0]}")
    given = {key: _as(value, (theirs | own)[key], f"{key} of {name}") for key, value in settings.items()}
    inner = {key: value for key, value in given.items() if key not in own}
    if inner:
        chosen = replace(chosen, measure=partial(formula, **inner))
    return replace(chosen, **{key: value for key, value in given.items() if key in own})


def _as(value: Any, default: Any, what: str) -> Any:
    """A value of the kind of the default; a whole number where numbers are expected is one."""
    kinds = {float: (int, float), int: (int,)}.get(type(default))
    if kinds is None:
        return value
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        raise ValueError(f"{what} must be {'a number' if float in kinds else 'a whole number'}, but is {value!r}")
    return type(default)(value)
