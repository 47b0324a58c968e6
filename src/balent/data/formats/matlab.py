"""Arrays of numbers in MATLAB's files of version 5, which are all that SVHN needs of them.

A file is a header of 128 bytes, then elements: a type, a length, contents; compressed ones are
opened. Nothing else of the format is understood (cells, structs, objects, sparse arrays), so nothing else can happen.
"""

import mmap
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from balent.data.formats import limits

HEADER = 128
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
NUMERIC = range(6, 16)  # classes of arrays that hold real numbers
COMPLEX = 0x800
MOST_AXES = 32  # SVHN has 4


def arrays(path: Path, names: Collection[str]) -> dict[str, np.ndarray]:
    """The arrays of these names, with MATLAB's axes. A damaged file is a ValueError."""
    with path.open("rb") as file:
        if path.stat().st_size <= HEADER:
            raise ValueError(f"a MATLAB file is longer than its header of {HEADER} bytes")
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    order = _byte_order(bytes(content[:HEADER]))
    found: dict[str, np.ndarray] = {}
    for matrix in _matrices(content[HEADER:], order):
        found.update(_matrix(matrix, order, names))
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"it has no array {missing[0]!r} of numbers")
    return found


def _byte_order(header: bytes) -> str:
    if header.startswith(b"MATLAB 7.3"):
        raise ValueError("it is of version 7.3 (HDF5), and version 5 was published; in MATLAB: save(..., '-v7')")
    orders = {b"IM": "<", b"MI": ">"}
    if header[126:128] not in orders:
        raise ValueError("it does not begin as a MATLAB file of version 5")
    return orders[header[126:128]]


def _matrices(content: memoryview, order: str) -> Iterator[memoryview]:
    """The contents of all arrays, compressed or not; together they are as large as a file of this size may be."""
    unpacked = 0
    for number, (kind, body) in enumerate(_elements(content, order)):
        if number >= limits.ELEMENTS:
            raise ValueError(f"it has more than {limits.ELEMENTS:,} elements, and two arrays were published")
        if kind == COMPRESSED:
            body = _opened(body, order, limits.most(len(content)) - unpacked)
            unpacked += len(body)
        if kind in (MATRIX, COMPRESSED):
            yield body


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Type and contents of each element. Those of up to four bytes have their length beside their type."""
    at = 0
    while at < len(content):
        if len(content) - at < 8:
            raise ValueError(f"it ends within an element, after {at:,} bytes")
        kind, size = (int(word) for word in np.frombuffer(content[at : at + 8], f"{order}u4"))
        if kind >> 16:
            if kind >> 16 > 4:
                raise ValueError(
                    f"a small element has up to 4 bytes, but one declares {kind >> 16}, after {at:,} bytes"
                )
            yield kind & 0xFFFF, content[at + 4 : at + 4 + (kind >> 16)]
            at += 8
            continue
        start = at + 8
        if start + size > len(content):
            raise ValueError(f"it ends early: an element has {size:,} bytes, but {len(content) - start:,} are left")
        yield kind, content[start : start + size]
        at = start + size + (0 if kind == COMPRESSED else -size % 8)


def _opened(body: memoryview, order: str, most: int) -> memoryview:
    """The contents of the array that was compressed: as many bytes as declared, and no more than allowed."""
    stream = zlib.decompressobj()
    try:
        kind, size = (int(word) for word in np.frombuffer(stream.decompress(body, 8), f"{order}u4"))
        if kind != MATRIX or size > most:
            raise ValueError(f"it should be an array of at most {most:,} bytes, but is of type {kind} with {size:,}")
        content = stream.decompress(stream.unconsumed_tail, size) if size else b""
        stream.decompress(stream.unconsumed_tail, 1)  # to the end, where the checksum is compared
    except (zlib.error, ValueError) as error:
        raise ValueError(f"a compressed array cannot be opened: {error}") from None
    if not stream.eof or len(content) < size:
        raise ValueError("a compressed array is shorter or longer than its header declares")
    return memoryview(content)


def _matrix(body: memoryview, order: str, names: Collection[str]) -> dict[str, np.ndarray]:
    parts = _elements(body, order)
    try:
        flags = _whole_numbers(*next(parts), order)[0]
        shape = _whole_numbers(*next(parts), order)
        name = bytes(next(parts)[1]).decode("ascii")
        if name not in names:
            return {}
        if flags & 0xFF not in NUMERIC or flags & COMPLEX:
            raise ValueError(f"array {name!r} does not hold real numbers")
        values = _numbers(*next(parts), order)
    except (StopIteration, IndexError, UnicodeDecodeError):
        raise ValueError("an array ends early") from None
    if min(shape, default=-1) < 0 or len(values) != np.prod(shape, dtype=object):
        raise ValueError(f"array {name!r} should have shape {shape}, but has {len(values):,} numbers")
    return {name: values.reshape(shape[::-1]).T}  # MATLAB's first axis runs fastest


def _whole_numbers(kind: int, body: memoryview, order: str) -> list[int]:
    numbers = _numbers(kind, body, order)
    if numbers.dtype.kind == "f":
        raise ValueError("the shape of an array is written in floating-point numbers")
    if len(numbers) > MOST_AXES:
        raise ValueError(f"an array has {len(numbers):,} axes, but at most {MOST_AXES} are read")
    return [int(number) for number in numbers]


def _numbers(kind: int, body: memoryview, order: str) -> np.ndarray:
    if kind not in NUMBERS:
        raise ValueError(f"numbers of type {kind} are unknown")
    return np.frombuffer(body, np.dtype(f"{order}{NUMBERS[kind]}"))
