"""JSON lines (.jsonl, .ndjson): one object per line, its keys are columns.

A key that a line lacks is a missing value. Lists and objects within a line become their JSON text. NaN, which Python
and pandas write although JSON has no such number, is a missing value too. No torch here.
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from balent.data.cells import shown
from balent.data.formats import limits
from balent.data.formats.delimited import undecodable

BLOCK = 10_000  # lines that are in memory twice
BOM = b"\xef\xbb\xbf"
CONSTANTS = {"NaN": None, "Infinity": float("inf"), "-Infinity": float("-inf")}

Line = dict[str, Any]


def json_lines(path: Path) -> tuple[dict[str, list[Any]], Sequence[int]]:
    """Columns by name, and the line of each row. Empty lines are left out."""
    columns: dict[str, list[Any]] = {}
    numbers = array("q")
    size = path.stat().st_size
    for block in _blocks(path):
        _add(path, size, columns, [line for _, line in block], len(numbers))
        numbers.extend(number for number, _ in block)
    return columns, numbers


def _add(path: Path, size: int, columns: dict[str, list[Any]], lines: list[Line], before: int) -> None:
    new = [name for name in dict.fromkeys(name for line in lines for name in line) if name not in columns]
    try:
        limits.check(8 * (len(columns) + len(new)) * (before + len(lines)), size, "lines must have the same keys")
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as JSON lines: {error}") from None
    columns.update({name: [None] * before for name in new})
    for name, column in columns.items():
        column.extend([_cell(line.get(name)) for line in lines])


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, list | dict) else value


def _blocks(path: Path) -> Iterator[list[tuple[int, Line]]]:
    block: list[tuple[int, Line]] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(BOM) if number == 1 else line
            if text.strip():
                block.append((number, _parsed(path, number, text)))
            if len(block) == BLOCK:
                yield block
                block = []
    if block:
        yield block


def _parsed(path: Path, number: int, line: bytes) -> Line:
    try:
        found = DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise undecodable(path, number, error) from None
    except RecursionError:
        raise ValueError(f"{path}, line {number}, is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also of keys that are given twice and of numbers with too many digits
        raise ValueError(
            f"{path}, line {number}, is not JSON: {error}; write one object per line{_hint(line)}"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(
            f'{path}, line {number}, must be an object such as {{"text": "…"}}, but is {shown(found)}{_hint(line)}'
        )
    return found


def _hint(line: bytes) -> str:
    return "; pandas does so with to_json(orient='records', lines=True)" if line.lstrip().startswith(b"[") else ""


def _object(pairs: list[tuple[str, Any]]) -> Line:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"it has the key {shown(twice)} twice")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=CONSTANTS.__getitem__)
