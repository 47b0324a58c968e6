"""Lines of records, read one at a time and checked where they enter: errors name the file and the line.

Anybody may hand over a file of records, so its sizes are limited before memory is used: the length of a line, the depth
of its JSON, the length of a name, and what a packed file may unpack to. The last line may be incomplete, because a
process that is killed leaves it so; then it is left out, with a remark.
"""

import gzip
import io
import json
import math
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT = 1
LONGEST = 2**24  # bytes of a line: 200,000 picks with scores and labels need less
LARGEST = 2**28  # bytes of a packed file once it is unpacked; a file that is not packed has its own size
DEEPEST = 50  # levels of lists and objects; a record has three
NAME = 1000  # characters of a name
METRICS = {"accuracy": "accuracy", "nll": "negative log-likelihood", "brier": "Brier score", "ece": "calibration error"}
OF_PICKS = {"epistemic": "epistemic uncertainty of picks", "aleatoric": "aleatoric uncertainty of picks"}
Record = dict[str, Any]

_REQUIRED = {"experiment": str, "strategy": str, "seed": int, "round": int, "labels": int, "accuracy": float}
_OPTIONAL = {"spec": dict, "seconds": dict, "balent": str, "torch": str}
_LISTS: dict[str, tuple[type, ...]] = {
    "picks": (int, str),
    "scores": (int, float, str),
    "pick_labels": (int, str),
    "thumbnails": (str,),
}
_KINDS: dict[type, str] = {str: "a string", int: "a whole number", float: "a number", list: "a list", dict: "an object"}
_RANGES: dict[str, tuple[float, float]] = {
    "seed": (-(2**64), 2**64),
    "round": (0, 2**53),
    "labels": (0, 2**53),
    "accuracy": (0, 1),
}


def records_of(path: Path, remarks: list[str]) -> Iterator[tuple[str, Record]]:
    """The records of a file, each with its place for errors."""
    torn = ""
    for i, (n, text) in enumerate(_texts(path)):
        where = f"{path}, line {n}"
        if torn:
            raise ValueError(f"{torn}: not JSON; the file is damaged, restore it or leave it out")
        try:
            record = _parsed(text, where)
        except (json.JSONDecodeError, UnicodeDecodeError):
            torn = where
            continue
        if i == 0 and isinstance(record, dict) and not {"experiment", "strategy", "round"} & record.keys():
            remarks.append(f"{path} contains no records and was left out")
            return
        yield where, checked(record, where)
    if torn:
        remarks.append(f"{torn}: the last line is incomplete and was ignored (balent run --resume repairs it)")


def _texts(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers."""
    if path.suffix != ".gz":
        with path.open("rb") as file:
            yield from _limited(file, path, sys.maxsize)
        return
    try:
        with io.BufferedReader(gzip.open(path)) as file:  # GzipFile itself reads lines slowly
            yield from _limited(file, path, LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}); restore it or leave it out") from None


def _limited(file: io.BufferedIOBase, path: Path, most: int) -> Iterator[tuple[int, bytes]]:
    n = read = 0
    while text := file.readline(LONGEST + 1):
        n, read = n + 1, read + len(text)
        if len(text) > LONGEST:
            raise ValueError(f"{path}, line {n}: a record has at most {LONGEST:,} bytes, but this line is longer")
        if read > most:
            raise ValueError(f"{path}, line {n}: more than {most:,} bytes once unpacked; unpack it if you trust it")
        if text.strip():
            yield n, text


def _parsed(text: bytes, where: str) -> Any:
    """The JSON of a line; a JSONDecodeError only where the line may be incomplete."""
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=_no_number)
        deep = _deeper(value, DEEPEST)
    except RecursionError:
        deep = True
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:  # not a number, or more digits than Python reads: then its advice is of no use here
        raise ValueError(f"{where}: {str(error).partition(';')[0]}") from None
    if deep:
        raise ValueError(f"{where}: a record has at most {DEEPEST} levels of lists and objects, but this one has more")
    return value


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number (records have null for a missing value, and 'inf' for infinity)")


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested in more levels; one level after the other, so that depth costs no stack."""
    inside: list[Any] = [[value]]
    for _ in range(levels + 1):
        each = (v for outer in inside for v in (outer.values() if isinstance(outer, dict) else outer))
        inside = [v for v in each if isinstance(v, list | dict)]
    return bool(inside)


def checked(record: Any, where: str) -> Record:
    """The record, if a report can be made of it. Optional fields may be absent or null."""
    if not isinstance(record, dict):
        raise ValueError(f"{where}: a record is a JSON object, but this is {_shown(record)}")
    if (format := record.get("format", FORMAT)) != FORMAT:
        by = f" of balent {_shown(record['balent'])}" if "balent" in record else ""
        raise ValueError(
            f"{where}: records{by} in format {_shown(format)}, but this balent reads format {FORMAT}; "
            "report them with the version that wrote them"
        )
    for key, kind in _REQUIRED.items():
        if key not in record:
            raise ValueError(f"{where}: the record has no {key!r}")
        if key != "accuracy" or record[key] is not None:  # null: a round that was not evaluated
            _check(key, record[key], kind, where)
    for key, kind in _OPTIONAL.items():
        if record.get(key) is not None:
            _check(key, record[key], kind, where)
    _check_numbers(record, where)
    _check_lists(record, where)
    return record


def _check(key: str, value: Any, kind: type, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float if kind is float else kind):
        raise ValueError(f"{where}: {key!r} must be {_KINDS[kind]}, but is {_shown(value)}")
    if isinstance(value, str) and not (len(value) <= NAME and value.isprintable()):
        raise ValueError(f"{where}: {key!r} must have at most {NAME} printable characters, but is {_shown(value)}")
    low, high = _RANGES.get(key, (-math.inf, math.inf))
    if isinstance(value, int | float) and not low <= value <= high:
        raise ValueError(f"{where}: {key!r} must be between {low} and {high}, but is {_shown(value)}")


def _check_numbers(record: Record, where: str) -> None:
    """Metrics and seconds: finite, infinite in the spelling of records, or null."""
    seconds = {f"seconds.{phase}": value for phase, value in (record.get("seconds") or {}).items()}
    for key, value in {**{name: record.get(name) for name in (*METRICS, *OF_PICKS)}, **seconds}.items():
        if value is not None and math.isnan(number(value)):
            raise ValueError(f"{where}: {_shown(key)} must be a number, but is {_shown(value)}")
        if key in seconds and value is not None and not 0 <= number(value) < math.inf:
            raise ValueError(f"{where}: {_shown(key)} must be at least 0, but is {_shown(value)}")


def _check_lists(record: Record, where: str) -> None:
    for key, kinds in _LISTS.items():
        values = record.get(key)
        if values is not None and not isinstance(values, list):
            raise ValueError(f"{where}: {key!r} must be a list, but is {_shown(values)}")
        for i, value in enumerate(values or ()):
            if value is not None and not isinstance(value, kinds):
                expected = " or ".join(_KINDS[kind] for kind in kinds)
                raise ValueError(f"{where}: entry {i} of {key!r} must be {expected}, but is {_shown(value)}")


def number(value: object) -> float:
    """A float; NaN for everything that is not a number. JSON has no infinity, so records spell it "inf"."""
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000):
        return float(value)
    return float(value) if isinstance(value, str) and value in ("inf", "-inf") else math.nan


def _shown(value: object) -> str:
    """A value as an error quotes it, whatever its size: its beginning, or how many entries it has."""
    if isinstance(value, list | dict):
        return f"{_KINDS[type(value)]} of {len(value):,} entries"
    if isinstance(value, str) and len(value) > 60:
        return f"{value[:60]!r}… ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} digits)"
