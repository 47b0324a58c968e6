"""A file of rows for each shard of a pool, in a folder: each complete or not there.

`finished.jsonl` lists the shards whose files are complete, with the settings that they were made with. A run that was
stopped goes on with the others. Rows that are not written stay NaN.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balent.data import outputs, shard_formats, storage
from balent.data.damage import Skipped
from balent.data.shard_paths import short
from balent.data.shards import Shards, Span
from balent.data.span_source import ROW, SHIFT, SpanSource
from balent.types import Indices

FINISHED = "finished.jsonl"
Table = Callable[[Path, int], AbstractContextManager[np.ndarray]]


@dataclass
class ShardFiles:
    """A writer of rows. Use it in a `with` statement.

    folder   where the files are written
    shards   the pool
    table    a table to fill, which becomes this file: for the shard of this number
    about    settings that decide the rows: with others, a shard is not finished
    suffix   of the files; None: .parquet for parquet shards, else .npy
    gaps     a file with rows that were not written counts as finished, in runs that allow it
    """

    folder: Path
    shards: Shards
    table: Table
    about: dict[str, Any]
    suffix: str | None = None
    gaps: bool = False
    done: set[int] = field(default_factory=set, init=False)
    _number: int | None = field(default=None, init=False)
    _written: int = field(default=0, init=False)
    _rows: np.ndarray = field(default_factory=lambda: np.empty(0), init=False)
    _file: ExitStack = field(default_factory=ExitStack, init=False)

    def __enter__(self) -> "ShardFiles":
        self.folder.mkdir(parents=True, exist_ok=True)
        names = file_names([shard.path for shard in self.shards.shards], self.suffix)
        self.paths = [self.folder / name for name in names]
        finished = lines(self.folder / FINISHED)
        allowed = (False, True) if self.gaps else (False,)
        self.done = {
            i
            for i, file in enumerate(self.paths)
            if file.exists() and any(self._line(i, gaps) in finished for gaps in allowed)
        }
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self._file.__exit__(kind, error, trace)
            return
        self.finish()
        for number, shard in enumerate(self.shards.shards):
            if shard.rows == 0 and number not in self.done:
                self._begin(number)
                self.finish()

    def write(self, positions: Indices, rows: torch.Tensor) -> None:
        """The rows of some points, which lie in one shard; those of a shard follow each other."""
        number = int(positions[0]) >> SHIFT
        if number in self.done:
            return
        if number != self._number:
            self.finish()
            self._begin(number)
        self._rows[(positions & ROW).numpy()] = rows.numpy()
        self._written += len(positions)
        if self._written == self.shards.shards[number].rows:
            self.finish()

    def unfinished(self) -> "Unfinished":
        """A source of the shards that are left."""
        return Unfinished(self.shards, set(self.done))

    def finish(self) -> None:
        """The file of the last shard that was written to is complete."""
        if self._number is None:
            return
        gaps = self._written < self.shards.shards[self._number].rows
        self._file.close()
        if self.gaps or not gaps:
            with (self.folder / FINISHED).open("a", encoding="utf-8") as file:
                file.write(f"{self._line(self._number, gaps)}\n")
            self.done.add(self._number)
        self._number = None

    def _line(self, number: int, gaps: bool = False) -> str:
        return json.dumps({**asdict(self.shards.shards[number]), **self.about, **({"gaps": True} if gaps else {})})

    def _begin(self, number: int) -> None:
        file = self.paths[number]
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.enter_context(outputs.whole(file))
        self._rows = self._file.enter_context(self.table(partial, number))
        self._rows[:] = np.nan  # a full file, or rows that were left out
        self._number, self._written = number, 0


@dataclass(frozen=True)
class Unfinished:
    """A source of the shards without those that are done."""

    shards: Shards
    done: set[int]

    @property
    def size(self) -> int:
        return sum(shard.rows for number, shard in enumerate(self.shards.shards) if number not in self.done)

    @property
    def positions(self) -> Indices:
        return torch.cat([torch.empty(0, dtype=torch.int64), *self.pieces()])

    def pieces(self) -> Iterator[Indices]:
        for span in self.spans(1 << 20):
            if len(found := self.part(span).positions):
                yield found

    def at(self, positions: Indices) -> np.ndarray:
        return self.shards.at(positions)

    @property
    def skipped(self) -> list[Skipped]:
        return self.shards.skipped

    @property
    def keyed(self) -> bool:
        return self.shards.keyed

    def keys(self, positions: Indices) -> Indices:
        return self.shards.keys(positions)

    def blocks(self, points: int) -> Iterator[tuple[np.ndarray, Indices]]:
        for number, shard in enumerate(self.shards.shards):
            if number not in self.done:
                yield from self.shards.part(Span(number, 0, shard.rows)).blocks(points)

    def spans(self, rows: int) -> list[Span]:
        return [span for span in self.shards.spans(rows) if span.shard not in self.done]

    def part(self, span: Span) -> SpanSource:
        return self.shards.part(span)


def file_names(paths: Sequence[str], suffix: str | None = None) -> list[str]:
    """The name of each shard below the folder that they share; .npy or .parquet as the shard, or the suffix."""
    return [_file_name(path, suffix) for path in short(paths)]


def _file_name(path: str, suffix: str | None) -> str:
    ending = shard_formats.ending(path)
    if ending is None:
        path, ending = "images" if not path.strip("/") or storage.is_pattern(path) else path.strip("/"), ""
    bare = path[: len(path) - len(ending)]
    return bare + (suffix or (ending if ending == ".parquet" else ".npy"))


def lines(path: Path) -> set[str]:
    return set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
