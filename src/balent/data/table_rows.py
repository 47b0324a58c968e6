"""Rows of a table in a file: CSV or TSV, JSON lines, or parquet with the extra [parquet].

Cells of CSV files are text; those of the other formats keep their type. An empty cell of a CSV file, null, and NaN are
None. The columns may change between rows only in JSON lines, where a key that is missing is None. No torch here: the
labelling page shows rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from balent.data.cells import shown
from balent.data.formats.delimited import delimited
from balent.data.formats.json_lines import json_lines
from balent.data.formats.parquet import parquet_columns

Value = str | float | int | bool | None
Row = dict[str, Value]


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows in the order of the file. `rows[i]` is a row as a dict, `rows.columns` has the same by column."""

    path: Path
    columns: dict[str, list[Value]]
    numbers: Sequence[int]  # of the line at which each row begins; in parquet the number of the row, from 1
    unit: str = "line"

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, i: int) -> Row:
        return {name: column[i] for name, column in self.columns.items()}

    def where(self, i: int) -> str:
        """Where row i is, for error messages."""
        return f"{self.path}, {self.unit} {self.numbers[i]},"

    def column(self, name: str) -> list[Value]:
        if name not in self.columns:
            raise ValueError(
                f"{self.path} has no column {shown(name)}; its columns are {', '.join(self.columns)[:400]}"
            )
        return self.columns[name]


def rows(path: str | Path) -> TableRows:
    """All rows of a .csv, .tsv, .jsonl, .ndjson or .parquet file.

    An error names the file and, where it can, the line: for a file that is not there or empty, that has no header or
    two columns of one name, and for lines with too few or too many cells, that are not JSON or not UTF-8.
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"a table must be a file ending in {', '.join(READERS)}, but is {path}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; its first line must name the columns, and each further line is a row")
    found = reader(path)
    if not len(found):
        raise ValueError(f"{path} has no rows; each item is a row")
    return found


def _delimited(path: Path) -> TableRows:
    columns, lines = delimited(path)
    return TableRows(path, {name: [cell or None for cell in column] for name, column in columns.items()}, lines)


def _json_lines(path: Path) -> TableRows:
    return TableRows(path, *json_lines(path))


def _parquet(path: Path) -> TableRows:
    found = parquet_columns(path, "save it as .csv")
    columns = {name: _cells(path, name, column) for name, column in found.items()}
    return TableRows(path, columns, range(1, 1 + len(next(iter(columns.values()), []))), "row")


def _cells(path: Path, name: str, column: Sequence[Any] | np.ndarray) -> list[Value]:
    if isinstance(column, np.ndarray):
        return column.tolist() if column.dtype.kind in "iu" else [_number(cell) for cell in column.tolist()]
    return [_cell(path, name, i, cell) for i, cell in enumerate(column)]


def _number(cell: float) -> float | None:
    return None if math.isnan(cell) else cell


def _cell(path: Path, name: str, i: int, cell: Any) -> Value:
    """Dates, times and decimal numbers become text."""
    if isinstance(cell, float):
        return _number(cell)
    if cell is None or isinstance(cell, str | int):
        return cell
    if isinstance(cell, bytes):
        return _text(path, name, i, cell)
    return str(cell)


def _text(path: Path, name: str, i: int, cell: bytes) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(
            f"{path}, row {i + 1}, must have UTF-8 text in column {shown(name)}, but has other bytes; remove it"
        ) from None


READERS: dict[str, Callable[[Path], TableRows]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}
