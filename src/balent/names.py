"""Names of objects for the journal: the same in every process, also for a user's own functions."""

import ast
import dataclasses
import hashlib
import inspect
import sys
import textwrap
from functools import partial
from typing import Any

PLAIN = (int, float, str)  # constants of a file that count as part of its code


def identity(thing: object) -> str:
    """A name for a strategy, a measure or a setting that another process finds again.

    A function is named by its module and its name, never by an address.

    >>> identity(partial(identity, 1))
    'partial(balent.names:identity, 1)'
    """
    if isinstance(thing, str):
        return thing
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = (f"{f.name}={_inner(getattr(thing, f.name))}" for f in dataclasses.fields(thing) if f.repr)
        return f"{type(thing).__qualname__}({', '.join(fields)})"
    return _inner(thing)


def _inner(value: object) -> str:
    if isinstance(value, partial):
        named = (f"{name}={_inner(v)}" for name, v in sorted(value.keywords.items()))
        return f"partial({', '.join([_inner(value.func), *map(_inner, value.args), *named])})"
    if inspect.isroutine(value) or isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, str) or not dataclasses.is_dataclass(value):
        words = repr(value)
        return words if " at 0x" not in words else f"{type(value).__module__}:{type(value).__qualname__}"
    return identity(value)


def source_hash(thing: object) -> str | None:
    """A hash of the source code of users' functions and classes in this object; None if all code is balent's.

    Functions, classes, numbers and texts of the same file that the code mentions are part of it.
    """
    found, seen, waiting = set[str](), set[int](), _parts(thing)
    while waiting:
        part = waiting.pop()
        text = None if id(part) in seen else _source(part)
        seen.add(id(part))
        if text is not None:
            mentioned = _mentioned(part, text)
            found |= {text, *(f"{key} = {value!r}" for key, value in mentioned.items() if isinstance(value, PLAIN))}
            waiting += [value for value in mentioned.values() if not isinstance(value, PLAIN)]
    return _digest(sorted(found))


def _digest(found: list[str]) -> str | None:
    return hashlib.sha256("\0".join(found).encode()).hexdigest()[:16] if found else None


def _parts(thing: object) -> list[Any]:
    """The functions and classes that an object is made of."""
    if isinstance(thing, partial):
        return [part for inner in (thing.func, *thing.args, *thing.keywords.values()) for part in _parts(inner)]
    if inspect.isroutine(thing) or isinstance(thing, type):
        return [thing]
    if dataclasses.is_dataclass(thing):
        inner = [getattr(thing, f.name) for f in dataclasses.fields(thing)]
        return [type(thing), *(part for value in inner for part in _parts(value))]
    return [] if type(thing).__module__ == "builtins" else [type(thing)]


def _mentioned(part: Any, text: str) -> dict[str, Any]:
    """What a function or class uses of its own file, by name."""
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:  # a lambda: its line is not a statement of its own
        return {}
    file = vars(sys.modules[part.__module__]) if part.__module__ in sys.modules else {}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & file.keys()
    return {name: file[name] for name in sorted(names) if _is_of(file[name], part.__module__)}


def _is_of(value: Any, module: str) -> bool:
    code = inspect.isroutine(value) or isinstance(value, type)
    return isinstance(value, PLAIN) or (code and value.__module__ == module)


def _source(part: Any) -> str | None:
    if part.__module__ is None or part.__module__.partition(".")[0] in ("balent", "builtins", "torch", "numpy"):
        return None
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):  # typed into an interpreter: there is no source to compare
        return None
