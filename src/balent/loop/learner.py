"""The loop: ask which points to label next, tell their labels.

This is the only loop: a simulation, a labelling page and a folder of files all drive a Learner. Every event is
written to a journal on disk first. A process that dies is continued by making the same Learner again: points
that were asked and not labelled are still pending, and no point is asked twice. A fit depends on the labels and on
the seed, not on the order in which labels were given.
"""

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from balent import adapt, checks, names
from balent.acquisition import randomness
from balent.acquisition.acquire import acquire
from balent.data.pool import Indexed, PoolLike, Subset, as_source
from balent.loop import checkpoint, fingerprint, journal
from balent.loop import start as starts
from balent.loop.anchors import anchor
from balent.loop.labels import Event, Labels
from balent.loop.seeds import seed_of
from balent.strategies import strategy as named
from balent.strategies.auto import AUTO, resolved
from balent.types import HasWidth, Picks, Predictor, Sampled, Strategy

FORMAT = 2  # of the journal
PINNED = ("format", "fingerprint", "code", "resolved")  # of its first line: checked apart from the settings
MOST = 1 << 31  # classes, where the predictor does not tell how many it knows

STARTS = ("auto", "random")  # what is asked before there is a model
NUMBERS = {math.inf: "inf", -math.inf: "-inf"}  # JSON has no infinity

Positions = Sequence[int] | np.ndarray | Tensor
Say = Callable[[str], None]


class Learner:
    """A predictor, a pool, and the labels known so far. Asks which points to label next, and remembers the answers.

    predictor   what is trained: `fit`, `sample`, `state`, `load_state`
    pool        the points: an array, a Dataset, anything with a length and items
    strategy    a name (see `balent list`), "file.py:name" or "module:name", or a strategy itself
    seed        decides everything that is random
    directory   where the journal is kept; None keeps it in memory
    ids         a name for each point. The directory then belongs to these ids, else to the content of the pool
    draws       posterior samples that score the pool; "auto" or "analytic" as in `acquire`
    masks       "auto": per point if predictor and strategy allow it, so that duplicates are not queried together
    start       points to ask before a model can be trained (labels of two classes): "random", a list of positions, or
                "auto": points that cover the pool if the strategy is auto, else random ones
    say         a function that is called with messages for the user; by default they are warnings
    """

    def __init__(
        self,
        predictor: Predictor,
        pool: PoolLike,
        strategy: str | Strategy = "auto",
        *,
        seed: int = 0,
        directory: str | os.PathLike[str] | None = None,
        ids: Sequence[str] | None = None,
        draws: int | str = 100,
        masks: str = "auto",
        start: str | Sequence[int] = "auto",
        say: Say = warnings.warn,
    ) -> None:
        found = as_source(pool)
        if not isinstance(found, Indexed):
            raise TypeError(
                "the pool of a Learner must have a length and positions, but it is a stream; pass an array or a Dataset"
            )
        if len(found) == 0:
            raise ValueError("the pool must have points, but it is empty")
        checks.predictor(predictor)
        self.predictor, self.pool, self.seed, self.say = predictor, found, seed, say
        self.ids = None if ids is None else checks.ids(ids, len(found))
        self.width = predictor.width(found[torch.tensor([0])]) if isinstance(predictor, HasWidth) else None
        self.draws = draws
        self._choose(resolved(strategy, scores='draws="auto"' if draws == "auto" else ""), masks)
        self.start = self._start(start, strategy == AUTO)
        self._fitted: dict[int, int] | None = None  # the labels of the last fit
        self._cold = False  # fits are known to start from the same weights every time
        self._sampled: tuple[tuple[int, str], Sampled] | None = None
        self._open = contextlib.ExitStack()
        self._closed = False
        self._events: list[Event] = []
        self.directory = None if directory is None else Path(directory)
        with contextlib.ExitStack() as opening:
            opening.callback(self.close)
            name = names.identity(strategy)
            anchor(predictor, self._subset(np.arange(len(found))), seed)
            self._begin({"strategy": name, "seed": seed, "draws": draws, "masks": masks, "pool": len(found)})
            opening.pop_all()

    # ── what a driver does ──────────────────────────────────────────────────────────────────────────

    def ask(self, k: int) -> Picks:
        """The k points to label next, best first; they are pending then. Trains first, if labels are new."""
        left = self.labels.open(len(self.pool))
        if not len(left):
            raise ValueError("no point is left to ask: every point is labelled, pending or skipped")
        checks.batch_size(k, None)
        if k > len(left):
            self.say(f"{k} points were requested, but only {len(left)} are left: these are asked")
        k = min(k, len(left))
        picks = self._first(left, k) if self._is_start() else self._best(left, k)
        scores = [NUMBERS.get(score, score) for score in picks.scores.tolist()]
        self._happen({"event": "ask", "indices": picks.indices.tolist(), "scores": scores})
        return picks

    def tell(self, indices: Positions, labels: Positions, who: str | None = None) -> None:
        """Records labels of points, asked or not, in any order, at any time. A later label replaces an earlier one."""
        positions, values = _positions(indices, len(self.pool)), _whole(labels, "labels")
        if len(positions) != len(values):
            raise ValueError(
                f"every point needs one label, but there are {len(positions)} points and {len(values)} labels"
            )
        self._check_labels(dict(zip(positions, values, strict=True)), positions, values)
        if positions:
            self._happen({"event": "tell", "indices": positions, "labels": values, "who": who})

    def skip(self, indices: Positions, who: str | None = None) -> None:
        """Marks points that cannot be labelled. They are not asked again; a label given later still counts."""
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
        """Points that were asked and are neither labelled nor skipped, in the order they were asked."""
        waiting = self.labels.pending
        return Picks(
            torch.tensor([*waiting], dtype=torch.int64), torch.tensor([*waiting.values()], dtype=torch.float64)
        )

    @property
    def asked(self) -> list[list[int]]:
        """The positions of every `ask` so far, in order."""
        return [event["indices"] for event in self._events if event["event"] == "ask"]

    def history(self, index: int) -> list[tuple[str | None, int]]:
        """Who gave which label to a point, in order."""
        return list(self.labels.history.get(index, []))

    def fit(self) -> None:
        """Train on all labelled points, unless the last fit did."""
        self._resume_fit()
        if self._fitted != self.labels.told:
            start = self.predictor.state()
            if start and not self._cold and self._keeps:
                checkpoint.save(self._checkpoint, start, events=len(self._events))
            self._fit(self.labels)
            self._cold = checkpoint.same(start, self.predictor.state())
            if self._cold and self._keeps:
                self._checkpoint.unlink(missing_ok=True)  # a fit that starts anew needs no memory of the last one

    def sampled(self, masks: str = "shared") -> Sampled:
        """Posterior samples given all labels; `ask` scores with those of `self.masks`."""
        self.fit()
        key = (len(self.labels.told), masks)
        if self._sampled is None or self._sampled[0] != key:
            n = randomness.AUTO if self.draws == "auto" else self.draws
            drawn = self.predictor.sample(n, seed=seed_of(self.seed, "draws", key[0]), masks=masks)
            self._sampled = (key, drawn)
        return self._sampled[1]

    def close(self) -> None:
        """Releases the directory. Afterwards the Learner cannot ask or tell."""
        self._closed = True
        self._open.close()

    def __enter__(self) -> "Learner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, settings: dict[str, Any]) -> None:
        given = None if isinstance(self.start, str) else self.start
        opening = {"event": "start", "format": FORMAT, **settings, "start": given or self.start}
        opening["resolved"] = self.resolved
        if self.directory is None:
            self._events, self.labels = [opening], Labels()
            return
        self._open.enter_context(journal.locked(self.directory))
        note = journal.repair(self._journal)
        if note:
            self.say(note)
        if self._journal.exists():
            self._go_on(opening)
        else:
            self._begin_anew(opening)

    def _begin_anew(self, opening: Event) -> None:
        checkpoint.save(self._initial, self.predictor.state())
        opening |= {"fingerprint": fingerprint.pin(self.pool, self.ids), "code": names.source_hash(self.strategy)}
        self.labels = Labels()
        journal.begin(self._journal, opening)
        self._events = [opening]

    def _go_on(self, opening: Event) -> None:
        """Continues what another process began, if settings and pool are the same."""
        self._events = journal.read(self._journal)
        if not self._events:
            raise ValueError(
                f"{self._journal} is empty, but a journal begins with a line: its labels are lost; restore the file, "
                "or remove the directory to start again"
            )
        before = {name: value for name, value in self._events[0].items() if name not in PINNED}
        agree(self._journal.parent, before, {name: value for name, value in opening.items() if name not in PINNED})
        if opening["strategy"] == AUTO:
            self._choose(self._events[0]["resolved"], opening["masks"])
        checkpoint.restore(self._initial, self.predictor)
        self.labels = self._added_up()
        self._check_noise()
        self._check_pool()
        code = self._events[0].get("code")
        if code is not None and code != names.source_hash(self.strategy):
            self.say(
                f"the code of {opening['strategy']} has changed since {self.directory} was begun; the new code is used "
                "from now on, and labels stay: to go on as before, restore the old code and open the directory again"
            )

    def _added_up(self) -> Labels:
        labels = Labels()
        for number, event in enumerate(self._events, 1):
            try:
                labels.add(event)
            except ValueError as error:
                raise ValueError(f"{self._journal}, line {number}: {error}") from error
        beyond = [position for position in labels.closed() if position >= len(self.pool)]
        if beyond:
            raise ValueError(
                f"{self._journal} names point {max(beyond)}, but the pool has {len(self.pool)} points; "
                "pass the pool it was begun with"
            )
        return labels

    def _check_noise(self) -> None:
        """Picks of one run follow one rule. Version 0.1 drew noise in the order in which points came."""
        by_0_1 = [] if self._events[0].get("format", 1) > 1 else self._events[: self._number_of_pin()]
        if adapt.needs(self.strategy).noise and any(event["event"] == "ask" for event in by_0_1):
            raise ValueError(
                f"{self.directory} was begun by balent 0.1 with {self._events[0]['strategy']}, whose random numbers "
                "are drawn by another rule now, so its picks would not be those of one run; finish it with balent "
                "0.1, or start again in another directory"
            )

    def _number_of_pin(self) -> int | None:
        """Of the event that says which pool a directory of version 0.1 belongs to: later ones are by newer versions."""
        return next((i for i, event in enumerate(self._events) if event["event"] == "pin"), None)

    def _check_pool(self) -> None:
        """Refuses another pool than the one the directory was begun with: labels would move to other points."""
        pins = [event["fingerprint"] for event in self._events if event.get("fingerprint")]
        if not pins:
            self.say(
                f"{self.directory} was begun by balent 0.1, which did not record which pool its labels belong to; from "
                "now on they belong to this one"
            )
            self._happen({"event": "pin", "format": FORMAT, "fingerprint": fingerprint.pin(self.pool, self.ids)})
        elif not fingerprint.matches(pins[-1], self.pool, self.ids):
            raise ValueError(
                f"the labels in {self.directory} belong to another pool: its {pins[-1].partition(':')[0]} differ, so "
                "labels would move to other points; give the pool (and ids) it was begun with, or another directory"
            )

    @property
    def _journal(self) -> Path:
        assert self.directory is not None
        return self.directory / "journal.ndjson"  # not .jsonl: those are records

    @property
    def _initial(self) -> Path:
        assert self.directory is not None
        return self.directory / "initial.safetensors"

    @property
    def _checkpoint(self) -> Path:
        assert self.directory is not None
        return self.directory / "checkpoint.safetensors"

    @property
    def _keeps(self) -> bool:
        """May files be written?"""
        return self.directory is not None and not self._closed

    def _happen(self, event: Event) -> None:
        """Writes the event to disk, then applies it in memory, so a crash loses nothing that was acknowledged."""
        if self._closed:
            raise ValueError("this Learner is closed, and its directory may be in use elsewhere; make a new Learner")
        if self.directory is not None:
            journal.append(self._journal, event)
        self._events.append(event)
        self.labels.add(event)

    def _check_labels(self, last: dict[int, int], positions: list[int], labels: list[int]) -> None:
        """Classes that the model has, and one for each point; `last` holds the last label given for a point."""
        classes = MOST if self.width is None else self.width
        for position, label in zip(positions, labels, strict=True):
            if not 0 <= label < classes:
                raise ValueError(
                    f"labels must be class numbers 0..{classes - 1} of the model, but one is {label}; "
                    "nothing was recorded"
                )
            if label != last[position]:
                raise ValueError(
                    f"a point has one label, but point {position} was given {label} and {last[position]} in one call; "
                    "nothing was recorded"
                )

    def _is_start(self) -> bool:
        return bool(self._waiting()) or len(set(self.labels.told.values())) < 2

    def _waiting(self) -> list[int]:
        """Given start points that were not asked yet."""
        closed = self.labels.closed()
        return [] if isinstance(self.start, str) else [i for i in self.start if i not in closed]

    def _choose(self, strategy: str | Strategy, masks: str) -> None:
        self.strategy: Strategy = named(strategy) if isinstance(strategy, str) else strategy
        self.resolved, self.masks = names.identity(strategy), randomness.masks(masks, self.predictor, self.strategy)

    def _start(self, start: str | Sequence[int], auto: bool) -> str | list[int]:
        """Where the strategy asks a model, "auto" means random points."""
        if not isinstance(start, str):
            return _positions(start, len(self.pool))
        checks.lookup(dict.fromkeys(STARTS), start, "start")
        return start if auto or not adapt.needs(self.strategy).model else "random"

    def _first(self, left: np.ndarray, k: int) -> Picks:
        """Points without a model: the given ones first, then by the strategy if it needs none, else at random."""
        if self.start == "auto" and not adapt.needs(self.strategy).model:
            return self._acquired(None, left, k)
        order = np.asarray(starts.order(len(self.pool), self.seed))
        chosen = self._waiting()[:k] or order[np.isin(order, left)][:k].tolist()
        return Picks(torch.tensor(chosen), torch.zeros(len(chosen), dtype=torch.float64))

    def _best(self, left: np.ndarray, k: int) -> Picks:
        return self._acquired(self.sampled(self.masks), left, k)

    def _acquired(self, sampled: Sampled | None, left: np.ndarray, k: int) -> Picks:
        seed = seed_of(self.seed, "strategy", len(self.labels.told))
        auto = "auto" if self.draws == "auto" else None
        known = np.array(sorted({*self.labels.told, *self.labels.pending}), dtype=np.int64)
        labelled = self._subset(known) if len(known) else None
        return acquire(sampled, self._subset(left), k, self.strategy, seed=seed, draws=auto, labelled=labelled)

    def _subset(self, positions: np.ndarray) -> Subset:
        return Subset(self.pool, torch.from_numpy(positions), self._hashes)

    @cached_property
    def _hashes(self) -> Tensor | None:
        """Of the ids: noise goes by them, so that it does not matter in which order the points come."""
        return None if self.ids is None else fingerprint.hashes(self.ids)

    def _resume_fit(self) -> None:
        """After a crash of a run that starts each fit from the last one: that fit once more, from where it started."""
        if self._fitted is None and self.directory is not None and self._checkpoint.exists():
            about = checkpoint.restore(self._checkpoint, self.predictor)
            self._fit(Labels.of(self._events[: about["events"]]))

    def _fit(self, labels: Labels) -> None:
        told = dict(sorted(labels.told.items()))
        if not told:
            raise ValueError("a fit needs labels, but none was given yet; label some points first: ask, then tell")
        x, y = self.pool[torch.tensor([*told])], torch.tensor([*told.values()])
        generator = Generator().manual_seed(seed_of(self.seed, "training", len(told)))
        self._fitted, self._sampled = None, None
        self.predictor.fit((x, y), generator=generator)
        self._fitted = dict(labels.told)


def agree(directory: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuses to continue a run with other settings; the error names the first that differs, with both values."""
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            raise ValueError(
                f"{directory} was begun with {name} = {before.get(name)!r}, but {name} = {now.get(name)!r} was given; "
                "pass the first value to continue, or use another directory"
            )


def _whole(values: Any, what: str) -> list[int]:
    """Numbers of any kind of array, if they are whole."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{what} must be plain numbers, but are a masked array; pass x.compressed(), which leaves masked values out"
        )
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
            raise ValueError(f"positions must be 0..{pool - 1} in this pool, but one is {position}")
    return positions
