"""A pool in many files, here or in object storage: 10⁸ points and more, read a block at a time.

`position = (number of the shard << 32) | row`, and the number of a shard is its line in an append-only manifest. So a
position can be turned back into a file and a row, and stays when shards are added. Blocks are cut from the start of
each shard and never span two of them. No rows are kept, and positions of all points are only made if somebody asks for
them: they take 8 bytes each.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balent.data import manifest, shard_formats
from balent.data.damage import Damaged, Skipped
from balent.data.manifest import Shard
from balent.data.shard_formats.reader import Unreadable, Wanted
from balent.data.shard_paths import Given, paths
from balent.data.span_source import ROW, SHIFT, SpanSource
from balent.types import Indices

OPEN = 8  # shards that are kept open for reading points again


@dataclass(frozen=True)
class Span:
    """Rows first..first + rows - 1 of a shard: what one worker reads at a time."""

    shard: int
    first: int
    rows: int


@dataclass
class Shards:
    """A source of points. `skipped` lists what could not be read, if `skip_bad` lets reading go on without it."""

    shards: tuple[Shard, ...]
    wanted: Wanted = field(default_factory=Wanted)
    skip_bad: bool = False
    skipped: list[Skipped] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        given: Given | Sequence[Given],
        *,
        column: str | None = None,
        key: str | None = None,
        size: int = 224,
        manifest: Given | None = None,
        skip_bad: bool = False,
    ) -> "Shards":
        """A pool of files.

        given     a file, a folder or a pattern of .npy, .parquet, .tar (WebDataset), .arrow (Hugging Face) or images,
                  or a list of them; s3://… and other schemes of fsspec
        column    of tables: the points, or several columns with commas between; by default the column of lists of
                  numbers or of images, else all columns of numbers. Of .tar: the ending, such as jpg
        key       the column that identifies a point: noise then does not depend on how the pool is cut into files.
                  "__key__" of .tar, "path" of images
        size      pixels per side of images
        manifest  a file for the list of shards: it is made, or continued with shards that are new
        skip_bad  go on without what cannot be read, and list it in `skipped`
        """
        return cls.wanting(given, Wanted(column, key, size), manifest, skip_bad)

    @classmethod
    def wanting(
        cls, given: Given | Sequence[Given], wanted: Wanted, saved: Given | None = None, skip_bad: bool = False
    ) -> "Shards":
        """As `of`, with all that can be said of how rows are read."""

        def rows(path: str) -> int:
            return _rows(path, wanted)

        place = None if saved is None else Path(os.fspath(saved))
        found = manifest.listing(paths(given), rows, shard_formats.about, place, skip_bad)
        return cls(found.shards, wanted, skip_bad, list(found.skipped))

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[int, SpanSource] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_open")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    # ── a source ─────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return self.size

    @property
    def size(self) -> int:
        less = {entry.path for entry in self.skipped}
        return sum(
            self.part(Span(number, 0, shard.rows)).size if shard.path in less else shard.rows
            for number, shard in enumerate(self.shards)
        )

    @property
    def positions(self) -> Indices:
        """Of all points: 8 bytes each. `pieces` gives the same without keeping them."""
        return torch.cat([torch.empty(0, dtype=torch.int64), *self.pieces()])

    def pieces(self) -> Iterator[Indices]:
        """The positions of all points in order, a million at a time at most."""
        for span in self.spans(1 << 20):
            found = self.part(span).positions
            if len(found):
                yield found

    def blocks(self, points: int) -> Iterator[tuple[np.ndarray, Indices]]:
        """Rows and their positions, cut from the start of each shard."""
        shape = None
        for number, shard in enumerate(self.shards):
            for rows, positions in self.part(Span(number, 0, shard.rows)).blocks(points):
                shape = rows.shape[1:] if shape is None else shape
                self._check_shape(rows, shape, positions)
                yield rows, positions

    def at(self, positions: Indices) -> np.ndarray:
        """These points, in the order given; each shard is read in its own order."""
        found: np.ndarray | None = None
        for number, where in self._by_shard(positions):
            with self._lock:
                rows = self._source(number).at(positions[where])
            found = np.empty((len(positions), *rows.shape[1:]), rows.dtype) if found is None else found
            self._check_shape(rows, found.shape[1:], positions[where])
            found[where.numpy()] = rows
        return np.empty((0,)) if found is None else found

    # ── identity ─────────────────────────────────────────────────────────────────────────────────

    @property
    def keyed(self) -> bool:
        """Is there a key column?  Masks and noise then belong to keys, not to positions."""
        return self.wanted.key is not None

    def keys(self, positions: Indices) -> Indices:
        """64-bit hashes of the key column; the positions themselves if there is none."""
        if not self.keyed:
            return positions
        found = torch.empty_like(positions)
        for number, where in self._by_shard(positions):
            with self._lock:
                found[where] = self._source(number).keys(positions[where])
        return found

    def ids(self, positions: Indices) -> list[str]:
        """The key of each point, or the path of an image, or path#row."""
        found = [""] * len(positions)
        for number, where in self._by_shard(positions):
            with self._lock:
                names = self._source(number).ids(positions[where])
            for i, name in zip(where.tolist(), names, strict=True):
                found[i] = name
        return found

    def locate(self, position: int) -> tuple[str, int]:
        """The file and the row of a point."""
        number, row = int(position) >> SHIFT, int(position) & ROW
        if not 0 <= number < len(self.shards) or row >= self.shards[number].rows:
            raise ValueError(f"there is no point at position {position}; this pool has {len(self.shards):,} shards")
        return self.shards[number].path, row

    # ── for workers ──────────────────────────────────────────────────────────────────────────────

    def spans(self, rows: int) -> list[Span]:
        """All rows in spans of at most this many, none of which is in two shards."""
        if rows < 1:
            raise ValueError(f"a span must have at least one row, but rows is {rows}")
        return [
            Span(number, first, min(rows, shard.rows - first))
            for number, shard in enumerate(self.shards)
            for first in range(0, shard.rows, rows)
        ]

    def part(self, span: Span) -> SpanSource:
        """The rows of a span as a source that a worker opens by itself.

        Its blocks are those of a pass over all, where `points` divides the number of its first row.
        """
        shard = self.shards[span.shard]
        mine = [entry for entry in self.skipped if entry.path == shard.path]
        return SpanSource(shard, span.shard, span.first, span.rows, self.wanted, self.skip_bad, mine, self._report)

    def leave_out(self, error: Damaged) -> bool:
        """Goes on without these rows, if that is allowed; False if it is not, or if it would change nothing."""
        if not self.skip_bad or error.skipped in self.skipped:
            return False
        self._report(error.skipped)
        return True

    def _report(self, entry: Skipped) -> None:
        self.skipped.append(entry)
        with self._lock:
            while self._open:  # they do not know of it
                self._open.popitem()[1].close()

    def _check_shape(self, rows: np.ndarray, shape: tuple[int, ...], positions: Indices) -> None:
        if rows.shape[1:] != shape:
            path, row = self.locate(int(positions[0]))
            raise ValueError(
                f"points must have one shape, but those of {path}, row {row}, have {rows.shape[1:]}, others {shape}; "
                "choose shards of one kind, or a column of one shape"
            )

    def _by_shard(self, positions: Indices) -> Iterator[tuple[int, Indices]]:
        """The number of each shard, and which of the positions are in it."""
        numbers = positions >> SHIFT
        for number in numbers.unique().tolist():
            if not 0 <= number < len(self.shards):
                self.locate(int(positions[numbers == number][0]))
            yield number, (numbers == number).nonzero()[:, 0]

    def _source(self, number: int) -> SpanSource:
        """A shard, kept open."""
        if number not in self._open:
            self._open[number] = replace(self.part(Span(number, 0, self.shards[number].rows)), report=None)
            while len(self._open) > OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(number)
        return self._open[number]


def _rows(path: str, wanted: Wanted) -> int:
    """The number of rows, from a header or a footer."""
    try:
        reader = shard_formats.opened(path, wanted)
    except Unreadable as bad:
        raise Damaged(path, 0, None, bad.why) from None
    try:
        return reader.rows
    finally:
        reader.close()
