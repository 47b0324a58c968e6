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
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent import adapt, checks, names
from balent.acquisition import randomness
from balent.acquisition.acquire import acquire
from balent.acquisition.mean_probabilities import mean_probabilities
from balent.data.pool import Indexed, PoolLike, Subset, as_source
from balent.lookup import lookup
from balent.loop import checkpoint, class_names, fingerprint, given, growth, opening
from balent.loop import start as starts
from balent.loop.anchors import anchor
from balent.loop.events import Events, Say
from balent.loop.fits import Fits
from balent.loop.given import Answers, Positions
from balent.loop.labels import Labels
from balent.loop.opening import Settings
from balent.loop.opening import agree as agree
from balent.loop.places import Places
from balent.loop.seeds import seed_of
from balent.strategies import strategy as named
from balent.strategies.auto import AUTO, resolved
from balent.types import Engine, Picks, Predictor, Sampled, Strategy

STARTS = ("auto", "random")  # what is asked before there is a model
NUMBERS = {math.inf: "inf", -math.inf: "-inf"}  # JSON has no infinity


class Learner:
    """A predictor, a pool, and the labels known so far. Asks which points to label next, and remembers the answers.

    predictor   what is trained: `fit`, `sample`, `state`, `load_state`
    pool        the points: an array, a Dataset, anything with a length and items
    strategy    a name (see `balent list`), "file.py:name" or "module:name", or a strategy itself; by default "auto"
    seed        decides everything that is random; by default 0
    directory   where the journal is kept; None keeps it in memory
    ids         a name for each point. A label then belongs to its id: the same directory takes the points in another
                order, with more of them, or with fewer. Without ids it belongs to the content of the pool
    classes     names of classes, in the order of their numbers; labels can then be names
    reserve     positions that a strategy never picks, such as those of an audit; they may be labelled
    draws       posterior samples that score the pool; "auto" or "analytic" as in `acquire`; by default 100
    masks       "auto", the default: per point if predictor and strategy allow it, so that duplicates are not queried
                together; "shared" or "per-point"
    start       points to ask before a model can be trained (labels of two classes): "random", a list of positions, or
                "auto", the default: points that cover the pool if the strategy is auto, else random ones
    engine      where the pool is scored: "local", "ray", a `balent.RayEngine` or an engine of your own. Picks do not
                depend on it
    say         a function that is called with messages for the user; by default they are warnings

    A directory keeps its own strategy, seed, draws, masks, start, classes and reserve: leave them out when it is opened
    again.
    """

    def __init__(
        self,
        predictor: Predictor,
        pool: PoolLike,
        strategy: str | Strategy | None = None,
        *,
        seed: int | None = None,
        directory: str | os.PathLike[str] | None = None,
        ids: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        reserve: Positions | None = None,
        draws: int | str | None = None,
        masks: str | None = None,
        start: str | Sequence[int] | None = None,
        engine: str | Engine = "local",
        say: Say = warnings.warn,
    ) -> None:
        checks.predictor(predictor)
        self.predictor, self.pool, self.say, self.engine = predictor, _indexed(pool), say, engine
        self.ids = None if ids is None else checks.ids(ids, len(self.pool))
        wishes: dict[str, Any] = {"strategy": strategy, "seed": seed, "draws": draws, "masks": masks, "start": start}
        wishes = {name: value for name, value in wishes.items() if value is not None}
        self._choose(Settings(**wishes))  # what cannot be is refused before anything is written
        class_names.checked(classes)
        kept = None if reserve is None else given.positions(reserve, len(self.pool))
        self.directory = None if directory is None else Path(directory)
        self.events = Events(self.directory, Places(self.ids, len(self.pool)), say)
        with contextlib.ExitStack() as until_open:
            until_open.callback(self.close)
            settings = self._choose(opening.settled(wishes, self.events))
            self._check_start(kept)
            anchor(predictor, self._subset(np.arange(len(self.pool))), self.seed)
            self._open(settings, classes)
            if kept is not None and set(kept) != self.labels.reserve:
                self.events.add({"event": "reserve", "indices": list(dict.fromkeys(kept))})
            self.width = growth.width(predictor, self.pool)  # classes; None if the predictor does not tell
            self._fits = Fits(predictor, self.pool, self.events, self.seed)
            until_open.pop_all()

    # ── what a driver does ──────────────────────────────────────────────────────────────────────────

    def ask(self, k: int) -> Picks:
        """The k points to label next, best first; they are pending then. Trains first, if labels are new."""
        return self.commit(self.propose(k))

    def propose(self, k: int) -> Picks:
        """What `ask(k)` would return. The points do not become pending, and no event is written."""
        left = self.labels.open(len(self.pool))
        self._check_left(left)
        checks.batch_size(k, None)
        if k > len(left):
            self.say(f"{k} points were requested, but only {len(left)} are left: these are asked")
        k = min(k, len(left))
        return self._first(left, k) if self._is_start() else self._best(left, k)

    def commit(self, picks: Picks) -> Picks:
        """Asks these points: they are pending then. Points of the reserve may be among them."""
        indices = given.positions(picks.indices, len(self.pool))
        scores = given.scores(picks.scores, len(indices))
        self._check_open(indices)
        written = [NUMBERS.get(score, score) for score in scores]
        self.events.add({"event": "ask", "indices": indices, "scores": written})
        return picks

    def tell(self, indices: Positions, labels: Answers, who: str | None = None) -> None:
        """Records labels of points, asked or not, in any order, at any time. A later label replaces an earlier one.

        A label is the number of a class (int) or, where classes have names, its name (str). Of an item with parts it is
        an array of these; of an item with several labels a set of these, or a row of 0 and 1.
        """
        positions = given.positions(indices, len(self.pool))
        values = given.read(labels, self)
        given.one_label_each(positions, values)
        if positions:
            self.events.add({"event": "tell", "indices": positions, "labels": values, "who": who})

    def skip(self, indices: Positions, who: str | None = None) -> None:
        """Marks points that cannot be labelled. They are not asked again; a label given later still counts."""
        positions = given.positions(indices, len(self.pool))
        if positions:
            self.events.add({"event": "skip", "indices": positions, "who": who})

    def retract(self, indices: Positions, who: str | None = None) -> None:
        """Takes labels or skips back. A point that was asked is pending again, any other can be asked."""
        positions = given.positions(indices, len(self.pool))
        for i in positions:
            if self.labels.state_of(i) not in ("labelled", "skipped"):
                raise ValueError(
                    f"only a label or a skip can be taken back, but point {i} is {self.labels.state_of(i)}; "
                    "nothing was recorded"
                )
        if positions:
            self.events.add({"event": "retract", "indices": positions, "who": who})

    def add_class(self, name: str) -> int:
        """Adds a class, and returns its number. The predictor grows, or the class is refused if it cannot."""
        known = self.labels.classes
        if not known:
            raise ValueError(
                f"classes have no names here, so {name!r} cannot be added; make the Learner with classes=[…]"
            )
        growth.add(self.events, self.predictor, class_names.new(known, [*known, name]))
        self._fits.forget()
        self.width = growth.width(self.predictor, self.pool)
        return len(known)

    # ── what is known ───────────────────────────────────────────────────────────────────────────────

    @property
    def labels(self) -> Labels:
        """The state of every point."""
        return self.events.labels

    @property
    def classes(self) -> list[str] | None:
        """Names of classes by number; None if they have numbers only."""
        return list(self.labels.classes) or None

    @property
    def told(self) -> dict[int, Any]:
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
        return self.events.asked

    def history(self, index: int) -> list[tuple[str | None, Any]]:
        """Who gave which label to a point, in order; those that were replaced or taken back, too."""
        return list(self.labels.history.get(index, []))

    def fit(self) -> None:
        """Train on all labelled points, unless the last fit did."""
        self._fits.fit()

    def sampled(self, masks: str = "shared") -> Sampled:
        """Posterior samples given all labels; `ask` scores with those of `self.masks`."""
        return self._fits.sampled(randomness.AUTO if self.draws == "auto" else self.draws, masks)

    def predict(self, pool: PoolLike) -> Tensor:
        """Mean probabilities of the posterior samples, one row per point: of this pool, or of any other points.

        Of items with parts [items, parts…, classes], of several labels [items, labels].
        """
        return mean_probabilities(self.sampled(), pool)

    def close(self) -> None:
        """Releases the directory. Afterwards the Learner cannot ask or tell."""
        self.events.close()

    def __enter__(self) -> "Learner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────

    def _choose(self, settings: Settings) -> Settings:
        """The settings of this Learner; returns them with the start as it will be."""
        self.seed, self.draws = settings.seed, settings.draws
        compared = settings.strategy != AUTO or adapt.will_compare(self.predictor, self.pool[torch.tensor([0])])
        scores = 'draws="auto"' if self.draws == "auto" else ""
        self._use(resolved(settings.strategy, scores=scores, compared=compared), settings.masks)
        self.start = self._start(settings.start, settings.strategy == AUTO)
        return replace(settings, start=self.start)

    def _use(self, strategy: str | Strategy, masks: str) -> None:
        self.strategy: Strategy = named(strategy) if isinstance(strategy, str) else strategy
        self.resolved, self.masks = names.identity(strategy), randomness.masks(masks, self.predictor, self.strategy)

    def _start(self, start: str | Sequence[int], auto: bool) -> str | list[int]:
        """Where the strategy asks a model, "auto" means random points."""
        if not isinstance(start, str):
            return given.positions(start, len(self.pool))
        lookup(dict.fromkeys(STARTS), start, "start")
        return start if auto or not adapt.needs(self.strategy).model else "random"

    def _open(self, settings: Settings, classes: Sequence[str] | None) -> None:
        if self.events.happened:
            self._go_on(settings, classes)
        else:
            self._begin(settings, classes)

    def _begin(self, settings: Settings, classes: Sequence[str] | None) -> None:
        new = class_names.checked(classes)
        class_names.check_width(growth.width(self.predictor, self.pool), len(new))
        first = opening.first_event(settings, self.events, self.resolved)
        if self.directory is not None:
            checkpoint.save(self.events.file(growth.INITIAL), self.predictor.state())
            pinned = fingerprint.pin(self.pool, self.ids)
            first |= {"fingerprint": pinned, "code": names.source_hash(self.strategy)}
        self.events.begin(first)
        growth.name(self.events, self.predictor, new, grows=False)

    def _go_on(self, settings: Settings, classes: Sequence[str] | None) -> None:
        """Continues what another process began, if settings and pool are the same."""
        opening.check_settings(settings, self.events)
        opening.check_pool(self.pool, self.events)
        if settings.strategy == AUTO:
            self._use(self.events.happened[0]["resolved"], settings.masks)
        self.events.add_up(self.say)
        new = class_names.new(self.labels.classes, classes)
        same = growth.restored(self.predictor, self.events, self.pool, new)
        opening.check_noise(self.strategy, self.events)
        opening.pin(self.pool, self.events, self.say)
        opening.check_code(self.strategy, self.events, self.say)
        growth.name(self.events, self.predictor, new, grows=same)

    def _check_start(self, reserve: list[int] | None) -> None:
        both = set() if isinstance(self.start, str) else {*self.start} & {*(reserve or ())}
        if both:
            raise ValueError(f"point {min(both)} stands in start and in reserve, which is never asked; choose one")

    def _check_left(self, left: np.ndarray) -> None:
        kept = len(self.labels.reserve - self.labels.closed())
        if not len(left) and kept:
            raise ValueError(
                f"no point is left to ask but the {kept} of the reserve, which a strategy never picks; commit them, "
                "or make the Learner again with a smaller reserve"
            )
        if not len(left):
            raise ValueError("no point is left to ask: every point is labelled, pending or skipped")

    def _check_open(self, indices: list[int]) -> None:
        if len(set(indices)) < len(indices):
            raise ValueError("a point can be asked once, but one is given twice; nothing was recorded")
        for i in indices:
            if self.labels.state_of(i) != "open":
                raise ValueError(
                    f"only open points can be asked, but point {i} is {self.labels.state_of(i)}; nothing was recorded"
                )

    def _is_start(self) -> bool:
        return bool(self._waiting()) or len(self.labels.classes_told()) < 2

    def _waiting(self) -> list[int]:
        """Given start points that were not asked yet."""
        closed = self.labels.closed()
        return [] if isinstance(self.start, str) else [i for i in self.start if i not in closed]

    def _first(self, left: np.ndarray, k: int) -> Picks:
        """Points without a model: the given ones first, then by the strategy if it needs none, else at random."""
        if self.start == "auto" and not adapt.needs(self.strategy).model and self._are_vectors():
            return self._acquired(None, left, k)
        order = np.asarray(starts.order(len(self.pool), self.seed, self._hashes))
        chosen = self._waiting()[:k] or order[np.isin(order, left)][:k].tolist()
        return Picks(torch.tensor(chosen), torch.zeros(len(chosen), dtype=torch.float64))

    def _are_vectors(self) -> bool:
        """Can points be compared before there is a model?  Texts cannot."""
        return adapt.comparable(adapt.Untrained(), self.pool[torch.tensor([0])])

    def _best(self, left: np.ndarray, k: int) -> Picks:
        return self._acquired(self.sampled(self.masks), left, k)

    def _acquired(self, sampled: Sampled | None, left: np.ndarray, k: int) -> Picks:
        seed = seed_of(self.seed, "strategy", len(self.labels.told))
        auto = "auto" if self.draws == "auto" else None
        known = np.array(sorted({*self.labels.told, *self.labels.pending}), dtype=np.int64)
        labelled = self._subset(known) if len(known) else None
        options: dict[str, Any] = {"seed": seed, "draws": auto, "labelled": labelled, "engine": self.engine}
        return acquire(sampled, self._subset(left), k, self.strategy, **options)

    def _subset(self, positions: np.ndarray) -> Subset:
        return Subset(self.pool, torch.from_numpy(positions), self._hashes)

    @cached_property
    def _hashes(self) -> Tensor | None:
        """Of the ids: noise goes by them, so that it does not matter in which order the points come."""
        return None if self.ids is None else fingerprint.hashes(self.ids)


def _indexed(pool: PoolLike) -> Indexed:
    found = as_source(pool)
    if not isinstance(found, Indexed):
        raise TypeError(
            "the pool of a Learner must have a length and positions, but it is a stream; pass an array or a Dataset"
        )
    if len(found) == 0:
        raise ValueError("the pool must have points, but it is empty")
    return found
