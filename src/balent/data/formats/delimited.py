"""CSV and TSV files: cells by column, and the line at which each row begins.

The header decides what separates cells; in a .tsv it is a tab. Quoted cells may hold separators and line breaks. A
quote that is never closed would swallow the rest of the file, so quotes are checked strictly, and the csv module's
limit on the length of a cell (131,072 characters) stays: such an error names the line. No torch here.
"""

import csv
import io
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from balent.data.cells import shown

SEPARATORS = ",\t;|"  # of two that give equally many columns the first
BLOCK = 10_000  # rows that are in memory twice
HEAD = 1 << 16  # characters in which the header is looked for


def delimited(path: Path) -> tuple[dict[str, list[str]], Sequence[int]]:
    """Columns by name, and the line of each row. A row with more or fewer cells than the header is refused."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            separator = "\t" if path.suffix.lower() == ".tsv" else _separator(file.read(HEAD))
            file.seek(0)
            return _columns(path, file, separator)
        except UnicodeDecodeError:
            raise not_utf8(path) from None


def not_utf8(path: Path) -> ValueError:
    """The error for a file in another encoding. It names the line, for which the file is read again."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                return undecodable(path, number, error)
    return ValueError(f"{path} was changed while it was read; read it again")


def undecodable(path: Path, number: int, error: UnicodeDecodeError) -> ValueError:
    bad = error.object[error.start : error.start + 1].hex()
    return ValueError(f"{path}, line {number}, is not UTF-8: it has the byte 0x{bad}; save the file as UTF-8")


def _separator(head: str) -> str:
    return max(SEPARATORS, key=lambda one: len(next(_filled(csv.reader(io.StringIO(head, newline=""), delimiter=one)))))


def _filled(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Rows that are not empty lines, then an empty one."""
    yield from (row for row in rows if row)
    yield []


def _columns(path: Path, file: io.TextIOBase, separator: str) -> tuple[dict[str, list[str]], Sequence[int]]:
    rows = csv.reader(file, delimiter=separator, strict=True)
    try:
        header = _header(path, next(_filled(rows)))
        columns: dict[str, list[str]] = {name: [] for name in header}
        lines = array("q")
        for block in _blocks(path, rows, len(header), separator):
            lines.extend(line for line, _ in block)
            for column, cells in zip(columns.values(), zip(*(row for _, row in block), strict=True), strict=True):
                column.extend(cells)
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV: {_why(error)} (line {rows.line_num})") from None
    return columns, lines


def _header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise ValueError(f"{path} has no header; its first line must name the columns")
    if all(_is_number(name) for name in names):
        raise ValueError(f"{path} has no header: its first line must name the columns, but has {shown(names)}")
    unique(path, names)
    return names


def unique(path: Path, names: Sequence[str]) -> None:
    """Refuses two columns of one name."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"{path} has two columns of one name, {shown(twice)}; rename one of them")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _blocks(path: Path, rows: Any, width: int, separator: str) -> Iterator[list[tuple[int, list[str]]]]:
    """Rows with the line at which each begins: the first one after the end of the row before."""
    block: list[tuple[int, list[str]]] = []
    start = rows.line_num + 1
    for row in rows:
        if row:
            if len(row) != width:
                raise _ragged(path, start, len(row), width, separator)
            block.append((start, row))
        start = rows.line_num + 1
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def _ragged(path: Path, line: int, cells: int, width: int, separator: str) -> ValueError:
    return ValueError(
        f"{path}, line {line}, has {cells} cells, but the header has {width}; cells with {separator!r} or line breaks "
        "in them need quotes"
    )


def _why(error: csv.Error) -> str:
    if "field limit" in str(error):
        return (
            f"a cell has more than {csv.field_size_limit():,} characters; is a quote not closed? Longer texts can be "
            "read from .jsonl or .parquet"
        )
    return "a quote is not closed" if "end of data" in str(error) else str(error)
