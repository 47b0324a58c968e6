"""Users' code by name: `file.py:name` or `module:name`, with settings in brackets, as in `mine.py:network(width=64)`.

A file is looked for in the current directory, and imported again only if its content has changed. A module is looked
for in the current directory too, and among installed packages. Every error here is one sentence: it names the file, and
the line in it where there is one.
"""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from balent.lookup import lookup, nearest

_LOADED: dict[str, tuple[bytes, ModuleType]] = {}  # by path: the content that was imported, and what it gave


def is_name(word: str) -> bool:
    """Does this name something in a user's file or module?"""
    head, _ = split(word)
    return ":" in head or head.endswith(".py")


def split(name: str) -> tuple[str, str]:
    """What stands before the brackets, and the brackets. A path may have brackets of its own.

    >>> split("runs (1)/mine.py:Mine(beta=8)")
    ('runs (1)/mine.py:Mine', '(beta=8)')
    """
    match = re.fullmatch(r"((?:.*\.py(?::|$))?[^(]*)(.*)", name, re.S)
    assert match is not None  # every text has such parts
    return match[1], match[2]


def settings(name: str) -> dict[str, Any]:
    """What stands in the brackets: values by name.

    >>> settings("power:bald(beta=8)")
    {'beta': 8}
    """
    _, inner = split(name)
    if not inner:
        return {}
    try:
        call: Any = ast.parse(f"settings{inner}", mode="eval").body
        if call.args or not isinstance(call.func, ast.Name):
            raise ValueError("a value without a name")
        if len({word.arg for word in call.keywords}) < len(call.keywords):
            raise ValueError("a name twice")
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise ValueError(f"settings stand in brackets, as in power:bald(beta=8), but {name!r} was given") from None


def exists(name: str) -> bool:
    """Is there such a module?  A file is always taken for one: whether it can be read is found out by reading it."""
    where, _ = _parts(name)
    if where.endswith(".py"):
        return True
    _look_here()
    try:
        return importlib.util.find_spec(where) is not None
    except (ImportError, ValueError):
        return False


def files() -> list[ModuleType]:
    """Modules made of files so far: no other process can import them by name."""
    return [module for _, module in _LOADED.values()]


def found(name: str) -> Any:
    """What a file or a module calls by this name; brackets are not looked at."""
    where, what = _parts(name)
    loaded = _file(Path(where)) if where.endswith(".py") else _module(where)
    public = {key: value for key, value in vars(loaded).items() if not key.startswith("__")}
    if what not in public:
        functions = [key for key, value in public.items() if callable(value) and not key.startswith("_")]
        others = nearest(what, functions) if functions else "it defines no function"
        raise ValueError(f"{where} has no function {what!r}; {others}")
    if not callable(public[what]):
        raise TypeError(f"{name} must be a function or a class, but is {type(public[what]).__name__}")
    return public[what]


def function(name: str) -> Callable[..., Any]:
    """The function or class of this name, with the settings that stand in brackets."""
    head, _ = split(name)
    return with_settings(found(head), settings(name), head)


def with_settings(given: Callable[..., Any], values: Mapping[str, Any], name: str) -> Callable[..., Any]:
    """The function with some of its arguments set."""
    known = parameters(given)
    for key in values:
        lookup(known, key, f"setting of {name}") if known else _no_settings(name, key)
    return partial(given, **values) if values else given


def _no_settings(name: str, key: str) -> None:
    raise ValueError(f"{name} takes no settings, but {key!r} was given")


def parameters(given: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments that can be passed by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {key: p for key, p in inspect.signature(given).parameters.items() if p.kind in kinds}


def takes(given: Callable[..., Any], *positional: object, **named: object) -> bool:
    """Can it be called like this?"""
    try:
        inspect.signature(given).bind(*positional, **named)
    except TypeError:
        return False
    except ValueError:  # of some functions that are not written in Python, nobody knows
        return True
    return True


def arguments(given: Callable[..., Any]) -> str:
    """As they stand in its first line, without types."""
    bare = [p.replace(annotation=p.empty) for p in inspect.signature(given).parameters.values()]
    return str(inspect.signature(given).replace(parameters=bare, return_annotation=inspect.Signature.empty))


def made(name: str, *positional: object, expected: str, **named: object) -> Any:
    """What a function makes of these arguments; `expected` says in words which it should take."""
    maker = function(name)
    if not takes(maker, *positional, **named):
        raise TypeError(f"{name} must take {expected}, but its arguments are {arguments(maker)}")
    return maker(*positional, **named)


def filled(name: str, offered: Mapping[str, Callable[[], Any]]) -> Any:
    """What a function makes, its arguments filled by their names: only what it asks for is computed."""
    maker = function(name)
    set_already = settings(name)
    asked = [key for key in parameters(maker) if key in offered and key not in set_already]
    if not takes(maker, **dict.fromkeys(asked)):
        known = f"only {', '.join(offered)} are filled in; give the others defaults"
        none = "no argument is filled in; give them defaults"
        raise TypeError(f"{name} has the arguments {arguments(maker)}, but {known if offered else none}")
    return maker(**{key: offered[key]() for key in asked})


def _parts(name: str) -> tuple[str, str]:
    where, colon, what = split(name)[0].rpartition(":")
    if not colon and what.endswith(".py"):
        raise ValueError(f"{what} is a file; say what to use of it, as in {what}:NAME")
    if not (where and what):
        raise ValueError(f"{name!r} must be MODULE:NAME or FILE.py:NAME, as in models.py:classifier")
    return where, what


def _look_here() -> None:
    if "" not in sys.path:
        sys.path.insert(0, "")
    importlib.invalidate_caches()  # a file may have been written a moment ago


def _module(name: str) -> ModuleType:
    _look_here()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ValueError(
                f"there is no module {name!r}, neither here nor installed; a file has its ending, as in {name}.py:NAME"
            ) from None
        raise _broken(name, error, None) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error, None) from error


def _file(path: Path) -> ModuleType:
    place = str(path.expanduser().resolve())
    content = _content(path)
    if place in _LOADED and _LOADED[place][0] == content:
        return _LOADED[place][1]
    module = _executed(place, content, path)
    _LOADED[place] = content, module
    return module


def _content(path: Path) -> bytes:
    if not path.expanduser().is_file():
        raise FileNotFoundError(f"there is no file {path}" + ("" if path.is_absolute() else f" in {Path.cwd()}"))
    return path.expanduser().read_bytes()


def _executed(place: str, content: bytes, path: Path) -> ModuleType:
    """A file as a module. Not by Python's import: that takes a file edited twice in a second for unchanged."""
    name = f"{path.stem}@{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"  # no import has it
    module = ModuleType(name)
    module.__file__ = place
    if str(Path(place).parent) not in sys.path:
        sys.path.append(str(Path(place).parent))  # files import their neighbours, but do not hide packages
    before = sys.modules.get(name)
    sys.modules[name] = module  # so that what it defines can be pickled
    linecache.cache.pop(place, None)
    try:
        exec(compile(content, place, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name) if before is None else sys.modules.update({name: before})
        raise _broken(str(path), error, place) from error
    return module


def _broken(where: str, error: BaseException, place: str | None) -> ValueError:
    """Why a file or a module cannot be imported, and on which line."""
    if isinstance(error, SyntaxError):
        return ValueError(f"{where} cannot be imported: {error.msg} ({error.filename}, line {error.lineno})")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if place in (None, frame.filename)]
    line = f" (line {frames[-1].lineno})" if frames and place else ""
    return ValueError(f"{where} cannot be imported{line}: {type(error).__name__}: {error}")
