"""Probabilities from files, a block at a time: .npy, .npz, and .csv or .parquet in long form.

Nothing is unpickled. A .npy is mapped one window at a time, so that memory does not grow with the
file; the other formats are read whole.
"""

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from balent import checks
from balent.data import arrays
from balent.data.cells import unescaped
from balent.data.formats.parquet import arrow
from balent.lookup import lookup

COLUMNS = ("point", "draw", "class", "probability")
ROW = 8 * len(COLUMNS)  # bytes that a row of a parquet file takes at least
LARGEST = (1 << 63) - 1  # combinations of points, draws and classes that can be numbered
WHOLE = 1 << 53  # below this, whole numbers in floating point are exact
DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,999}")


@dataclass(frozen=True)
class Table:
    """An array [pool, draws, classes] that is read in windows of points; `names` are the file's names of the points."""

    shape: tuple[int, ...]
    window: Callable[[int, int], np.ndarray]
    names: Sequence[Any] | np.ndarray | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def name(self, position: int) -> Any:
        return position if self.names is None else self.names[position]

    def named(self, positions: Any) -> list[Any]:
        """What the file calls these points."""
        return [self.name(position) for position in positions.tolist()]


def read(path: Path, key: str | None = None) -> Table:
    """The draws in a file, by its suffix; `key` names the array in an .npz."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    reader = lookup(READERS, path.suffix.lower(), "reader for files ending in")
    return reader(path, key)


def _npy(path: Path, key: str | None) -> Table:
    found = arrays.stored(path)
    shape = found.header.shape
    if len(shape) != 3 or found.header.fortran or 0 in shape:  # rare: mapped whole; checks report its shape
        return _whole(found.whole())
    checks.draws(found.rows(0, 1))
    return Table(shape, found.rows)


def _npz(path: Path, key: str | None) -> Table:
    return _whole(arrays.npz(path, key))


def _whole(array: np.ndarray, names: Sequence[Any] | np.ndarray | None = None) -> Table:
    checks.draws(array)
    return Table(array.shape, lambda start, stop: array[start:stop], names)


def _csv(path: Path, key: str | None) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        try:
            header = [name.strip() for name in next(rows, [])]
            _check_columns(path, header)
            at = [header.index(name) for name in COLUMNS]
            cells = [[row[i] for i in at] for row in rows if row]
        except IndexError:
            raise ValueError(f"{path} has a row with fewer cells than its header, near line {rows.line_num}") from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} is not a readable .csv file: {error}") from None
    *named, values = zip(*cells, strict=True) if cells else ((), (), (), ())
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path} must have numbers in the column probability: {error}") from None
    return _from_long(path, [_named([unescaped(cell) for cell in column]) for column in named], numbers)


def _parquet(path: Path, key: str | None) -> Table:
    invalid, parquet = arrow()
    try:
        data = parquet.ParquetDataset(path)
        rows, disk = sum(f.metadata.num_rows for f in data.fragments), sum(Path(f).stat().st_size for f in data.files)
        arrays.check_memory(str(path), rows * ROW, disk)
        _check_columns(path, data.schema.names)
        table = data.read(columns=list(COLUMNS))
        *named, values = (_column(path, name, table[name]) for name in COLUMNS)
    except (invalid, OSError) as error:
        raise ValueError(f"{path} is not a readable parquet file: {error}") from None
    if values.dtype.kind not in "fiu":
        raise ValueError(f"{path} must have numbers in the column probability, but has text")
    return _from_long(
        path, [_numbered(path, c) if c.dtype.kind in "fiu" else _named(c.tolist()) for c in named], values
    )


def _column(path: Path, name: str, column: Any) -> np.ndarray:
    """Numbers or text, in every row."""
    from pyarrow import float64, int8, types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_boolean(column.type) or types.is_decimal(column.type):
        column = column.cast(int8() if types.is_boolean(column.type) else float64())
    text = types.is_string(column.type) or types.is_large_string(column.type)
    if not (text or types.is_integer(column.type) or types.is_floating(column.type)):
        raise ValueError(f"{path} must have numbers or names in the column {name}, but has {column.type}")
    if column.null_count:
        raise ValueError(f"{path} must have a value in every row, but the column {name} has {column.null_count} empty")
    return column.to_numpy()


def _check_columns(path: Path, came: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in came]
    if missing:
        raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, but lacks {', '.join(missing)}")
    twice = [name for name in COLUMNS if list(came).count(name) > 1]
    if twice:
        raise ValueError(f"{path} must have one column {twice[0]}, but has {list(came).count(twice[0])}")


Numbered = tuple[Sequence[Any] | np.ndarray, np.ndarray]  # different values in order, and which of them each row has


def _from_long(path: Path, columns: Sequence[Numbered], values: np.ndarray) -> Table:
    """One row for each point, draw and class, in any order; every combination exactly once."""
    labels, index = zip(*columns, strict=True)
    shape = tuple(len(names) for names in labels)
    if len(values) == 0:
        return _whole(np.empty(shape))
    complete = len(values) == math.prod(shape)  # else nothing of that size may be allocated
    flat = np.ravel_multi_index(index, shape) if complete else index[0]
    if not complete or np.bincount(flat).max() > 1:
        raise _incomplete(path, labels, index)
    array = np.empty(shape)
    array.reshape(-1)[flat] = values
    return _whole(array, labels[0])


def _incomplete(path: Path, labels: Sequence[Any], index: Sequence[np.ndarray]) -> ValueError:
    """Names a combination that is missing or there twice; needs memory for the rows, not for all combinations."""
    shape = [len(names) for names in labels]
    said = f"{path} must have one row for each point, draw and class, but"
    counts = f"{len(index[0]):,} rows for {shape[0]:,} points × {shape[1]:,} draws × {shape[2]:,} classes"
    if math.prod(shape) > LARGEST:
        return ValueError(f"{said} has {counts}")
    at, what = _odd(np.ravel_multi_index(tuple(index), tuple(shape)), math.prod(shape))
    where = np.unravel_index(at, shape)
    named = ", ".join(f"{n} {names[i]}" for n, names, i in zip(COLUMNS, labels, where, strict=False))
    return ValueError(f"{said} {named} {what}: it has {counts}")


def _odd(flat: np.ndarray, total: int) -> tuple[int, str]:
    """The first of `total` combinations that is not among the rows, or one that is there more than once."""
    found, count = np.unique(flat, return_counts=True)
    gaps = np.flatnonzero(found != np.arange(len(found)))
    missing = int(gaps[0]) if len(gaps) else len(found)
    return (missing, "is missing") if missing < total else (int(found[count.argmax()]), "occurs more than once")


def _numbered(path: Path, column: np.ndarray) -> Numbered:
    """Numbers in order; whole ones as such."""
    if column.dtype.kind == "f":
        if not np.isfinite(column).all():
            raise ValueError(
                f"{path} must identify points, draws and classes by finite numbers or names, but one is NaN or infinite"
            )
        if (abs(column) < WHOLE).all() and (column == column.round()).all():
            column = column.astype(np.int64)
    return np.unique(column, return_inverse=True)


def _named(column: Sequence[str]) -> Numbered:
    """Names in order; numbers in theirs if all are, written as Python writes them: 007 and 7 are two names."""
    names, numbers = set(column), all(DECIMAL.fullmatch(name) for name in set(column))
    ordered = sorted(names, key=int if numbers else None)
    position = {name: i for i, name in enumerate(ordered)}
    index = np.fromiter((position[name] for name in column), np.int64, len(column))
    return [int(name) for name in ordered] if numbers else ordered, index


READERS: dict[str, Callable[[Path, str | None], Table]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}
