"""The engine of a cluster: spans of a pool go to workers, and their folds are merged in the order of the pool.

A list of spans is all that Ray carries of the pool: a worker opens and reads its span itself. It runs the local engine
on it, with blocks of one size, so each block is evaluated as one process would do it, and picks are the same bit for
bit. An array in memory is put into the object store once: that is for small pools.
"""

import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from balent.acquisition.engines.cluster import Cluster, Reference, awaited, end, pickled
from balent.acquisition.engines.crew import Crew, Job, Say
from balent.acquisition.engines.likeness import Likeness
from balent.acquisition.engines.local import LARGEST, MEMORY, Local
from balent.acquisition.engines.mapped_pool import portable
from balent.acquisition.engines.span_journal import Beginning, SpanJournal, folder
from balent.acquisition.engines.span_worker import Done, Work, tensors
from balent.types import Fold, Folded, HasState, Indices, Reading, Rereadable, Sampled, Skips, Source, Spanned

SPAN = 65_536  # rows: some seconds of work
FEW = 4  # blocks that are read in this process: sooner done than sent
TRIED = 64  # points of a reading that tell two models apart
SHIPPED = 4  # models and sources in the object store


@dataclass
class RayEngine:
    """Workers on Ray.

    address    of a cluster, such as "auto"; None: one is started on this machine, and ended with this engine
    workers    processes; None: as many as there are CPUs for
    span_rows  points that a worker reads at a time: a multiple of 1,024
    journal    a folder for finished spans: the same call goes on from there if this process dies; None: no journal
    memory     bytes for one block of points
    count      is called with the number of new points, in the first scan
    say        is called with messages for the user: workers that died or were not used

    Workers stay until `close`, or the end of a `with`.
    """

    address: str | None = None
    workers: int | None = None
    span_rows: int = SPAN
    journal: str | os.PathLike[str] | None = None
    memory: int = MEMORY
    count: Callable[[int], None] | None = None
    say: Say = warnings.warn
    _cluster: Cluster | None = field(default=None, init=False, repr=False)
    _crew: Crew | None = field(default=None, init=False, repr=False)
    _shipped: list[tuple[object, Reference]] = field(default_factory=list, init=False, repr=False)
    _scanned: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.span_rows < 1 or self.span_rows % LARGEST:
            raise ValueError(
                f"span_rows must be a multiple of {LARGEST:,}, so that blocks do not depend on it, but is "
                f"{self.span_rows:,}; use {max(1, round(self.span_rows / LARGEST)) * LARGEST:,}"
            )

    # ── an engine ────────────────────────────────────────────────────────────────────────────────

    def scan(self, sampled: Sampled, source: Source, fold: Folded) -> Folded:
        """One pass over the pool."""
        empty, spans = pickled(fold), _spanned(source).spans(self.span_rows)
        first, self._scanned = not self._scanned, True

        def jobs() -> list[Job]:
            work = self._work(sampled, source, empty)
            return [Job(_fold(work, span), f"span {i:,} of {len(spans):,}, {span}") for i, span in enumerate(spans)]

        journal = None if self.journal is None else self._scan_journal(sampled, source, spans, fold, empty)
        for done in self._done(len(spans), jobs, journal, first):
            fold = fold.merge(_filled(pickle.loads(empty), done.result))
            if isinstance(source, Skips):
                source.skipped.extend(entry for entry in done.skipped if entry not in source.skipped)
        return fold

    def read(self, sampled: Sampled, source: Rereadable, positions: Indices, what: Reading) -> Tensor:
        """A reading of some points, in the order given; they are read in the order of the pool."""
        local, block = self._local(sampled, source)
        if len(positions) <= FEW * block:
            return local.read(sampled, source, positions, what)
        order = positions.argsort(stable=True)
        parts = positions[order].split(FEW * block)

        def jobs() -> list[Job]:
            work = self._work(sampled, source, what)
            return [Job(_read(work, part), f"reading {i:,} of {len(parts):,}") for i, part in enumerate(parts)]

        journal = None if self.journal is None else self._read_journal(sampled, source, positions[order], what)
        rows = [tensors(cast(Any, done.result))["rows"] for done in self._done(len(parts), jobs, journal)]
        return torch.cat(rows)[order.argsort()]

    def try_out(self, sampled: Sampled, source: Source) -> None:
        """Evaluates two points, so that a pool that does not fit the model is refused before any work."""
        Local(self.memory).try_out(sampled, source)

    def begin(self, count: Callable[[int], None]) -> None:
        """Counts the points of the next scan."""
        self.count, self._scanned = count, False

    # ── its workers ──────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers, and the cluster if it was started here."""
        self._dismiss()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _dismiss(self) -> None:
        if self._crew is not None:
            end([*self._crew.workers, *self._crew.missing.values()])
            self._crew = None
        self._shipped.clear()

    def _ready(self) -> tuple[Cluster, Crew]:
        """The workers; they are started when they are needed for the first time."""
        if self._cluster is None:
            self._cluster = Cluster.joined(self.address, self.workers)
        if self._crew is None:
            self._crew = Crew(self._cluster.workers(self.workers), self.say)
            awaited(self._crew.workers, self.say)
        return self._cluster, self._crew

    def _done(
        self, count: int, jobs: Callable[[], list[Job]], journal: SpanJournal | None, counted: bool = False
    ) -> Iterator[Done]:
        """Each job in its turn, from the journal or from a worker. Nothing is started if all of them are finished."""
        finished = {} if journal is None else journal.finished()

        def arrived(done: Done) -> None:
            if counted and self.count is not None:
                self.count(done.points)

        left = [number for number in range(count) if number not in finished]
        new = self._new(left, jobs, journal, arrived) if left else iter(())
        for number in range(count):
            if journal is not None and number in finished:
                done = journal.load(number, finished[number])
                arrived(done)
                yield done
            else:
                yield next(new)
        next(new, None)  # its end: one that is given up before it ends its workers

    def _new(
        self,
        left: Sequence[int],
        jobs: Callable[[], list[Job]],
        journal: SpanJournal | None,
        arrived: Callable[[Done], None],
    ) -> Iterator[Done]:
        """The jobs that workers do. After an error or an interrupt none of them goes on."""

        def here(turn: int, done: Done) -> None:
            if journal is not None:
                journal.add(left[turn], done)
            arrived(done)

        try:
            given = jobs()
            _, crew = self._ready()
            yield from crew.results([given[number] for number in left], here)
        except BaseException:
            self._dismiss()
            raise

    def _scan_journal(
        self, sampled: Sampled, source: Source, spans: Sequence[Any], fold: Fold, empty: bytes
    ) -> SpanJournal:
        """Of a pass with this fold; the first block of the pool stands for the model."""
        if not isinstance(fold, HasState):
            raise TypeError(
                "a journal keeps folds as tensors, so a fold must have state() and load_state(state), but "
                f"{type(fold).__name__} has none; give it both, or leave the journal (--resume) out"
            )
        (_, block), trial = self._local(sampled, source), pickle.loads(empty)
        if spans:
            Local(block=block).scan(sampled, Beginning(_spanned(source).part(spans[0])), trial)
        facts = ("scan", asdict(Likeness.here()), block, list(spans), source, fold, trial.state())
        return SpanJournal.of(folder(cast(Any, self.journal)), *facts)

    def _read_journal(self, sampled: Sampled, source: Rereadable, positions: Indices, what: Reading) -> SpanJournal:
        """Of a reading; its first points stand for the model."""
        local, block = self._local(sampled, source)
        facts = ("read", asdict(Likeness.here()), block, positions, source, what)
        trial = local.read(sampled, source, positions[: min(block, TRIED)], what)
        return SpanJournal.of(folder(cast(Any, self.journal)), *facts, trial)

    def _work(self, sampled: Sampled, source: Source, what: object) -> Work:
        cluster, _ = self._ready()
        _, block = self._local(sampled, source)
        return Work(self._sent(sampled), self._sent(source), cluster.put(what), block)

    def _local(self, sampled: Sampled, source: Source) -> tuple[Local, int]:
        """The engine of this process, and the points per block."""
        local = Local(self.memory)
        block = local.block_of(sampled, source)
        return Local(self.memory, block=block), block

    def _sent(self, thing: object) -> Reference:
        """A reference to what each machine fetches once; the last ones stay there."""
        for known, reference in self._shipped:
            if known is thing:
                return reference
        cluster, _ = self._ready()
        self._shipped.append((thing, cluster.put(portable(thing))))
        del self._shipped[:-SHIPPED]
        return self._shipped[-1][1]


def _fold(work: Work, span: Any) -> Callable[[Any], Reference]:
    return lambda worker: worker.fold.remote(work, span)


def _read(work: Work, part: Indices) -> Callable[[Any], Reference]:
    return lambda worker: worker.read.remote(work, part)


def _filled(fold: Fold, result: Any) -> Fold:
    """The fold that a worker sent."""
    if not isinstance(fold, HasState):
        return cast(Fold, result)
    fold.load_state(tensors(result))
    return fold


def _spanned(source: Source) -> Spanned:
    if not isinstance(source, Spanned):
        raise TypeError(
            "engine='ray' needs a pool that workers can read in parts: an array, a Dataset or files (balent.Shards), "
            f"but it is {type(source).__name__}, which has no spans(rows) and part(span); use engine='local'"
        )
    return source
