"""Pickles of byte arrays and lists, read without calling anything that they name.

A pickle is a program: it may name any function and have it called. Here the few names that numpy's
arrays need stand for objects of this file, which only remember what they are given; any other name is refused.
"""

import io
import pickle
from typing import Any

import numpy as np


class Refused(ValueError):
    """A pickle asks for something that no file of arrays needs."""


class _Kind:
    """In place of numpy.dtype: which kind of number it is."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else str(code)

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment: bytes have none."""


class _Array:
    """In place of numpy.ndarray: its bytes, once they are there."""

    def __init__(self, *_: Any) -> None:
        self.values = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = state
        self.values = _values(content, kind, shape, "F" if fortran else "C")


def _values(content: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(kind, _Kind) or kind.code not in ("u1", "|u1", "uint8"):
        raise Refused(f"arrays must be of bytes, but one is of {getattr(kind, 'code', kind)!r}")
    return np.frombuffer(content, np.uint8).reshape(
        tuple(int(size) for size in shape), order="F" if order == "F" else "C"
    )


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.values = _values(content, kind, shape, order)
    return array


def _encoded(text: Any, encoding: Any) -> bytes:
    """How older protocols write bytes."""
    return str(text).encode("latin1")


STAND_INS = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _encoded,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in STAND_INS:
            raise Refused(f"it asks for {module}.{name}, which a file of images does not need: nothing of it was run")
        return STAND_INS[module, name]


def read(content: bytes) -> dict[str, Any]:
    """The dict in a pickle, its arrays as numpy arrays of bytes, its text as str."""
    try:
        found = _Reader(io.BytesIO(content), encoding="bytes").load()
    except Refused:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"it cannot be read as a pickle: {type(error).__name__}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"it should hold a dict, but holds {type(found).__name__}")
    return {_text(key): _plain(value) for key, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.values
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _text(value) if isinstance(value, bytes) else value


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
