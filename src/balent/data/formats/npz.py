"""Arrays in .npz and .npy files. Nothing is unpickled, and what a header declares is compared with what is there.

numpy takes the memory that a header asks for before it reads: 100 bytes can ask for terabytes.
"""

import math
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO

import numpy as np

from balent.data.formats import limits


def names(path: Path) -> list[str]:
    """What the arrays of an .npz are called."""
    with _opened(path) as archive:
        return list(_members(archive))


def read(path: Path, wanted: Collection[str]) -> dict[str, np.ndarray]:
    """Those arrays of an .npz that are there. ValueError names the file and says what is wrong with it."""
    with _opened(path) as archive:
        found = {name: info for name, info in _members(archive).items() if name in wanted}
        try:
            total = sum(info.file_size for info in found.values())
            limits.check(total, path.stat().st_size, "save it with numpy.savez, which does not compress")
            return {name: _array(archive, info) for name, info in found.items()}
        except MemoryError:
            raise
        except Exception as error:  # zipfile and its decompressors raise a dozen kinds over a damaged file
            raise unreadable(path, error) from None


def mapped(path: Path) -> np.ndarray:
    """The array of an .npy, mapped into memory; writing to it does not change the file."""
    with path.open("rb") as file:
        try:
            _check_header(file, path.stat().st_size)
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as an .npy: {error}") from None
    return np.load(path, mmap_mode="c", allow_pickle=False)


def unreadable(path: Path, error: Exception) -> ValueError:
    why = error if isinstance(error, ValueError | zipfile.BadZipFile) else f"{type(error).__name__}: {error}"
    return ValueError(f"{path} cannot be read as an .npz of arrays: {why}")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:  # as above: struct.error, NotImplementedError, UnicodeDecodeError, …
            raise unreadable(path, error) from None
        yield archive


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename.removesuffix(".npy"): info for info in archive.infolist()}


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as file:
        _check_header(file, info.file_size)
    with archive.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _check_header(file: IO[bytes] | BufferedIOBase, size: int) -> None:
    """An array of numbers or text that fills the file to its end."""
    try:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
    except Exception as error:  # numpy parses it as Python: TokenError, SyntaxError, TypeError, …
        raise ValueError(f"an array has no readable header: {type(error).__name__}: {error}") from None
    if dtype.hasobject:
        raise ValueError("an array holds Python objects, which are never unpickled; save numbers")
    expected, came = dtype.itemsize * math.prod(shape), size - file.tell()
    if min(shape, default=0) < 0 or expected != came:
        raise ValueError(f"an array of shape {shape} and type {dtype} has {expected:,} bytes, but {came:,} are there")
