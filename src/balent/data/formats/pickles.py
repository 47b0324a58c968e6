"""Pickles of byte arrays and lists, read without running them.

A pickle is a program: it may name any function and have it called. Here `pickletools` takes it apart, and the few
instructions that arrays, lists and text need are carried out by this file. The few names that numpy's arrays need stand
for what is remembered of them; any other name or instruction is refused. Nothing is looked into deeper than the lists
of one dict, so that a list which contains itself does no harm, and nothing is copied more than once.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class Refused(ValueError):
    """A pickle asks for something that no file of arrays needs."""


@dataclass
class _Kind:
    """In place of numpy.dtype: which kind of number it is."""

    code: str


@dataclass
class _Array:
    """In place of numpy.ndarray: its bytes, once they are there."""

    values: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))


def _values(content: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(kind, _Kind) or kind.code not in ("u1", "|u1", "uint8"):
        raise Refused(f"arrays must be of bytes, but one is of {getattr(kind, 'code', 'nothing')!r}")
    if not isinstance(content, bytes | bytearray) or not isinstance(shape, tuple):
        raise ValueError("an array has no bytes, or no shape")
    return np.frombuffer(content, np.uint8).reshape(shape, order="F" if order in ("F", True) else "C")


@dataclass
class _Machine:
    """The stack of a pickle, the heights at which its marks stand, and what it remembers by number."""

    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)  # by number: a list would be as long as the largest of them
    encoded: dict[str, bytes] = field(default_factory=dict)  # of each text once

    def taken(self, count: int) -> list[Any]:
        """The last items, off the stack."""
        start = len(self.stack) - count
        if start < (self.marks[-1] if self.marks else 0):
            raise ValueError("it takes more from its stack than is there")
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def marked(self) -> list[Any]:
        """The items above the last mark, off the stack."""
        items = self.taken(len(self.stack) - self.marks[-1])
        self.marks.pop()
        return items

    def append(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError("it appends to what is not a list")
        self.stack[-1].extend(items)

    def assign(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not dict:
            raise ValueError("it sets items of what is not a dict")
        self.stack[-1].update(_pairs(items))

    def name(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise ValueError("it names something by what is not text")
        if (module, name) not in NAMES:
            asked = f"{module}.{name}"[:100]
            raise Refused(f"it asks for {asked}, which a file of images does not need: nothing of it was run")
        self.stack.append(NAMES[module, name])

    def call(self) -> None:
        """One of the functions below: a pickle has no way to any other."""
        function, arguments = self.taken(2)
        if not callable(function) or not isinstance(arguments, tuple):
            raise ValueError("it calls what is not a function")
        self.stack.append(function(self, *arguments))

    def build(self) -> None:
        """An array gets its contents. Of a kind of number this would be order and alignment: bytes have none."""
        (state,) = self.taken(1)
        built = self.stack[-1]
        if isinstance(built, _Array):
            _, shape, kind, fortran, content = state
            built.values = _values(content, kind, shape, fortran)
        elif not isinstance(built, _Kind):
            raise ValueError("it builds what is not an array")


def _pairs(items: list[Any]) -> dict[str | bytes, Any]:
    keys, values = items[::2], items[1::2]
    if not all(isinstance(key, str | bytes) for key in keys):
        raise ValueError("a key of its dict is not text")
    return dict(zip(keys, values, strict=True))


def _kind(machine: _Machine, code: Any, *_: Any) -> _Kind:
    if not isinstance(code, str | bytes):
        raise ValueError("a kind of number is named by what is not text")
    return _Kind((code.decode("latin1") if isinstance(code, bytes) else code)[:20])


def _empty(machine: _Machine, *_: Any) -> _Array:
    return _Array()


def _filled(machine: _Machine, content: Any, kind: Any, shape: Any, order: Any) -> _Array:
    return _Array(_values(content, kind, shape, order))


def _encoded(machine: _Machine, text: Any, *_: Any) -> bytes:
    """How older protocols write bytes."""
    if not isinstance(text, str):
        raise ValueError("it encodes what is not text")
    if text not in machine.encoded:
        machine.encoded[text] = text.encode("latin1")
    return machine.encoded[text]


NAMES: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _empty,
    ("numpy", "dtype"): _kind,
    ("numpy.core.multiarray", "_reconstruct"): _empty,
    ("numpy._core.multiarray", "_reconstruct"): _empty,
    ("numpy.core.numeric", "_frombuffer"): _filled,
    ("numpy._core.numeric", "_frombuffer"): _filled,
    ("_codecs", "encode"): _encoded,
}
NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT")
TEXTS = ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
BYTES = ("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8")
Operation = Callable[[_Machine, Any], Any]  # a machine, and the instruction's argument
OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP", "READONLY_BUFFER"), lambda m, _: None),
    **dict.fromkeys((*NUMBERS, *TEXTS, *BYTES), lambda m, value: m.stack.append(value)),
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING"), lambda m, text: m.stack.append(text.encode("latin1"))),
    "NONE": lambda m, _: m.stack.append(None),
    "NEWTRUE": lambda m, _: m.stack.append(True),
    "NEWFALSE": lambda m, _: m.stack.append(False),
    "EMPTY_LIST": lambda m, _: m.stack.append([]),
    "EMPTY_DICT": lambda m, _: m.stack.append({}),
    "EMPTY_TUPLE": lambda m, _: m.stack.append(()),
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.marked())),
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.taken(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.taken(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.taken(3))),
    "LIST": lambda m, _: m.stack.append(m.marked()),
    "DICT": lambda m, _: m.stack.append(_pairs(m.marked())),
    "APPEND": lambda m, _: m.append(m.taken(1)),
    "APPENDS": lambda m, _: m.append(m.marked()),
    "SETITEM": lambda m, _: m.assign(m.taken(2)),
    "SETITEMS": lambda m, _: m.assign(m.marked()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda m, i: m.memo.update({i: m.stack[-1]})),
    "MEMOIZE": lambda m, _: m.memo.update({len(m.memo): m.stack[-1]}),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, i: m.stack.append(m.memo[i])),
    "GLOBAL": lambda m, both: m.name(*both.split(" ", 1)),
    "STACK_GLOBAL": lambda m, _: m.name(*m.taken(2)),
    "REDUCE": lambda m, _: m.call(),
    "BUILD": lambda m, _: m.build(),
}


def read(content: bytes) -> dict[str, Any]:
    """The dict in a pickle, its arrays as numpy arrays of bytes, its text and that of its lists as str."""
    machine = _Machine()
    try:
        for instruction, argument, _ in pickletools.genops(content):
            if instruction.name not in OPERATIONS:
                raise Refused(f"it asks for {instruction.name}, which a file of images does not need: it was not run")
            OPERATIONS[instruction.name](machine, argument)
        (found,) = machine.taken(1)
    except Refused:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError(f"it cannot be read as a pickle: {type(error).__name__}: {str(error)[:200]}") from None
    if type(found) is not dict:
        raise ValueError(f"it should hold a dict, but holds {type(found).__name__.lstrip('_')}")
    texts: dict[bytes, str] = {}  # of equal bytes there is one text, however often they occur
    return {_text(key, texts): _plain(value, texts) for key, value in found.items()}


def _plain(value: Any, texts: dict[bytes, str]) -> Any:
    if isinstance(value, _Array):
        return value.values
    if isinstance(value, list | tuple):
        return [_text(item, texts) for item in value]
    return _text(value, texts)


def _text(value: Any, texts: dict[bytes, str]) -> Any:
    if not isinstance(value, bytes):
        return value
    if value not in texts:
        texts[value] = value.decode("latin1")
    return texts[value]
