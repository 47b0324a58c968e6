"""Probabilities from files, a block at a time: .npy, .npz, and .csv or .parquet in long form.

Nothing is unpickled. A .npy is mapped one window at a time, so that memory does not grow with the
file; the other formats are read whole.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile
from zlib import error as BadCompression

import numpy as np

from balent import checks

COLUMNS = ("point", "draw", "class", "probability")
BLOCK = 1 << 22  # elements at a time


@dataclass(frozen=True)
class Source:
    """An array [pool, draws, classes] that is read in windows; names are what the file calls its points."""

    shape: tuple[int, ...]
    window: Callable[[int, int], np.ndarray]
    names: np.ndarray | None = None

    @property
    def pool(self) -> int:
        return self.shape[0]

    def name(self, position: int) -> Any:
        return position if self.names is None else self.names[position]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Positions of their first points, and blocks."""
        size = max(1, BLOCK // max(1, int(np.prod(self.shape[1:]))))
        for start in range(0, self.pool, size):
            yield start, self.window(start, min(start + size, self.pool))


def read(path: Path, key: str | None = None) -> Source:
    """The draws in a file, by its suffix; `key` names the array in an .npz."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    reader = checks.lookup(READERS, path.suffix.lower(), "reader for files ending in")
    return reader(path, key)


def _npy(path: Path, key: str | None) -> Source:
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = header(file)
        except ValueError as error:
            raise ValueError(f"{path} is not a readable .npy file: {error}") from None
        offset = file.tell()
    if dtype.hasobject:
        raise ValueError(f"{path} holds Python objects, which are never unpickled; save floating-point numbers")
    expected, came = offset + dtype.itemsize * int(np.prod(shape)), path.stat().st_size
    if came < expected:
        raise ValueError(f"{path} is truncated: {expected:,} bytes expected, {came:,} there; copy it again")
    if len(shape) != 3 or fortran or 0 in shape:  # rare: mapped whole; checks speak of its shape
        return _whole(np.load(path, mmap_mode="r", allow_pickle=False) if 0 not in shape else np.empty(shape, dtype))
    row = dtype.itemsize * shape[1] * shape[2]

    def window(start: int, stop: int) -> np.ndarray:
        return np.memmap(path, dtype, "r", offset + start * row, (stop - start, *shape[1:]))

    return Source(shape, window)


def _npz(path: Path, key: str | None) -> Source:
    if not is_zipfile(path):  # numpy would take it for a pickle, and say how to load that
        raise ValueError(f"{path} is not a readable .npz file: it is no zip archive, or a truncated one")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if key is None and len(arrays.files) != 1:
                raise ValueError(f"{path} holds {', '.join(arrays.files) or 'nothing'}; say which with --key")
            name = key or arrays.files[0]
            if name not in arrays.files:
                raise ValueError(f"{path} has no array {name!r}; {checks.nearest(name, arrays.files)}")
            try:
                array = arrays[name]
            except ValueError as error:  # Python objects, or no header
                raise ValueError(f"{path} holds an array {name!r} that cannot be read: {error}") from None
            return _whole(array)
    except (BadZipFile, BadCompression, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a readable .npz file: {error}") from None


def _whole(array: np.ndarray, names: np.ndarray | None = None) -> Source:
    checks.draws(array)
    return Source(array.shape, lambda start, stop: array[start:stop], names)


def _csv(path: Path, key: str | None) -> Source:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        try:
            header = [name.strip() for name in next(rows, [])]
            _check_columns(path, header)
            at = [header.index(name) for name in COLUMNS]
            cells = [[row[i] for i in at] for row in rows if row]
        except IndexError:
            raise ValueError(f"{path} has a row of fewer cells than its header, near line {rows.line_num}") from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} is not a readable .csv file: {error}") from None
    points, draws, classes, values = zip(*cells, strict=True) if cells else ((), (), (), ())
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path} has a probability that is no number: {error}") from None
    return _from_long(path, np.array(points), np.array(draws), np.array(classes), numbers)


def arrow() -> tuple[type[Exception], Any]:
    """What pyarrow raises for a file that is none of its own, and its module for parquet."""
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ValueError("parquet files need pyarrow; install it with: pip install 'balent[parquet]'") from None
    return ArrowInvalid, parquet


def _parquet(path: Path, key: str | None) -> Source:
    invalid, parquet = arrow()
    try:
        table = parquet.read_table(path)
    except (invalid, OSError) as error:
        raise ValueError(f"{path} is not a readable parquet file: {error}") from None
    _check_columns(path, table.column_names)
    return _from_long(path, *(table[name].to_numpy() for name in COLUMNS))


def _check_columns(path: Path, came: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in came]
    if missing:
        raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, but lacks {', '.join(missing)}")


def _from_long(path: Path, points: np.ndarray, draws: np.ndarray, classes: np.ndarray, values: np.ndarray) -> Source:
    """One row for each point, draw and class, in any order; every combination exactly once."""
    labels, index = zip(*(_numbered(column) for column in (points, draws, classes)), strict=True)
    shape = tuple(len(names) for names in labels)
    flat = np.ravel_multi_index(index, shape) if len(values) else np.empty(0, np.int64)
    count = np.bincount(flat, minlength=int(np.prod(shape)))
    for wrong, what in ((count == 0, "is missing"), (count > 1, "occurs more than once")):
        if wrong.any():
            where = np.unravel_index(int(wrong.argmax()), shape)
            named = ", ".join(f"{n} {names[i]}" for n, names, i in zip(COLUMNS, labels, where, strict=False))
            raise ValueError(f"{path} must have one row for each point, draw and class, but {named} {what}")
    array = np.empty(shape)
    array.reshape(-1)[flat] = values
    return _whole(array, labels[0])


def _numbered(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Its different values, in order (numbers as numbers), and where each row has which."""
    try:
        as_numbers = column.astype(np.int64)
        column = as_numbers if (as_numbers.astype(column.dtype) == column).all() else column
    except (ValueError, OverflowError):
        pass  # names, not numbers: their own order serves
    names, index = np.unique(column, return_inverse=True)
    return names, index


READERS: dict[str, Callable[[Path, str | None], Source]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}
