"""One column of a table as features: what kind of column it is, learnt from its cells, and their numbers.

A number (or a date, in days) is standardised and clipped, with a second feature that is 1 where it is missing. A
category is one feature per level: the 50 most frequent ones, then buckets that share the other levels by their hash,
then one for missing cells. Kinds are decided by content: all cells of a CSV file are text. No torch here.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from balent.data.cells import shown
from balent.data.table_rows import Value

LEVELS = 50  # of a category that have a feature of their own
BUCKETS = 16  # for all other levels of a column that has more; a column with fewer has one, for levels that come later
CLIP = 5.0  # standard deviations. Rows are scaled to length 1, so one extreme number would wipe out all other features
FREE_TEXT = 40  # characters: cells that are longer on average, and differ, are texts
DISTINCT = 0.9  # share of cells that differ from all others, from which a column of words is a column of names
NEARLY = 0.9  # share of numbers from which a column that has other cells too is reported
LONG = 200  # characters of a level that are kept; longer ones are known by their hash
MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}  # words that mean so in a column of numbers
DAY = 86_400.0

Block = tuple[np.ndarray, list[str | None]]  # features of a column, and for each cell why it has none


@dataclass(frozen=True)
class Number:
    """Numbers, standardised: (x / scale - mean) / deviation. The scale keeps sums of large numbers finite."""

    name: str
    scale: float
    mean: float
    deviation: float
    dates: bool = False

    @property
    def width(self) -> int:
        return 2

    def block(self, cells: Sequence[Value]) -> Block:
        found = [_date(cell) if self.dates else _number(cell) for cell in cells]
        reasons = [self._reason(cell, x) for cell, x in zip(cells, found, strict=True)]
        x = np.array([0.0 if x is None or why else x for x, why in zip(found, reasons, strict=True)])
        missing = np.array([x is None for x in found], bool)
        with np.errstate(over="ignore"):  # clipped anyway
            standard = np.clip((x / self.scale - self.mean) / self.deviation, -CLIP, CLIP)
        return np.stack([np.where(missing, 0.0, standard), missing], 1), reasons

    def _reason(self, cell: Value, x: float | None) -> str | None:
        if x is None or math.isfinite(x):
            return None
        what = "a date" if self.dates else "a finite number"
        return f"column {shown(self.name)} must have {what}, but has {shown(cell)}"


@dataclass(frozen=True)
class Category:
    """Words: one feature per known level, buckets for all other levels, one for missing cells."""

    name: str
    levels: tuple[str, ...]
    buckets: int

    @property
    def width(self) -> int:
        return len(self.levels) + self.buckets + 1

    def block(self, cells: Sequence[Value]) -> Block:
        number = {level: i for i, level in enumerate(self.levels)}
        words = [_word(cell) for cell in cells]
        for word in {word for word in words if word is not None and word not in number}:
            number[word] = len(self.levels) + _hash(word) % self.buckets
        at = [self.width - 1 if word is None else number[word] for word in words]
        features = np.zeros((len(cells), self.width))
        features[np.arange(len(cells)), at] = 1
        return features, [None] * len(cells)


Kind = Number | Category


def learnt(name: str, cells: Sequence[Value]) -> tuple[Kind | None, str | None]:
    """The kind of a column, None if it is not used; and what a user should know about that."""
    words = [word for cell in cells if (word := _word(cell)) is not None]
    if len(set(words)) < 2 and len(words) in (0, len(cells)):
        return None, f"column {shown(name)} is not used: it has the same value in every row"
    for parse, dates in ((_number, False), (_date, True)):
        numbers = _all(parse, cells)
        if numbers:
            return _standard(name, numbers, dates)
    return _category(name, words)


def _all(parse: Callable[[Value], float | None], cells: Sequence[Value]) -> list[float]:
    """The cells that are not missing as numbers; none if one of them is not a number."""
    numbers = []
    for cell in cells:
        x = parse(cell)
        if x is not None and math.isnan(x):
            return []
        if x is not None:
            numbers.append(x)
    return numbers


def _standard(name: str, numbers: list[float], dates: bool) -> tuple[Kind | None, str | None]:
    x = np.array([x for x in numbers if math.isfinite(x)])
    if not len(x):
        return None, f"column {shown(name)} is not used: it has no finite number"
    scale = float(np.abs(x).max()) or 1.0
    deviation = float((x / scale).std()) if x.min() < x.max() else 1.0
    note = f"column {shown(name)} is read as dates" if dates else None
    return Number(name, scale, float((x / scale).mean()), deviation or 1.0, dates), note


def _category(name: str, words: list[str]) -> tuple[Kind | None, str | None]:
    count = Counter(words)
    if len(count) > LEVELS and sum(map(len, words)) > FREE_TEXT * len(words):
        return None, f"column {shown(name)} is not used: it has long texts; label texts as such, or remove it"
    if len(count) > LEVELS and len(count) >= DISTINCT * len(words):
        return None, f"column {shown(name)} is not used: nearly every row has a value of its own, like an id"
    levels = sorted(count, key=lambda word: (-count[word], word))[:LEVELS]
    more = len(count) - len(levels)
    return Category(name, tuple(levels), BUCKETS if more else 1), _about(name, words, more)


def _about(name: str, words: list[str], more: int) -> str | None:
    odd = [word for word in words if math.isnan(_number(word) or 0.0)]
    if len(odd) <= (1 - NEARLY) * len(words):
        return f"column {shown(name)} is read as words, though most cells are numbers: one is {shown(odd[0])}"
    if more:
        return f"column {shown(name)} has {LEVELS + more:,} levels: {LEVELS} have a feature, {more:,} share {BUCKETS}"
    return None


def _word(cell: Value) -> str | None:
    """A cell as a level: 1, 1.0 and "1" are one. None if it is missing."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = "" if cell is None or cell != cell else str(cell).strip()
    return (text if len(text) <= LONG else f"sha256 {_digest(text).hex()}") or None


def _number(cell: Value) -> float | None:
    """The number, NaN if the cell is none, None if it is missing. 1_0 is a number in Python only."""
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING):
        return None
    if isinstance(cell, float) and math.isnan(cell):
        return None
    try:
        return math.nan if isinstance(cell, str) and "_" in cell else float(cell)
    except ValueError:
        return math.nan
    except OverflowError:  # a whole number beyond all floats
        return math.inf


def _date(cell: Value) -> float | None:
    """Days since 1970, NaN if the cell is not a date (ISO 8601, perhaps with a time), None if it is missing."""
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING):
        return None
    try:
        found = datetime.fromisoformat(str(cell).strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() / DAY
    except (ValueError, OverflowError):
        return math.nan


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _hash(text: str) -> int:
    return int.from_bytes(_digest(text)[:8], "big")
