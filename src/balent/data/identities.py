"""Who is who among rows: an id for each, and a fingerprint of its content.

The fingerprint is the sha256 of the row as canonical JSON: keys in order, ASCII, no spaces, missing values left out,
and whole numbers written as such (1.0 is 1). So the order of columns does not matter, nor does a column that is added
and still empty. The target is not content: a row keeps its identity when it gets a label. No torch here.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection

from balent.data.cells import shown
from balent.data.table_rows import TableRows, Value

DIGITS = 16  # of the fingerprint, in an id
EXACT = 2.0**53  # from here on floats are whole, but no longer exact


def identities(rows: TableRows, id_column: str | None = None, target_column: str | None = None) -> list[str]:
    """The id of each row: its cell of the id column, else 16 digits of its fingerprint; equal rows get -2, -3, …"""
    if id_column is None:
        return _numbered([whole[:DIGITS] for whole in fingerprints(rows, target_column)])
    return _given(rows, id_column)


def fingerprints(rows: TableRows, target_column: str | None = None, id_column: str | None = None) -> list[str]:
    """sha256 of each row without its target and its id, in hex digits: equal where the content is equal."""
    for name in (target_column, id_column):
        if name is not None:
            rows.column(name)
    names = sorted(name for name in rows.columns if name not in (target_column, id_column))
    if not names:
        raise ValueError(f"{rows.path} must have columns besides {shown(target_column or id_column)}, but has none")
    cells = zip(*(rows.columns[name] for name in names), strict=True)
    return [_fingerprint(names, row) for row in cells]


def _fingerprint(names: Collection[str], row: tuple[Value, ...]) -> str:
    content = {name: plain(cell) for name, cell in zip(names, row, strict=True) if cell is not None}
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()


def plain(cell: Value) -> Value:
    """A number that is whole as such: parquet and pandas make 1.0 of 1 where cells are missing."""
    return int(cell) if isinstance(cell, float) and abs(cell) < EXACT and cell.is_integer() else cell


def _numbered(names: list[str]) -> list[str]:
    """Equal names apart: a, a-2, a-3."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


def _given(rows: TableRows, column: str) -> list[str]:
    ids = ["" if cell is None else str(plain(cell)) for cell in rows.column(column)]
    empty = [i for i, name in enumerate(ids) if not name.strip()]
    if empty:
        raise ValueError(
            f"every row needs an id, but {rows.where(empty[0])} has none in column {shown(column)}{_more(len(empty))}; "
            "fill it in, or use no id column"
        )
    _check_different(rows, column, ids)
    return ids


def _check_different(rows: TableRows, column: str, ids: list[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    places: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(ids):
        places[name].append(i)
    repeated = {name: found for name, found in places.items() if len(found) > 1}
    name, (first, second, *_) = next(iter(repeated.items()))
    raise ValueError(
        f"ids must differ, but {rows.where(first)} and {rows.unit} {rows.numbers[second]} have {shown(name)} in column "
        f"{shown(column)}{_more(len(repeated))}; a label belongs to one id"
    )


def _more(count: int) -> str:
    return f" (and {count - 1:,} more)" if count > 1 else ""
