"""Some rows of one shard as a source: small and picklable, it opens its file where it is used.

Blocks end at multiples of their size, counted from the start of the shard: where a span begins does not matter.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from balent.data import manifest, shard_formats
from balent.data.damage import Damaged, Skipped
from balent.data.manifest import Shard
from balent.data.shard_formats.reader import Reader, Unreadable, Wanted
from balent.types import Indices

SHIFT, ROW = 32, (1 << 32) - 1  # position = (number of the shard << 32) | row
KEYS = 1 << 14  # rows whose keys are read together
KEPT = 8  # times as many of them are kept
Piece = tuple[int, np.ndarray]  # the number of the first row, and rows


@dataclass
class SpanSource:
    """Rows first..first + count - 1 of a shard."""

    shard: Shard
    number: int
    first: int
    count: int
    wanted: Wanted
    skip_bad: bool = False
    skipped: list[Skipped] = field(default_factory=list)
    report: Callable[[Skipped], None] | None = None  # is told what else cannot be read; stays in its process
    _reader: Reader | None = field(default=None, init=False, repr=False, compare=False)
    _keys: "OrderedDict[int, np.ndarray]" = field(default_factory=OrderedDict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "report": None, "_reader": None, "_keys": OrderedDict()}

    @property
    def size(self) -> int:
        return len(self._rows()) if self.skipped else self.count

    @property
    def positions(self) -> Indices:
        return self._positions(self._rows())

    def blocks(self, points: int) -> Iterator[tuple[np.ndarray, Indices]]:
        """Rows and their positions."""
        with _Opened(self) as reader:
            for start, rows in cut(self._pieces(reader, points), points):
                yield rows, self._positions(start)

    def at(self, positions: Indices) -> np.ndarray:
        """These points, in the order given."""
        wanted, inverse = np.unique(self._checked(positions), return_inverse=True)
        try:
            return self._kept().at(wanted)[inverse]
        except Unreadable as bad:
            raise self._damaged(bad) from None

    @property
    def keyed(self) -> bool:
        return self.wanted.key is not None

    def keys(self, positions: Indices) -> Indices:
        """64-bit hashes of the key column; the positions themselves if there is none."""
        if not self.keyed:
            return positions
        rows = self._checked(positions)
        found = np.empty(len(rows), np.int64)
        for chunk in np.unique(rows // KEYS).tolist():
            mine = rows // KEYS == chunk
            found[mine] = self._hashed(chunk)[rows[mine] - chunk * KEYS]
        return torch.from_numpy(found)

    def ids(self, positions: Indices) -> list[str]:
        """The key of each point, or the path of an image, or path#row."""
        rows, reader = self._checked(positions).tolist(), self._kept()
        if self.keyed:
            return [self._named(reader, row, row + 1)[0] for row in rows]
        return [reader.name(row) or f"{self.shard.path}#{row}" for row in rows]

    def names(self) -> list[str]:
        """The key of each row, in order; without a key column, the ids."""
        rows, reader = range(self.first, self.first + self.count), self._kept()
        if self.keyed:
            return self._named(reader, rows.start, rows.stop)
        return [reader.name(row) or f"{self.shard.path}#{row}" for row in rows]

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def __del__(self) -> None:
        self.close()

    def _rows(self) -> np.ndarray:
        """Numbers of the rows that can be read, as far as is known."""
        rows = np.arange(self.first, self.first + self.count)
        for entry in self.skipped:
            rows = rows[(rows < entry.first) | (rows >= entry.first + (entry.rows or manifest.ROWS))]
        return rows

    def _positions(self, rows: np.ndarray) -> Indices:
        return torch.from_numpy(rows) | (self.number << SHIFT)

    def _checked(self, positions: Indices) -> np.ndarray:
        rows = (positions & ROW).numpy()
        beyond = (rows < self.first) | (rows >= self.first + self.count)
        if beyond.any() or bool((positions >> SHIFT != self.number).any()):
            raise ValueError(
                f"positions must be those of rows {self.first:,} to {self.first + self.count - 1:,} of "
                f"{self.shard.path} (shard {self.number}), but others were given"
            )
        return rows

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def _kept(self) -> Reader:
        if self._reader is None:
            self._reader = self._open()
        return self._reader

    def _open(self) -> Reader:
        """The shard, if it is as it was when its rows were counted."""
        try:
            manifest.check_same(self.shard, shard_formats.about(self.shard.path))
            reader = shard_formats.opened(self.shard.path, self.wanted)
        except Unreadable as bad:
            raise Damaged(self.shard.path, 0, self.shard.rows, bad.why) from None
        except FileNotFoundError:
            raise Damaged(self.shard.path, 0, self.shard.rows, "it is not there any more") from None
        if reader.rows != self.shard.rows:
            rows = reader.rows
            reader.close()
            why = f"it has {rows:,} rows, but the manifest has {self.shard.rows:,}"
            raise Damaged(self.shard.path, 0, self.shard.rows, why)
        return reader

    def _pieces(self, reader: Reader, points: int) -> Iterator[Piece]:
        """All rows that can be read. What cannot is an error, or is left out."""
        shapes: list[tuple[int, ...]] = []
        for first, stop in _runs(self._rows()):
            yield from self._readable(reader, first, stop, points, shapes)

    def _readable(self, reader: Reader, first: int, stop: int, points: int, shapes: list[Any]) -> Iterator[Piece]:
        while first < stop:
            try:
                for start, rows in reader.pieces(first, stop, points):
                    _check_shape(start, rows, shapes)
                    yield start, rows
                    first = start + len(rows)
                return
            except Unreadable as bad:
                self._left_out(self._damaged(bad, first, stop))
                yield from self._readable(reader, first, min(max(first, bad.first), stop), points, shapes)
                first = max(first + 1, bad.stop)

    def _damaged(self, bad: Unreadable, first: int = 0, stop: int | None = None) -> Damaged:
        start, end = max(first, bad.first), min(bad.stop, self.shard.rows if stop is None else stop)
        return Damaged(self.shard.path, start, max(1, end - start), bad.why)

    def _left_out(self, error: Damaged) -> None:
        """Goes on without these rows, if that is allowed."""
        if not self.skip_bad:
            raise error
        self.skipped.append(error.skipped)
        if self.report is not None:
            self.report(error.skipped)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────

    def _hashed(self, chunk: int) -> np.ndarray:
        """Hashes of the keys of some rows that follow each other."""
        if chunk not in self._keys:
            first, stop = chunk * KEYS, min((chunk + 1) * KEYS, self.shard.rows)
            self._keys[chunk] = hashes(self._named(self._kept(), first, stop))
            while len(self._keys) > KEPT:
                self._keys.popitem(last=False)
        self._keys.move_to_end(chunk)
        return self._keys[chunk]

    def _named(self, reader: Reader, first: int, stop: int) -> list[str]:
        try:
            return reader.keys(first, stop)
        except Unreadable as bad:
            raise self._damaged(bad) from None


class _Opened:
    """The shard of a source, open for one pass; a shard that cannot be opened has no rows, if that is allowed."""

    def __init__(self, source: SpanSource) -> None:
        self.source = source

    def __enter__(self) -> Reader:
        try:
            self.reader: Reader = self.source._open()
        except Damaged as error:
            self.source._left_out(error)
            self.reader = _Nothing()
        return self.reader

    def __exit__(self, *_: object) -> None:
        self.reader.close()


class _Nothing:
    """A reader of no rows."""

    rows = 0

    def pieces(self, first: int, stop: int, points: int) -> Iterator[Piece]:
        return iter(())

    def at(self, rows: np.ndarray) -> np.ndarray:
        return rows[:0]

    def keys(self, first: int, stop: int) -> list[str]:
        return []

    def name(self, row: int) -> None:
        return None

    def close(self) -> None:
        pass


def _check_shape(start: int, rows: np.ndarray, shapes: list[Any]) -> None:
    """Refuses points of another shape than the first ones."""
    shapes[1:] = [rows.shape[1:]]
    if shapes[0] != shapes[-1]:
        why = f"points must have one shape, but here it is {shapes[-1]}, and {shapes[0]} before"
        raise Unreadable(start, start + len(rows), why)


def hashes(keys: Iterable[str]) -> np.ndarray:
    """A whole number for each key: the same wherever the key stands."""
    digests = (hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(b"".join(digests), "<i8").astype(np.int64)


def cut(pieces: Iterable[Piece], points: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pieces of any length as blocks that end at multiples of `points`, with the numbers of their rows."""
    held: list[Piece] = []
    for first, rows in pieces:
        for start in range(first - first % points, first + len(rows), points):
            low = max(start, first)
            if held and held[0][0] // points != low // points:
                yield _joined(held)
                held = []
            held.append((low, rows[low - first : start + points - first]))
    if held:
        yield _joined(held)


def _joined(held: list[Piece]) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.concatenate([np.arange(first, first + len(rows)) for first, rows in held])
    return numbers, held[0][1] if len(held) == 1 else np.concatenate([rows for _, rows in held])


def _runs(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last + 1 of each run of numbers that follow each other."""
    if len(rows):
        ends = np.flatnonzero(np.diff(rows) > 1)
        starts = [0, *(ends + 1).tolist()]
        for a, b in zip(starts, [*ends.tolist(), len(rows) - 1], strict=True):
            yield int(rows[a]), int(rows[b]) + 1
