"""From functions and a pool to picks: streamed, so that memory does not grow with the pool.

A strategy sees a pool and a `Sampled`. What an engine adds is put around these two: batches that fit
a memory budget and are read ahead, smaller ones where memory runs out, progress, scores on the way
to a file. Strategies know nothing of it.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent import checks
from balent.acquisition.progress import counting
from balent.acquisition.score import FEWEST, stability
from balent.data import outputs
from balent.data.pool import Pool, as_pool
from balent.maths.error import groups_of, jackknife, merged
from balent.maths.measures import MEASURES, ranked
from balent.maths.moments import Moments
from balent.predictors.functions import as_tensor
from balent.predictors.inputs import take
from balent.strategies import Best, Race, TopK
from balent.strategies import strategy as named
from balent.strategies.blocks import length
from balent.types import Designed, Indices, Measure, Picks, Sampled, Strategy

MEMORY = 1 << 27  # bytes: 128 MB of logits, moments and inputs at a time
LARGEST = 1024  # points at a time: more is not faster


def acquire(
    sampled: Sampled,
    pool: Any,
    k: int,
    strategy: str | Strategy = "balentacq",
    *,
    seed: int = 0,
    draws: str | None = None,
    with_error: bool = False,
    measures: Sequence[str] = (),
    scores: str | os.PathLike[str] | None = None,
    memory: int = MEMORY,
    device: str | None = None,
    labelled: Any = None,
    progress: bool | Callable[[int, int | None], None] = False,
) -> Picks:
    """The k points of the pool to label next, best first.

    draws="auto" spends the draws of `sampled` where the top k is undecided, and says how many it took. `with_error`
    adds the standard error of each pick's score and the stability of the top k. `measures` are scored in the same pass;
    with the strategy's own they go to the file `scores` (.npy or .parquet), which appears when it is complete. `device`
    is where the functions are evaluated, if not where they are. `labelled` are inputs that have labels already, for
    strategies that keep away from these (core_set, diverse); others do not look at them.
    """
    sampled = sampled if device is None else _moved(sampled, device)
    chosen = _knowing(_strategy(strategy, draws), labelled)
    points = as_pool(pool)
    total = length(points)
    checks.batch_size(k, total)
    wanted = {name: ranked(f, checks.generator(seed)) for name, f in _wanted(chosen, measures).items()}
    _check(chosen, sampled, points, with_error, scores, measures)
    with counting(progress, total) as advance, _written(scores, list(wanted), total) as write:
        watched = Watched(sampled, _block(sampled, points, memory), Once(advance), write, wanted if scores else {})
        if with_error:
            watched = replace(watched, halves=_halves(chosen, k), measure=getattr(chosen, "measure", None))
        picks = chosen(watched, points, k, generator=checks.generator(seed))
    return _with_error(sampled, points, picks, watched) if with_error else picks


@dataclass
class Once:
    """Counts each point once, in whatever parts and passes it comes: the first time, points come in order."""

    advance: Callable[[int], None]
    furthest: int = -1

    def __call__(self, positions: Indices) -> None:
        new = int((positions > self.furthest).sum())
        if new:
            self.furthest = int(positions.max())
            self.advance(new)


@dataclass(frozen=True)
class Watched:
    """A Sampled that reports what it has done, keeps scores, and halves a batch that does not fit in memory."""

    sampled: Any
    block: int
    advance: Callable[[Indices], None]
    write: Callable[[Indices, Tensor], None]
    measures: dict[str, Measure]
    halves: tuple[Best, ...] = ()
    measure: Measure | None = None

    @property
    def n(self) -> int:
        return self.sampled.n

    @property
    def masks(self) -> Any:
        return getattr(self.sampled, "masks", None)

    def part(self, start: int, stop: int) -> "Watched":
        """Some of the draws."""
        return replace(self, sampled=self.sampled.part(start, stop))

    def __call__(self, batch: Any, positions: Indices | None = None) -> Any:
        draws = self.sampled(batch, positions)
        if positions is not None:
            self.advance(positions)
        return draws

    def features(self, batch: Any) -> Any:
        return self.sampled.features(batch)

    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        return merged(self.groups(batch, positions, 2 if self.halves else 1))

    def groups(self, batch: Any, positions: Indices | None, count: int) -> list[Moments]:
        if positions is None:
            return self._groups(batch, None, count)
        found = _fitting(lambda x, at: self._groups(x, at, count), batch, positions)
        total = merged(found)
        if self.measure is not None and len(found) == len(self.halves):
            for half, m in zip(self.halves, found, strict=True):
                half.add(self.measure(m), positions)
        if self.measures:
            self.write(positions, torch.stack([f(total).cpu() for f in self.measures.values()], 1))
        self.advance(positions)
        return found

    def _groups(self, batch: Any, positions: Indices | None, count: int) -> list[Moments]:
        if count == 1:
            return [self.sampled.moments(batch, positions)]
        return groups_of(self.sampled, batch, positions, count)


def _fitting(work: Callable[[Any, Indices], list[Moments]], batch: Any, positions: Indices) -> list[Moments]:
    """The work on the batch, or on halves of it where memory runs out."""
    try:
        return work(batch, positions)
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if len(positions) == 1 or not _out_of_memory(error):
            raise
    middle = len(positions) // 2
    halves = (slice(0, middle), slice(middle, None))
    parts = [(take(batch, half), positions[half]) for half in halves]
    return [Moments.cat(pair) for pair in zip(*(_fitting(work, *part) for part in parts), strict=True)]


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "not enough memory" in str(error)


def _moved(sampled: Any, device: str) -> Any:
    if not hasattr(sampled, "to"):
        raise ValueError(f"{type(sampled).__name__} stays where it is; leave device out")
    return sampled.to(device)


def _strategy(strategy: str | Strategy, draws: str | None) -> Strategy:
    chosen = named(strategy) if isinstance(strategy, str) else strategy
    if draws is None:
        return chosen
    if draws != "auto":
        raise ValueError(
            f'draws must be "auto" or left out, but is {draws!r}; their number is that of predictor.sample'
        )
    if not isinstance(chosen, TopK):
        raise ValueError(f'draws="auto" needs the top k of a measure, but the strategy is {strategy}')
    return Race(chosen.measure)


def _knowing(chosen: Any, labelled: Any) -> Strategy:
    """The strategy, told what has labels, if it has a place for that."""
    if labelled is None or not hasattr(chosen, "labelled"):
        return chosen
    known = as_pool(labelled)
    if not isinstance(known, Pool):
        raise TypeError("labelled inputs must have a length, as arrays and Datasets do, not come as a stream")
    return replace(chosen, labelled=known)


def _check(chosen: Strategy, sampled: Any, pool: Any, with_error: bool, scores: Any, measures: Sequence[str]) -> None:
    """What cannot be done, before any work is."""
    measured, racing = hasattr(chosen, "measure"), isinstance(chosen, Race)
    if with_error and not (measured and isinstance(pool, Pool)):
        raise ValueError("errors belong to the scores of a measure over a pool that can be read twice")
    if with_error and isinstance(sampled, Designed) and not sampled.independent:
        raise ValueError(
            "with_error=True (--error) needs independent draws, but stratified and matched ones depend on each other: "
            'errors over groups of them are too large; use design="independent", or leave with_error out'
        )
    if measures and scores is None:
        raise ValueError('several measures go to a file: name it with scores="scores.npy" or .parquet')
    if scores is not None and not measured:
        raise ValueError("this strategy scores no points, so there is nothing to write; use that of a measure")
    if scores is not None and racing:
        raise ValueError(
            'draws="auto" gives most points few draws, so their scores are rough; leave it out to write them'
        )
    if racing and not (hasattr(sampled, "part") and isinstance(pool, Pool)):
        raise ValueError(
            'draws="auto" reads some points again, with more draws: it needs a pool that can be read twice, and '
            "functions drawn in parts, as MCDropout's"
        )


def _wanted(chosen: Strategy, measures: Sequence[str]) -> dict[str, Measure]:
    """The strategy's own measure and the others asked for, by name."""
    own = getattr(chosen, "measure", None)
    first = {getattr(own, "__name__", "score"): own} if own is not None else {}
    return {**first, **{name: checks.lookup(MEASURES, name, "measure") for name in measures}}


def _halves(chosen: Strategy, k: int) -> tuple[Best, ...]:
    return (Best(k), Best(k)) if isinstance(chosen, TopK) else ()


def _block(sampled: Any, pool: Any, memory: int) -> int:
    """So many points that logits, moments and inputs of a batch fit the budget; two points are tried."""
    if not isinstance(pool, Pool):
        return LARGEST
    few = torch.arange(min(2, len(pool)))
    batch = pool[few]
    classes = _tried(sampled, batch, few).mean.shape[1]
    values = batch.values() if isinstance(batch, Mapping) else [batch]
    inputs = sum(np.prod(np.shape(value)[1:]) * 4 for value in values)
    each = 8 * getattr(sampled, "n", 1) * classes + 24 * classes + 4 * inputs
    return int(max(1, min(getattr(sampled, "block", LARGEST), LARGEST, memory // max(1, each))))


def _tried(sampled: Any, batch: Any, few: Indices) -> Moments:
    """The first points, scored. Where whole numbers are refused, torch speaks of matrices and not of the pool."""
    try:
        return sampled.moments(batch, few)
    except RuntimeError as error:
        whole = isinstance(batch, np.ndarray | Tensor) and not torch.is_floating_point(as_tensor(batch))
        if not whole or _out_of_memory(error):
            raise
        raise TypeError(
            f"the model does not take a pool of {batch.dtype}: {error}; if it was trained on floating-point numbers, "
            "convert the pool in the same way, as in x.astype('float32')"
        ) from error


def _with_error(sampled: Sampled, pool: Any, picks: Picks, watched: Watched) -> Picks:
    """The standard error of each pick, from its draws made once more, and the agreement of the halves."""
    at, measure = torch.as_tensor(picks.indices), watched.measure
    assert measure is not None  # `_check` has seen to it
    groups = groups_of(sampled, pool[at], at)
    checks.enough_draws(sum(m.n for m in groups), 2)
    share = stability(list(watched.halves)) if watched.halves and sum(m.n for m in groups) >= FEWEST else None
    return replace(picks, errors=jackknife(groups, measure), stability=share)


@contextmanager
def _written(
    path: str | os.PathLike[str] | None, names: list[str], total: int | None
) -> Iterator[Callable[[Indices, Tensor], None]]:
    """A writer of scores by position. The file appears under its name when all went well, else not at all."""
    if path is None:
        yield lambda positions, scores: None
        return
    if total is None:
        raise ValueError(
            "scores of a stream of unknown length cannot be written; pass an array, a Dataset or a DataLoader"
        )
    target = Path(path)
    table_in = checks.lookup({".npy": _npy, ".parquet": _parquet}, target.suffix, "writer for files ending in")
    with outputs.whole(target) as partial, table_in(partial, names, total) as table:

        def write(positions: Indices, scores: Tensor) -> None:
            table[positions.numpy()] = scores.numpy()

        yield write


@contextmanager
def _npy(path: Path, names: list[str], total: int) -> Iterator[np.ndarray]:
    """A table to fill, which is the file."""
    table = np.lib.format.open_memmap(path, "w+", np.float64, (total, len(names)))
    _reserve(path)
    yield table
    table.flush()


@contextmanager
def _parquet(path: Path, names: list[str], total: int) -> Iterator[np.ndarray]:
    """A table to fill, which becomes the file when it is full."""
    import pyarrow
    from pyarrow import parquet

    rough = outputs.fresh(outputs.unused(path.parent, "scores"), mode=0o600)
    with rough as beside, _npy(beside, names, total) as table:
        yield table
        columns = {"point": np.arange(len(table)), **dict(zip(names, table.T, strict=True))}
        parquet.write_table(pyarrow.table(columns), path)


def _reserve(path: Path) -> None:
    """Room on the disk for all of the file: where a disk is full, a mapped file ends the process without a word."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
