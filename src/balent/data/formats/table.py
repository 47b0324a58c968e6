"""Tables of numbers with a column of labels: CSV, or parquet with the extra [parquet].

The label column is called label, class, target or y; a column called split says train or test; every
other column is a feature and must be a number in every row.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from balent.data import targets as labels
from balent.data.cache import Decoded, Part, cached
from balent.data.cells import shown
from balent.data.formats.contents import Data
from balent.data.formats.delimited import delimited
from balent.data.formats.parquet import ByName, parquet_columns
from balent.data.targets import Settled

LABEL, SPLIT = ("label", "class", "target", "y"), ("split", "part")


def table(path: Path) -> Data:
    """The rows of a table as points. Rows without a label are unlabelled points."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return cached(path.stem, path.parent, [path.name], lambda: decoded(path, READERS[path.suffix](path)))


def decoded(path: Path, columns: ByName) -> Decoded:
    found = {name.strip().lower(): name for name in columns}
    label = next((found[name] for name in LABEL if name in found), None)
    if label is None:
        raise ValueError(f"{path} must have a column {' or '.join(LABEL)}, but has {', '.join(columns)}")
    split = next((found[name] for name in SPLIT if name in found), None)
    features = [name for name in columns if name not in (label, split)]
    if not features or not len(columns[label]):
        raise ValueError(f"{path} must have rows, and columns of numbers besides {label!r}")
    x = np.stack([_numbers(path, name, columns[name]) for name in features], 1)
    words = labels.as_words(_list(columns[label]), lambda i: _row(path, i))
    tests = None if split is None else labels.parts([str(word) for word in columns[split]], lambda i: _row(path, i))
    keys = [str(i) for i in range(len(words))]
    return arrays(x, labels.settled(words, tests, keys, lambda i: _row(path, i)))


def arrays(x: np.ndarray, known: Settled) -> Decoded:
    """Points that are in memory already, with their labels."""
    train, test = (Part.whole(x[chosen], known.y[chosen]) for chosen in (~known.tests, known.tests))
    return Decoded(train, test, known.names, lambda: known.notes)


def _list(column: Sequence[Any] | np.ndarray) -> list[Any]:
    """Whole numbers as Python integers; floating-point numbers keep their type, which decides how exact they are."""
    return column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind in "iu" else list(column)


def _row(path: Path, i: int) -> str:
    return f"{path}, row {i + 1},"


def _numbers(path: Path, name: str, column: Sequence[Any] | np.ndarray) -> np.ndarray:
    """A column of features. The first cell that is not a finite number is named.

    Cells are read one by one: an array of text would take the longest of them times their number.
    """
    with np.errstate(over="ignore"):  # too large for 32 bits: infinite, and so refused
        numbers = (column if isinstance(column, np.ndarray) else np.array([_number(cell) for cell in column])).astype(
            np.float32
        )
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        cell = column[int(bad[0])]
        raise ValueError(f"{_row(path, int(bad[0]))} must have a number in column {shown(name)}, but has {shown(cell)}")
    return numbers


def _number(cell: Any) -> float:
    """The number, or NaN if the cell is not a number. 1_0 is a number in Python only."""
    try:
        return math.nan if isinstance(cell, str) and "_" in cell else float(cell)
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _csv(path: Path) -> ByName:
    columns, _ = delimited(path)
    return columns


def _parquet(path: Path) -> ByName:
    return parquet_columns(path, "save it as an .npz with numpy.savez, which does not compress")


READERS: dict[str, Callable[[Path], ByName]] = {".csv": _csv, ".parquet": _parquet}
