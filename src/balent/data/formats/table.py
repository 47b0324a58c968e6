"""Tables of numbers with a column of labels: CSV, or parquet with the extra [parquet].

The label column is called label, class, target or y; a column called split says train or test; every
other column is a feature and must be a number in every row.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from balent.data import targets as labels
from balent.data.cache import Decoded, Part, cached
from balent.data.formats import limits
from balent.data.formats.contents import Data
from balent.data.probabilities import arrow
from balent.data.targets import Settled, shown

LABEL, SPLIT = ("label", "class", "target", "y"), ("split", "part")

Columns = Mapping[str, Sequence[Any] | np.ndarray]


def table(path: Path) -> Data:
    """The rows of a table as points. Rows without a label are unlabelled points."""
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
    _, parquet = arrow()
    try:
        with parquet.ParquetFile(path) as file:
            schema, about = file.schema_arrow, file.metadata
            _check_columns(schema)
            asked = 8 * about.num_rows * about.num_columns
            limits.check(asked, path.stat().st_size, "save it as an .npz with numpy.savez, which does not compress")
        with parquet.ParquetFile(path, read_dictionary=[field.name for field in schema if _is_text(field)]) as file:
            found = file.read()
            found.validate(full=True)
        return {name: _values(found[name]) for name in found.column_names}
    except MemoryError:
        raise
    except Exception as error:  # pyarrow has a dozen kinds for damaged files
        raise ValueError(f"{path} cannot be read as parquet: {str(error)[:200]}") from None


def _check_columns(schema: Any) -> None:
    from pyarrow import types

    nested = [field.name for field in schema if types.is_nested(field.type)]
    if nested:
        raise ValueError(f"column {shown(nested[0])} holds lists; save one number or word in each cell")
    if len(set(schema.names)) != len(schema.names):
        raise ValueError(f"two columns have one name: {', '.join(schema.names)[:200]}")


def _is_text(field: Any) -> bool:
    from pyarrow import types

    return any(test(field.type) for test in (types.is_string, types.is_large_string, types.is_binary))


def _values(column: Any) -> Sequence[Any] | np.ndarray:
    """Numbers as an array: a list of Python's would take several times the memory. Equal words are one object."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        return [word for chunk in column.chunks for word in _words(chunk)]
    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy() if number and column.null_count == 0 else column.to_pylist()


def _words(chunk: Any) -> Iterator[Any]:
    words = chunk.dictionary.to_pylist()
    return (None if i is None else words[i] for i in chunk.indices.to_pylist())


READERS: dict[str, Callable[[Path], Columns]] = {".csv": _csv, ".parquet": _parquet}
