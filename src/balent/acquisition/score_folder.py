"""Scores of all points of shards: one file per shard in a folder, complete or not there.

A run that was stopped goes on where it was: `finished.jsonl` lists the shards whose scores are complete, and these are
not computed again. That they belong to the same model is checked on a few points. Rows that were left out have the
score NaN, and their shard is not listed as finished.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balent.acquisition.beside import ScoreTable
from balent.acquisition.score_file import table
from balent.data import outputs, shard_formats, storage
from balent.data.formats.parquet import arrow
from balent.data.shard_formats.reader import Wanted
from balent.data.shards import Shards, Span
from balent.data.span_source import ROW, SHIFT, SpanSource
from balent.strategies.top_k import Best
from balent.types import Batch, Engine, Indices, Picks, Sampled

FINISHED = "finished.jsonl"
TRIED, POINTS = 100, 8  # finished shards of which some points are computed again, and how many
ROUNDING = 1e-5  # scores of a few points may differ by so much: other blocks round otherwise
TOGETHER = 1 << 16  # scores read at a time
ALIKE = 0.9  # of those points must agree


def is_folder(path: str | os.PathLike[str], shards: Shards) -> bool:
    """Do the scores go to a folder?  One shard may also have a file."""
    single = Path(path).suffix in (".npy", ".parquet")
    if single and len(shards.shards) > 1:
        raise ValueError(
            f"the scores of {len(shards.shards):,} shards are written to a folder, one file for each, but {path} is a "
            "file; name a folder"
        )
    return not single


@dataclass
class ScoreFolder:
    """A writer of scores, and a reader of those that are there. Use it in a `with` statement."""

    folder: Path
    shards: Shards
    names: list[str]  # of the measures
    seed: int
    done: set[int] = field(default_factory=set, init=False)
    _number: int | None = field(default=None, init=False)
    _rows: np.ndarray = field(default_factory=lambda: np.empty(0), init=False)
    _file: ExitStack = field(default_factory=ExitStack, init=False)

    def __enter__(self) -> "ScoreFolder":
        self.folder.mkdir(parents=True, exist_ok=True)
        self.files = [self.folder / name for name in file_names([shard.path for shard in self.shards.shards])]
        finished = _lines(self.folder / FINISHED)
        there = (i for i, file in enumerate(self.files) if self._line(i) in finished and file.exists())
        self.done = set(there)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self._file.__exit__(kind, error, trace)
            return
        self._finish()
        for number, shard in enumerate(self.shards.shards):
            if shard.rows == 0 and number not in self.done:
                self._begin(number)
                self._finish()

    def write(self, positions: Indices, scores: torch.Tensor) -> None:
        """The scores of a block, which lies in one shard."""
        number = int(positions[0]) >> SHIFT
        if number in self.done:
            return
        if number != self._number:
            self._finish()
            self._begin(number)
        self._rows[(positions & ROW).numpy()] = scores.numpy()

    def picks(self, sampled: Sampled, engine: Engine, fold: ScoreTable, k: int) -> Picks:
        """The k best by the first measure: what is not finished is computed, all else is read."""
        self._check(sampled, engine, fold)
        engine.scan(sampled, Unfinished(self.shards, self.done), fold)
        self._finish()
        best = Best(k)
        for number, file in enumerate(self.files):
            for positions, scores in _stored(file, number) if file.exists() else ():
                best.add(scores, positions)
        return best.picks()

    def _check(self, sampled: Sampled, engine: Engine, fold: ScoreTable) -> None:
        """Refuses a folder with scores of another model."""
        tried = [i for i in sorted(self.done) if self.shards.shards[i].rows][:: max(1, len(self.done) // TRIED)]
        stored = [next(_stored(self.files[i], i)) for i in tried]
        if not stored:
            return
        at = torch.cat([positions[:POINTS] for positions, _ in stored])
        before = torch.cat([scores[:POINTS] for _, scores in stored])

        def first(sampled: Sampled, batch: Batch, positions: Indices) -> torch.Tensor:
            return fold.scores(sampled, batch, positions)[:, 0]

        now = engine.read(sampled, self.shards, at, first).double()
        if torch.isclose(now, before, rtol=ROUNDING, atol=0).double().mean() < ALIKE:
            raise ValueError(
                f"{self.folder} holds scores of another model: that of point {int(at[0])} is {float(before[0]):.6g} "
                f"there, but {float(now[0]):.6g} now; name another folder, or delete this one"
            )

    def _line(self, number: int) -> str:
        return json.dumps({**asdict(self.shards.shards[number]), "measures": self.names, "seed": self.seed})

    def _begin(self, number: int) -> None:
        file = self.files[number]
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.enter_context(outputs.whole(file))
        first = number << SHIFT
        self._rows = self._file.enter_context(
            table(partial, file.suffix, self.names, self.shards.shards[number].rows, first)
        )
        self._rows[:] = np.nan  # a full file, or rows that were left out
        self._number = number

    def _finish(self) -> None:
        if self._number is None:
            return
        complete = not np.isnan(self._rows).any()
        self._file.close()
        if complete:
            with (self.folder / FINISHED).open("a", encoding="utf-8") as file:
                file.write(f"{self._line(self._number)}\n")
            self.done.add(self._number)
        self._number = None


@dataclass(frozen=True)
class Unfinished:
    """A source of the shards without those that are done."""

    shards: Shards
    done: set[int]

    @property
    def size(self) -> int:
        return sum(shard.rows for number, shard in enumerate(self.shards.shards) if number not in self.done)

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


def file_names(paths: Sequence[str]) -> list[str]:
    """The name of each shard below the folder that they share; .npy, unless shards are .parquet."""
    folders = [path.split("/")[:-1] for path in paths]
    shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False)))
    return [_file_name("/".join(path.split("/")[shared:])) for path in paths]


def _file_name(path: str) -> str:
    ending = shard_formats.ending(path)
    if ending is None:
        return "images.npy" if not path.strip("/") or storage.is_pattern(path) else f"{path.strip('/')}.npy"
    return path if ending in (".parquet", ".npy") else f"{path[: -len(ending)]}.npy"


def _stored(file: Path, number: int) -> Iterator[tuple[Indices, torch.Tensor]]:
    """Positions and scores of a file, some at a time, without rows that were left out."""
    first = number << SHIFT
    for start, rows in _read(file):
        scores = rows[:, 0].astype(np.float64)
        kept = ~np.isnan(scores)
        yield torch.from_numpy(first + start + np.flatnonzero(kept)), torch.from_numpy(scores[kept])


def _read(file: Path) -> Iterator[tuple[int, np.ndarray]]:
    """Rows of scores, each piece with the number of its first row."""
    reader = shard_formats.opened(str(file), Wanted(_columns(file), exact=True))
    try:
        yield from reader.pieces(0, reader.rows, TOGETHER)
    finally:
        reader.close()


def _columns(file: Path) -> str | None:
    """The first measure of a parquet file, which stands behind the points."""
    if file.suffix != ".parquet":
        return None
    _, parquet = arrow()
    return str(parquet.read_schema(file).names[1])


def _lines(path: Path) -> set[str]:
    return set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
