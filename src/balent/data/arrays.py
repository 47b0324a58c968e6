"""Reads arrays from .npy and .npz files. Files are checked before memory is allocated.

Nothing is unpickled. The size that a header declares must equal the size of the file to the byte, so a damaged file is
an error and never gives other numbers. An .npy file is mapped into memory. An array of an .npz file is read whole,
because its checksum covers the whole array. A file that cannot be read is a ValueError that names the file.
"""

import ast
import contextlib
import io
import math
import re
import struct
import threading
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo, is_zipfile

import numpy as np

from balent.lookup import nearest

MAGIC = b"\x93NUMPY"
# By version: how the length of the header is written, and its encoding.
VERSIONS = {b"\1\0": ("<H", "latin1"), b"\2\0": ("<I", "latin1"), b"\3\0": ("<I", "utf-8")}
HEADER = 10_000  # bytes: numpy refuses longer headers too
AXES = 32  # the most that numpy before version 2 supports
KINDS = "biufcSU"  # of numpy's types: numbers and text
PIECE = 1 << 24  # bytes read at a time
LARGE = 1 << 30  # bytes: an array that takes more memory than this …
RATIO = 100  # … may take at most this many times its bytes on disk
# What Python, numpy and zipfile raise for damaged bytes.
DAMAGE = (
    *(ValueError, TypeError, LookupError, OverflowError, EOFError, OSError, RuntimeError, SyntaxError, MemoryError),
    *(BadZipFile, zlib.error, struct.error),
)

# CPython 3.11 counts the depth of syntax trees per interpreter, not per thread: two threads at once may fail to parse.
PARSING = threading.Lock()

Bytes = io.BufferedIOBase | IO[bytes]


@dataclass(frozen=True)
class Header:
    """The header of an .npy file: shape and type of the array, and the byte at which it begins."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    offset: int

    @property
    def order(self) -> Any:
        return "F" if self.fortran else "C"

    @property
    def size(self) -> int:
        """Bytes of the array, as a Python integer: numpy's integers overflow."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Stored:
    """The array of an .npy file. Only the parts that are used are read from disk."""

    path: Path
    header: Header

    def whole(self, mode: Literal["r", "c"] = "r") -> np.ndarray:
        """Mapped: "r" cannot be written to; "c" can, without a change to the file."""
        h = self.header
        if h.size == 0:
            return np.empty(h.shape, h.dtype)
        return _aligned(np.memmap(self.path, h.dtype, mode, h.offset, h.shape, h.order))

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Maps these rows only. Not for Fortran order, where a row is spread over the whole file."""
        h = self.header
        row = h.size // h.shape[0]
        return _aligned(np.memmap(self.path, h.dtype, "r", h.offset + start * row, (stop - start, *h.shape[1:])))


def _aligned(array: np.ndarray) -> np.ndarray:
    """The array, or a copy if it is not aligned in memory, as after a header of odd length."""
    return array if array.flags.aligned else array.copy()


def read(path: Path, key: str | None = None) -> np.ndarray:
    """The array of an .npy or .npz file; `key` names the array in an .npz."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK" or path.suffix.lower() == ".npz"
    return npz(path, key) if zipped else npy(path)


def npy(path: Path, mode: Literal["r", "c"] = "r") -> np.ndarray:
    """The array of an .npy, mapped."""
    return stored(path).whole(mode)


def stored(path: Path) -> Stored:
    """The array of an .npy, if the file has the size that its header declares."""
    with path.open("rb") as file:
        return Stored(path, header_of(path, file, path.stat().st_size))


def header_of(where: Path | str, file: Bytes, size: int) -> Header:
    """The header of an .npy, if a file of this size can hold what it declares, and nothing else."""
    with _in_words(where, ".npy"):
        header = _header(file)
    _check(f"{where}", header, size)
    return header


def of_bytes(where: str, content: bytes) -> np.ndarray:
    """The array of an .npy whose bytes are known; it cannot be written to."""
    file = io.BytesIO(content)
    h = header_of(where, file, len(content))
    return _aligned(np.frombuffer(content, h.dtype, offset=h.offset).reshape(h.shape, order=h.order))


def npz(path: Path, key: str | None = None) -> np.ndarray:
    """The array of that name in an .npz, or the only one."""
    with path.open("rb") as file, _archive(path, file) as archive:
        return _read(path, archive, _member(path, archive, key))


def several(path: Path, wanted: Collection[str]) -> dict[str, np.ndarray]:
    """The arrays of an .npz that have these names; names that it does not have are left out."""
    with path.open("rb") as file, _archive(path, file) as archive:
        found = {name: _stored(path, name, member) for name, member in _members(archive).items() if name in wanted}
        check_memory(str(path), sum(member.file_size for member in found.values()), path.stat().st_size)
        return {name: _read(path, archive, member) for name, member in found.items()}


def names(path: Path) -> list[str]:
    """The names of the arrays in an .npz."""
    with path.open("rb") as file, _archive(path, file) as archive:
        return list(_members(archive))


def _read(path: Path, archive: ZipFile, member: ZipInfo) -> np.ndarray:
    with _in_words(path, ".npz"):
        opened = archive.open(member)
    with opened:
        return _array(path, opened, member)


def _archive(path: Path, file: Bytes) -> ZipFile:
    with _in_words(path, ".npz"):
        if not is_zipfile(file):
            raise BadZipFile("it is not a zip archive, or it is truncated")
        return ZipFile(file)


def _members(archive: ZipFile) -> dict[str, ZipInfo]:
    return {m.filename.removesuffix(".npy"): m for m in archive.infolist() if m.filename.endswith(".npy")}


def _member(path: Path, archive: ZipFile, key: str | None) -> ZipInfo:
    found = _members(archive)
    if key is None and len(found) != 1:
        what = f"{len(found)} arrays ({', '.join(found)}); choose one with --column" if found else "no array"
        raise ValueError(f"{path} holds {what}")
    name = next(iter(found)) if key is None else key
    if name not in found:
        raise ValueError(f"{path} has no array {name!r}; {nearest(name, found) if found else 'it is empty'}")
    return _stored(path, name, found[name])


def _stored(path: Path, name: str, member: ZipInfo) -> ZipInfo:
    """The member itself, if numpy can have written it."""
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(
            f"{path} holds the array {name!r} with a compression that numpy never uses; save it again with numpy.savez"
        )
    return member


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
    """Reads all bytes of the array and no more; zipfile checks the checksum at the end."""
    raw, at = array.reshape(-1, order="A").view(np.uint8), 0
    while piece := file.read(PIECE):
        raw[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    if at != len(raw):
        raise EOFError(f"{len(raw):,} bytes were expected, but it has {at:,}")


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
    fields = _literal(text.decode(encoding))
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header must have the fields descr, fortran_order and shape")
    if not isinstance(fields["fortran_order"], bool):
        raise ValueError("fortran_order in its header must be True or False")
    return Header(_shape(fields["shape"]), _type(fields["descr"]), fields["fortran_order"], file.tell())


def _literal(text: str) -> Any:
    try:
        with PARSING:
            return ast.literal_eval(re.sub(r"(\d)L\b", r"\1", text).strip())  # 10L is a number of Python 2
    except DAMAGE:
        raise ValueError(f"its header is damaged: {text[:80]!r}") from None


def _shape(said: Any) -> tuple[int, ...]:
    numbers = isinstance(said, tuple) and all(type(n) is int and n >= 0 for n in said)
    if not numbers or len(said) > AXES or math.prod(max(n, 1) for n in said) >= 1 << 58:
        raise ValueError(f"its header declares the shape {str(said)[:80]}")
    return said


def _type(said: object) -> np.dtype:
    return np.dtype(said) if isinstance(said, str) else np.dtype(np.void)  # records have a list


def _check(where: str, header: Header, came: int) -> None:
    if header.dtype.hasobject:
        raise ValueError(f"{where} holds Python objects, which are never unpickled; save numbers")
    if header.dtype.kind not in KINDS or header.dtype.itemsize == 0:
        raise ValueError(f"{where} must hold an array of numbers, but holds {header.dtype}")
    expected = header.offset + header.size
    if came != expected:
        what = "truncated" if came < expected else "damaged"
        raise ValueError(f"{where} is {what}: {expected:,} bytes were expected, but it has {came:,}; copy it again")


def check_memory(where: str, memory: int, disk: int) -> None:
    """Refuses a small file that needs much memory, before any is allocated."""
    if memory > LARGE and memory > RATIO * disk:
        raise ValueError(
            f"{where} needs {memory:,} bytes of memory, more than {RATIO} times its {disk:,} bytes on disk, and is "
            "refused because it may be damaged; if it is correct, save it uncompressed (numpy.save or numpy.savez)"
        )


@contextlib.contextmanager
def _in_words(path: Path | str, kind: str) -> Iterator[None]:
    try:
        yield
    except ConnectionError:  # of a file elsewhere, which may be sound
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} is not a readable {kind} file: {str(error) or type(error).__name__}") from None
