"""Cells of CSV files: text that a spreadsheet would run as a formula is written as text, and read back exactly.

Spreadsheets take a cell that begins with = + - @ (or a tab, or a carriage return, before these) for a formula, and
a formula can start programs. Such text gets a leading apostrophe. Text that already has apostrophes there gets one
more, so that `unescaped` has one answer: unescaped(escaped(text)) == text for every text. Numbers stay as they are.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from balent.data.outputs import whole

FORMULA = re.compile(r"'*[=+\-@\t\r]")
ESCAPED = re.compile(r"'+[=+\-@\t\r]")


def escaped(text: str) -> str:
    """The text as a cell that no spreadsheet runs.

    >>> escaped("=cmd|' /C calc'!A0"), escaped("'-1"), escaped("cat.png"), escaped("it's")
    ("'=cmd|' /C calc'!A0", "''-1", 'cat.png', "it's")
    """
    return f"'{text}" if FORMULA.match(text) else text


def unescaped(cell: str) -> str:
    """The text that `escaped` made this cell of; any other cell as it is."""
    return cell[1:] if ESCAPED.match(cell) else cell


def shown(value: Any, most: int = 80) -> str:
    """A value in an error message: not all of it, if it is long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """All of it or nothing: the file appears under its name when it is complete.

    What UTF-8 has no bytes for (parts of file names in another encoding) is written as \\udcff: everybody can read it.
    """
    with (
        whole(path) as partial,
        partial.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file,
    ):
        writer = csv.writer(file)
        writer.writerow([escaped(name) for name in header])
        writer.writerows([escaped(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
