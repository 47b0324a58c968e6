"""Where folds run: in this process, or on a cluster."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from balent.acquisition.engines.crew import Say
from balent.acquisition.engines.local import MEMORY, Local
from balent.acquisition.engines.ray import RayEngine
from balent.lookup import lookup
from balent.types import Engine

ENGINES: dict[str, type[Local] | type[RayEngine]] = {"local": Local, "ray": RayEngine}


def asked(name: str, settings: Mapping[str, Any], say: Say) -> str | Engine:
    """The engine that a command line names, with those of its settings that are given."""
    lookup(ENGINES, name, "engine")
    given = {key: value for key, value in settings.items() if value is not None}
    if name == "ray":
        return RayEngine(**given, say=say)
    if given:
        words = ", ".join(f"--{OPTIONS.get(key, key)}" for key in given)
        raise ValueError(f"{words} is for --engine ray, but the engine is {name}; add --engine ray, or leave it out")
    return name


OPTIONS = {"span_rows": "span-rows", "journal": "resume"}


@contextmanager
def opened(given: str | Engine, memory: int = MEMORY, count: Callable[[int], None] | None = None) -> Iterator[Engine]:
    """The engine of that name, which is closed afterwards; or the one that is given, which stays as it is."""
    if isinstance(given, str):
        engine = lookup(ENGINES, given, "engine")(memory=memory, count=count)
        try:
            yield engine
        finally:
            engine.close()
        return
    if isinstance(given, RayEngine) and count is not None:
        given.begin(count)
    yield given


@contextmanager
def kept(given: str | Engine) -> Iterator[str | Engine]:
    """The engine for as long as this lasts; one of Ray ends its workers then."""
    try:
        yield given
    finally:
        if isinstance(given, RayEngine):
            given.close()
