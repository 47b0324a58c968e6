"""Scores of all points of shards: one file per shard in a folder, complete or not there.

A run that was stopped goes on where it was: shards whose scores are complete are not computed again. That they belong
to the same model is checked on a few points. Rows that were left out have the score NaN, and their shard is not
finished.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balent.acquisition.passed import Passed
from balent.acquisition.score_file import table
from balent.acquisition.shard_files import ShardFiles
from balent.data import shard_formats
from balent.data.formats.parquet import arrow
from balent.data.shard_formats.reader import Wanted
from balent.data.shards import Shards
from balent.data.span_source import SHIFT
from balent.strategies.top_k import Best
from balent.types import Batch, Engine, Indices, Picks, Sampled

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


class ScoreFolder:
    """A writer of scores, and a reader of those that are there. Use it in a `with` statement."""

    def __init__(self, folder: Path, shards: Shards, names: list[str], seed: int) -> None:
        self.folder, self.shards = folder, shards
        self.files = ShardFiles(folder, shards, self._table, {"measures": names, "seed": seed})
        self.names = names

    def __enter__(self) -> "ScoreFolder":
        self.files.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        self.files.__exit__(kind, error, trace)

    def write(self, positions: Indices, scores: torch.Tensor) -> None:
        """The scores of a block, which lies in one shard."""
        self.files.write(positions, scores)

    def picks(self, sampled: Sampled, engine: Engine, fold: Passed, k: int) -> Picks:
        """The k best by the first measure: what is not finished is computed, all else is read."""
        self._check(sampled, engine, fold)
        engine.scan(sampled, self.files.unfinished(), fold)
        self.files.finish()
        best = Best(k)
        for number, file in enumerate(self.files.paths):
            for positions, scores in _stored(file, number) if file.exists() else ():
                best.add(scores, positions)
        return best.picks()

    def _check(self, sampled: Sampled, engine: Engine, fold: Passed) -> None:
        """Refuses a folder with scores of another model."""
        tried = [i for i in sorted(self.files.done) if self.shards.shards[i].rows][
            :: max(1, len(self.files.done) // TRIED)
        ]
        stored = [next(_stored(self.files.paths[i], i)) for i in tried]
        if not stored:
            return
        at = torch.cat([positions[:POINTS] for positions, _ in stored])
        before = torch.cat([scores[:POINTS] for _, scores in stored])

        def first(sampled: Sampled, batch: Batch, positions: Indices) -> torch.Tensor:
            return fold.what(sampled, batch, positions)[:, 0]

        now = engine.read(sampled, self.shards, at, first).double()
        if torch.isclose(now, before, rtol=ROUNDING, atol=0).double().mean() < ALIKE:
            raise ValueError(
                f"{self.folder} holds scores of another model: that of point {int(at[0])} is {float(before[0]):.6g} "
                f"there, but {float(now[0]):.6g} now; name another folder, or delete this one"
            )

    def _table(self, partial: Path, number: int) -> AbstractContextManager[np.ndarray]:
        rows = self.shards.shards[number].rows
        return table(partial, self.files.paths[number].suffix, self.names, rows, number << SHIFT)


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
