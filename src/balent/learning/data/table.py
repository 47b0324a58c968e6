"""Tables of numbers with a column of labels: CSV, or parquet with the extra [parquet].

The label column is called label, class, target or y; a column called split says train or test; every
other column is a feature and must be a number in every row.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from balent.learning.data import labels
from balent.learning.data.cache import Decoded, Part, cached
from balent.learning.data.contents import Data
from balent.learning.data.labels import Settled
from balent.reading import arrow

LABEL, SPLIT = ("label", "class", "target", "y"), ("split", "part")

Columns = Mapping[str, Sequence[Any] | np.ndarray]


def table(path: Path) -> Data:
    """The rows of a table as points; those without a label wait for one."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return cached(path.stem, path.parent, [path.name], lambda: decoded(path, READERS[path.suffix](path)))


def decoded(path: Path, columns: Columns) -> Decoded:
    found = {name.strip().lower(): name for name in columns}
    label = next((found[name] for name in LABEL if name in found), None)
    if label is None:
        raise ValueError(f"{path} must have a column {' or '.join(LABEL)}, but has {', '.join(columns)}")
    split = next((found[name] for name in SPLIT if name in found), None)
    features = [name for name in columns if name not in (label, split)]
    if not features or not len(columns[label]):
        raise ValueError(f"{path} must have rows, and columns of numbers beside {label!r}")
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
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _row(path: Path, i: int) -> str:
    return f"{path}, row {i + 1},"


def _numbers(path: Path, name: str, column: Sequence[Any] | np.ndarray) -> np.ndarray:
    """A column of features. The first cell that is no finite number is named."""
    try:
        numbers = np.asarray(column).astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(numbers))
    except (ValueError, TypeError):
        bad = np.array([i for i, cell in enumerate(column) if not _is_number(cell)])
    if len(bad):
        where = int(bad[0])
        raise ValueError(f"{_row(path, where)} must have a number in column {name!r}, but has {column[where]!r}")
    return numbers


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (ValueError, TypeError):
        return False
    return True


def _csv(path: Path) -> Columns:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        try:
            header = [name.strip() for name in next(rows, [])]
            cells = [row for row in rows if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as CSV: {error}") from None
    for i, row in enumerate(cells):
        if len(row) != len(header):
            raise ValueError(f"{_row(path, i)} has {len(row)} cells, but the header has {len(header)}")
    if len(set(header)) != len(header):
        raise ValueError(f"{path} has two columns of one name: {', '.join(header)}")
    return dict(zip(header, zip(*cells, strict=True) if cells else [()] * len(header), strict=True))


def _parquet(path: Path) -> Columns:
    invalid, parquet = arrow()
    try:
        found = parquet.read_table(path)
    except (invalid, OSError) as error:
        raise ValueError(f"{path} cannot be read as parquet: {error}") from None
    return {name: _values(found[name]) for name in found.column_names}


def _values(column: Any) -> Sequence[Any] | np.ndarray:
    """Numbers as an array: a list of Python's would take several times the memory."""
    from pyarrow import types

    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy() if number and column.null_count == 0 else column.to_pylist()


READERS: dict[str, Callable[[Path], Columns]] = {".csv": _csv, ".parquet": _parquet}
