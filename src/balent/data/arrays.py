"""Arrays from .npy and .npz files, checked before anything is allocated: the one reader of them.

Nothing is unpickled. A header must agree with the size of its file to the byte, so that a damaged one is an error and
not other numbers. An .npy is mapped, not read. An .npz is read whole: its checksums are of whole arrays, and arrays in
it need not lie where a processor can load them. Every file that cannot be read is a ValueError that names it.
"""

import ast
import contextlib
import io
import math
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo, is_zipfile

import numpy as np

from balent import checks

MAGIC = b"\x93NUMPY"
# By version: how the length of the header is written, and its encoding.
VERSIONS = {b"\1\0": ("<H", "latin1"), b"\2\0": ("<I", "latin1"), b"\3\0": ("<I", "utf-8")}
HEADER = 10_000  # bytes: numpy takes no longer ones either
AXES = 32  # numpy before version 2 knows no more
KINDS = "biufcSU"  # of numpy's types: numbers and text
PIECE = 1 << 24  # bytes read at a time
LARGE = 1 << 30  # bytes: what takes more memory than this …
RATIO = 100  # … may take at most so many times the bytes that it has on disk
# What Python, numpy and zipfile raise for bytes that are not theirs.
DAMAGE = (
    *(ValueError, TypeError, LookupError, OverflowError, EOFError, OSError, RuntimeError, SyntaxError, MemoryError),
    *(BadZipFile, zlib.error, struct.error),
)

Bytes = io.BufferedIOBase | IO[bytes]


@dataclass(frozen=True)
class Header:
    """What the beginning of an .npy says: what the array is, and at which byte it begins."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    offset: int

    @property
    def order(self) -> Any:
        return "F" if self.fortran else "C"

    @property
    def size(self) -> int:
        """Bytes of the array, in Python's numbers: those of numpy overflow."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Stored:
    """The array of an .npy file, read where it is looked at."""

    path: Path
    header: Header

    def whole(self) -> np.ndarray:
        h = self.header
        if h.size == 0:
            return np.empty(h.shape, h.dtype)
        return _aligned(np.memmap(self.path, h.dtype, "r", h.offset, h.shape, h.order))

    def rows(self, start: int, stop: int) -> np.ndarray:
        """The only rows that are mapped. Not for Fortran's order, where a row is spread over the file."""
        h = self.header
        row = h.size // h.shape[0]
        return _aligned(np.memmap(self.path, h.dtype, "r", h.offset + start * row, (stop - start, *h.shape[1:])))


def _aligned(array: np.ndarray) -> np.ndarray:
    """Itself, or a copy if its numbers do not lie where a processor can load them: after a header of odd length."""
    return array if array.flags.aligned else array.copy()


def read(path: Path, key: str | None = None) -> np.ndarray:
    """The array of an .npy or .npz, whichever the file is; `key` names the array in an .npz."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK" or path.suffix.lower() == ".npz"
    return npz(path, key) if zipped else npy(path)


def npy(path: Path) -> np.ndarray:
    """The array of an .npy, mapped."""
    return stored(path).whole()


def stored(path: Path) -> Stored:
    """The array of an .npy whose size is the one that its header says."""
    with path.open("rb") as file, _in_words(path, ".npy"):
        header = _header(file)
    _check(f"{path}", header, path.stat().st_size)
    return Stored(path, header)


def npz(path: Path, key: str | None = None) -> np.ndarray:
    """The array of that name in an .npz, or the only one."""
    with path.open("rb") as file, _archive(path, file) as archive:
        member = _member(path, archive, key)
        with _in_words(path, ".npz"):
            opened = archive.open(member)
        with opened:
            return _array(path, opened, member)


def _archive(path: Path, file: Bytes) -> ZipFile:
    with _in_words(path, ".npz"):
        if not is_zipfile(file):
            raise BadZipFile("it is not a zip archive, or it is truncated")
        return ZipFile(file)


def _member(path: Path, archive: ZipFile, key: str | None) -> ZipInfo:
    found = {m.filename.removesuffix(".npy"): m for m in archive.infolist() if m.filename.endswith(".npy")}
    if key is None and len(found) != 1:
        what = f"{', '.join(found)}; say which with --key" if found else "nothing that numpy saved"
        raise ValueError(f"{path} holds {what}")
    name = next(iter(found)) if key is None else key
    if name not in found:
        raise ValueError(
            f"{path} has no array {name!r}; {checks.nearest(name, found) if found else 'it holds nothing'}"
        )
    if found[name].compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(f"{path} holds an array {name!r} that is compressed in a way that numpy never uses")
    return found[name]


def _array(path: Path, file: Bytes, member: ZipInfo) -> np.ndarray:
    with _in_words(path, ".npz"):
        header = _header(file)
    where = f"{path}, array {member.filename.removesuffix('.npy')!r},"
    _check(where, header, member.file_size)
    check_memory(where, header.size, min(member.compress_size, path.stat().st_size))
    array = np.empty(header.shape, header.dtype, header.order)
    with _in_words(path, ".npz"):
        _fill(array, file)
    return array


def _fill(array: np.ndarray, file: Bytes) -> None:
    """All bytes of the array, and no more: zipfile compares the checksum when it reaches the end."""
    raw, at = array.reshape(-1, order="A").view(np.uint8), 0
    while piece := file.read(PIECE):
        raw[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    if at != len(raw):
        raise EOFError(f"{len(raw):,} bytes expected, {at:,} there")


def _header(file: Bytes) -> Header:
    start = file.read(8)
    if start[:6] != MAGIC or start[6:] not in VERSIONS:
        raise ValueError(f"it begins with {start!r}")
    form, encoding = VERSIONS[start[6:]]
    (length,) = struct.unpack(form, file.read(struct.calcsize(form)))
    if length > HEADER:
        raise ValueError(f"its header has {length:,} bytes, more than {HEADER:,}")
    text = file.read(length)
    if len(text) < length:
        raise ValueError("its header is cut off")
    said = _literal(text.decode(encoding))
    if not isinstance(said, dict) or set(said) != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header does not say descr, fortran_order and shape")
    if not isinstance(said["fortran_order"], bool):
        raise ValueError("its header does not say whether it is in Fortran's order")
    return Header(_shape(said["shape"]), _type(said["descr"]), said["fortran_order"], file.tell())


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(re.sub(r"(\d)L\b", r"\1", text).strip())  # 10L is a number of Python 2
    except DAMAGE:
        raise ValueError(f"its header is damaged: {text[:80]!r}") from None


def _shape(said: Any) -> tuple[int, ...]:
    numbers = isinstance(said, tuple) and all(type(n) is int and n >= 0 for n in said)
    if not numbers or len(said) > AXES or math.prod(max(n, 1) for n in said) >= 1 << 58:
        raise ValueError(f"its header says the shape {str(said)[:80]}")
    return said


def _type(said: Any) -> np.dtype:
    return np.dtype(said) if isinstance(said, str) else np.dtype(np.void)  # records have a list


def _check(where: str, header: Header, came: int) -> None:
    if header.dtype.hasobject:
        raise ValueError(f"{where} holds Python objects, which are never unpickled; save numbers")
    if header.dtype.kind not in KINDS or header.dtype.itemsize == 0:
        raise ValueError(f"{where} must hold an array of numbers, but holds {header.dtype}")
    expected = header.offset + header.size
    if came != expected:
        what = "truncated" if came < expected else "damaged"
        raise ValueError(f"{where} is {what}: {expected:,} bytes expected, {came:,} there; copy it again")


def check_memory(where: str, memory: int, disk: int) -> None:
    """A small file that asks for much memory is refused before it gets any."""
    if memory > LARGE and memory > RATIO * disk:
        raise ValueError(
            f"{where} says that it needs {memory:,} bytes of memory, more than {RATIO} times its {disk:,} bytes on "
            "disk, and is refused; if it is right, save it uncompressed, as .npy"
        )


@contextlib.contextmanager
def _in_words(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        raise ValueError(f"{path} is not a readable {kind} file: {str(error) or type(error).__name__}") from None
