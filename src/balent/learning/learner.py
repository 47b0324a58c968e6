"""Ask and tell: which points to label next, and what their labels are.

The only loop there is: a simulation, a labelling page and a folder of files all drive a Learner. What
happens is appended to a journal before it counts, so a process that dies is continued by making the
same Learner again: what was asked and not told is still pending, and no point is asked twice.
Fits depend on the labels that are told and on the seed, not on the order in which labels came.
"""

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor

from balent import checks
from balent.learning import checkpoint, randomness, records
from balent.learning import start as starts
from balent.learning.acquire import acquire
from balent.learning.labels import Event, Labels
from balent.learning.pool import Pool, as_pool
from balent.learning.remaining import Remaining, remaining
from balent.learning.seeds import seed_of
from balent.strategies import strategy as named
from balent.types import Picks, Sampled, Strategy

NUMBERS = {math.inf: "inf", -math.inf: "-inf"}  # JSON has no infinity

Positions = Sequence[int] | np.ndarray | Tensor
Say = Callable[[str], None]


class Learner:
    """A predictor, a pool, and what is told of its labels. `directory=None` keeps it in memory.

    `start` decides what is asked before a model can be trained (labels of two classes): "random" points, or a list of
    positions. `masks` are per point where predictor and strategy allow it, so that copies are not bought together, or
    as said; strategies that need functions of the whole pool (batch_bald, core_mse) share them always. `say` is called
    with what a person should know; by default it is a warning.
    """

    def __init__(
        self,
        predictor: Any,
        pool: Any,
        strategy: str | Strategy = "balentacq",
        *,
        seed: int = 0,
        directory: str | os.PathLike[str] | None = None,
        draws: int | str = 100,
        masks: str = "auto",
        start: Literal["random"] | Sequence[int] = "random",
        say: Say = warnings.warn,
    ) -> None:
        found = as_pool(pool)
        if not isinstance(found, Pool):
            raise TypeError("a Learner asks by position, so its pool must have a length and positions, not be a stream")
        self.predictor, self.pool, self.seed, self.say = predictor, found, seed, say
        self.strategy: Strategy = named(strategy) if isinstance(strategy, str) else strategy
        self.draws, self.masks = draws, randomness.masks(masks, predictor, self.strategy)
        self.start = start if isinstance(start, str) else _positions(start, len(found))
        self._fitted: dict[int, int] | None = None  # the labels of the last fit
        self._sampled: tuple[tuple[int, str], Sampled] | None = None
        self._open = contextlib.ExitStack()
        self._events: list[Event] = []
        self.directory = None if directory is None else Path(directory)
        name = strategy if isinstance(strategy, str) else repr(strategy)
        with contextlib.ExitStack() as opening:
            opening.callback(self.close)
            self._begin({"strategy": name, "seed": seed, "draws": draws, "masks": masks, "pool": len(found)})
            opening.pop_all()

    # ── what a driver does ──────────────────────────────────────────────────────────────────────────

    def ask(self, k: int) -> Picks:
        """The k points to label next, best first: now pending. Trains on all that is told, if that is not done yet."""
        left = list(self.labels.open(len(self.pool)))
        if not left:
            raise ValueError("nothing is left to ask: every point is told, pending or skipped")
        checks.batch_size(k, None)
        if k > len(left):
            self.say(f"{k} points were asked for, but {len(left)} are left: these are asked")
        k = min(k, len(left))
        picks = self._first(left, k) if self._is_start() else self._best(left, k)
        scores = [NUMBERS.get(score, score) for score in picks.scores.tolist()]
        self._happen({"event": "ask", "indices": picks.indices.tolist(), "scores": scores})
        return picks

    def tell(self, indices: Positions, labels: Positions, who: str | None = None) -> None:
        """The labels of points, asked or not, in any order, at any time. Telling again relabels: the last word wins."""
        positions, values = _positions(indices, len(self.pool)), _whole(labels, "labels")
        if len(positions) != len(values):
            raise ValueError(
                f"every point needs one label, but there are {len(positions)} points, {len(values)} labels"
            )
        if values and min(values) < 0:
            raise ValueError(f"labels must be 0..classes-1, but one is {min(values)}")
        if positions:
            self._happen({"event": "tell", "indices": positions, "labels": values, "who": who})

    def skip(self, indices: Positions, who: str | None = None) -> None:
        """Points that nobody can label: not trained on, and not asked again unless they are told."""
        positions = _positions(indices, len(self.pool))
        if positions:
            self._happen({"event": "skip", "indices": positions, "who": who})

    # ── what is known ───────────────────────────────────────────────────────────────────────────────

    @property
    def told(self) -> dict[int, int]:
        """Labels by position, in the order of the pool."""
        return dict(sorted(self.labels.told.items()))

    @property
    def pending(self) -> Picks:
        """What was asked and is neither told nor skipped, in the order it was asked."""
        waiting = self.labels.pending
        return Picks(
            torch.tensor([*waiting], dtype=torch.int64), torch.tensor([*waiting.values()], dtype=torch.float64)
        )

    def history(self, index: int) -> list[tuple[str | None, int]]:
        """Who gave which label to a point, in order."""
        return list(self.labels.history.get(index, []))

    def fit(self) -> None:
        """Train on everything that is told, unless the last fit did."""
        self._resume_fit()
        if self._fitted != self.labels.told:
            if self.directory is not None and checkpoint.is_warm(self.predictor):
                checkpoint.save(self.directory / "checkpoint.safetensors", self.predictor, events=len(self._events))
            self._fit(self.labels)

    def sampled(self, masks: str = "shared") -> Sampled:
        """Functions drawn from the posterior given everything told; `ask` scores with those of `self.masks`."""
        self.fit()
        key = (len(self.labels.told), masks)
        if self._sampled is None or self._sampled[0] != key:
            n = randomness.AUTO if self.draws == "auto" else self.draws
            drawn = self.predictor.sample(n, seed=seed_of(self.seed, "draws", key[0]), masks=masks)
            self._sampled = (key, drawn)
        return self._sampled[1]

    def close(self) -> None:
        """Let go of the directory."""
        self._open.close()

    def __enter__(self) -> "Learner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, settings: dict[str, Any]) -> None:
        given = None if isinstance(self.start, str) else self.start
        opening = {"event": "start", "format": records.FORMAT, **settings, "start": given or self.start}
        if self.directory is None:
            self._events, self.labels = [opening], Labels()
            return
        self._open.enter_context(records.locked(self.directory))
        note = records.repair(self._journal)
        if note:
            self.say(note)
        self._events = records.read(self._journal)
        initial = self.directory / "initial.safetensors"
        if self._events:
            agree(self.directory, self._events[0], opening)
            checkpoint.restore_initial(initial, self.predictor)
        else:
            checkpoint.save(initial, self.predictor)
            records.append(self._journal, opening)
            self._events = [opening]
        self.labels = Labels.of(self._events)

    @property
    def _journal(self) -> Path:
        assert self.directory is not None
        return self.directory / "journal.ndjson"  # not .jsonl: those are records

    def _happen(self, event: Event) -> None:
        """First on disk, then in memory: what is known is never more than what will be known after a crash."""
        if self.directory is not None:
            records.append(self._journal, event)
        self._events.append(event)
        self.labels.add(event)

    def _is_start(self) -> bool:
        waiting = not isinstance(self.start, str) and any(i in self._closed_less(self.start) for i in self.start)
        return waiting or len(set(self.labels.told.values())) < 2

    def _closed_less(self, positions: Iterable[int]) -> set[int]:
        labels = self.labels
        return set(positions) - labels.told.keys() - labels.pending.keys() - labels.skipped

    def _first(self, left: list[int], k: int) -> Picks:
        """Points without a model: the given ones first, then at random."""
        given = [] if isinstance(self.start, str) else [i for i in self.start if i in self._closed_less(self.start)]
        allowed = set(left)
        chosen = given[:k] or [i for i in starts.order(len(self.pool), self.seed) if i in allowed][:k]
        return Picks(torch.tensor(chosen), torch.zeros(len(chosen), dtype=torch.float64))

    def _best(self, left: list[int], k: int) -> Picks:
        points, sampled, positions = remaining(self.pool, left, self.sampled(self.masks))
        seed = seed_of(self.seed, "strategy", self.labels.asked)
        auto = "auto" if self.draws == "auto" else None
        picks = acquire(sampled, points, k, self.strategy, seed=seed, draws=auto, labelled=self._labelled())
        covers = None if picks.covers is None else [positions[near] for near in picks.covers]
        return Picks(positions[picks.indices], torch.as_tensor(picks.scores), draws=picks.draws, covers=covers)

    def _labelled(self) -> Remaining:
        """What is told, or asked and soon to be told."""
        closed = sorted({*self.labels.told, *self.labels.pending})
        return Remaining(self.pool.source, self.pool.collate, torch.tensor(closed))

    def _resume_fit(self) -> None:
        """After a crash of a warm-started run: the last fit once more, from where it started."""
        if self._fitted is not None or self.directory is None or not checkpoint.is_warm(self.predictor):
            return
        path = self.directory / "checkpoint.safetensors"
        if path.exists():
            about = checkpoint.restore(path, self.predictor)
            self._fit(Labels.of(self._events[: about["events"]]))

    def _fit(self, labels: Labels) -> None:
        told = dict(sorted(labels.told.items()))
        if not told:
            raise ValueError("nothing is told yet; ask for points, and tell their labels")
        x, y = self.pool[torch.tensor([*told])], torch.tensor([*told.values()])
        generator = Generator().manual_seed(seed_of(self.seed, "training", len(told)))
        self._fitted, self._sampled = None, None
        self.predictor.fit((x, y), generator=generator)
        self._fitted = dict(labels.told)


def agree(directory: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """A run goes on as it began: the first setting that differs is named, with both values."""
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            raise ValueError(
                f"{directory} was begun with {name} = {before.get(name)!r}, but {name} = {now.get(name)!r} came; "
                "give the first value to go on, or another directory to begin anew"
            )


def _whole(values: Any, what: str) -> list[int]:
    """Numbers of any kind of array, if they are whole."""
    array = values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim == 0:
        array = array[None]
    if array.size and (array.ndim != 1 or array.dtype.kind not in "iu"):
        raise TypeError(f"{what} must be whole numbers on one axis, but are {array.dtype} of shape {array.shape}")
    return [int(value) for value in array]


def _positions(indices: Any, pool: int) -> list[int]:
    positions = _whole(indices, "positions")
    for position in positions:
        if not 0 <= position < pool:
            raise ValueError(f"positions are 0..{pool - 1} in this pool, but one is {position}")
    return positions
