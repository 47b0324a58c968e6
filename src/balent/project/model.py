"""The model of a project: a Learner over the features of its items, made anew from the labels whenever it is needed.

Fits depend on labels and seed alone, so the picks are the same by whatever road the labels came.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from balent.loop.learner import Learner
from balent.loop.seeds import seed_of
from balent.predictors.classifier import Classifier
from balent.predictors.logistic import Logistic
from balent.predictors.training import reproducible
from balent.project import audit, kept_views
from balent.project.features import Numbers
from balent.project.settings import Settings
from balent.types import Picks, Predictor

DRAWS = 100  # posterior samples behind a prediction
FEW = 20  # behind one of a fold
CLOSE = 0.5  # of the best class's probability: the second best is an alternative

Probabilities = Float[np.ndarray, "items classes"]


@dataclass(frozen=True)
class Pool:
    """Items that can be learnt from, in the order of their numbers, and what is known of them."""

    prints: list[str]
    rows: Numbers
    labels: dict[int, int]  # row: class
    skipped: list[int]
    pending: list[int]
    reserve: list[int]
    classes: int


class Model:
    """A Learner over a pool, with the settings of a project.

    folder      the project's
    state       of a model that was kept; else what fits start from is made anew
    views       the folder where views of neighbours are kept; None: nowhere
    """

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        folder: Path,
        *,
        state: dict[str, Tensor] | None = None,
        views: Path | None = None,
    ) -> None:
        self.settings, self.pool, self.folder, self.views = settings, pool, folder, views
        self._taken: set[int] = set()
        if state is not None:
            self.initial = state

    @property
    def trained(self) -> bool:
        """Are there labels of two classes?"""
        return len(set(self.pool.labels.values())) > 1

    @cached_property
    def learner(self) -> Learner:
        """A Learner in memory that has been told everything."""
        predictor = self._predictor()
        predictor.load_state(self.initial)
        if self.views is not None and isinstance(predictor, Logistic) and predictor.neighbours is not None:
            kept_views.restore(self.views, predictor.neighbours, self.pool.prints, self.pool.rows)
        learner = Learner(
            predictor,
            torch.from_numpy(self.pool.rows),
            self.settings.strategy,
            seed=self.settings.seed,
            ids=self.pool.prints,
            draws=FEW if isinstance(predictor, Classifier) else DRAWS,  # each of its draws is a fit
            reserve=self.pool.reserve,
            engine=self.settings.engine,
            say=lambda _: None,
        )
        learner.tell([*self.pool.labels], [*self.pool.labels.values()])
        learner.skip(self.pool.skipped)
        _take(learner, self.pool.pending)
        return learner

    def propose(self, k: int) -> Picks:
        """The k rows to label next."""
        with self._threads():
            return self.learner.propose(k)

    def take(self, rows: Sequence[int]) -> None:
        """These rows are not proposed any more."""
        _take(self.learner, rows)
        self._taken.update(rows)

    def keep_views(self) -> None:
        """Writes what the head has looked up, for the next process."""
        predictor = self.learner.predictor
        if self.views is not None and isinstance(predictor, Logistic) and predictor.neighbours is not None:
            with self._threads():
                kept_views.keep(self.views, predictor.neighbours, self.pool.prints, self.pool.rows)

    def open(self) -> int:
        """How many rows a strategy can still choose."""
        closed = {*self.pool.labels, *self.pool.skipped, *self.pool.pending, *self.pool.reserve, *self._taken}
        return len(self.pool.prints) - len(closed)

    def probabilities(self, rows: Numbers | Tensor) -> Probabilities:
        """Of each class, for any rows."""
        with self._threads():
            return self.learner.predict(torch.as_tensor(rows)).numpy()

    def weights(self, label: int) -> Float[np.ndarray, " width"] | None:
        """What speaks for a class against the others, by feature; None if the model is not linear."""
        self.probabilities(self.pool.rows[:1])  # trains, if labels have changed
        predictor = self.learner.predictor
        if not isinstance(predictor, Logistic):
            return None
        best = predictor.best()
        return (best[label] - best.mean(0)).numpy()

    def without(self, left_out: Sequence[int], rows: Sequence[int]) -> Probabilities | None:
        """Of these rows, by a model that has not seen some labels; None if the others are of one class."""
        told = {row: label for row, label in self.pool.labels.items() if row not in set(left_out)}
        if len(set(told.values())) < 2:
            return None
        predictor = self._predictor()
        predictor.load_state(self.initial)
        x, y = torch.from_numpy(self.pool.rows[[*told]]), torch.tensor([*told.values()])
        generator = Generator().manual_seed(seed_of(self.settings.seed, "training", len(told)))
        with self._threads():
            predictor.fit((x, y), generator=generator)
            sampled = predictor.sample(FEW, seed=seed_of(self.settings.seed, "evaluation"))
            return sampled.moments(torch.from_numpy(self.pool.rows[list(rows)])).mean.numpy()

    def cross_fitted(
        self, rows: Sequence[int], step: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Float[np.ndarray, " classes"]]]:
        """Labelled rows with their probabilities by a model that has not seen the labels of their fold.

        Folds without which one class is left are left out. `step` is called when a model is trained.
        """
        for part in audit.folds(rows):
            p = self.without(part, part)
            step()
            yield from [] if p is None else zip(part, p, strict=True)

    @cached_property
    def initial(self) -> dict[str, Tensor]:
        """What fits start from: a Learner gives its predictor rows of the pool."""
        predictor = self._predictor()
        with Learner(predictor, torch.from_numpy(self.pool.rows), seed=self.settings.seed, ids=self.pool.prints):
            return predictor.state()

    @contextmanager
    def _threads(self) -> Iterator[None]:
        """One thread: on a busy machine two threads take several times as long over the small steps of Logistic.

        A model of the user's own keeps torch's number.
        """
        before = torch.get_num_threads()
        torch.set_num_threads(before if self.settings.model else 1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _predictor(self) -> Predictor:
        classes = max(2, self.pool.classes)
        if not self.settings.model:
            return Logistic(classes)
        from balent import by_name
        from balent.predictors.wrapped import predictor_of

        seed = seed_of(self.settings.seed, "initial weights")
        with reproducible(Generator().manual_seed(seed)):  # a factory makes networks with the global generator
            made = by_name.function(self.settings.factory(self.folder))(self.pool.rows, classes)
        return predictor_of(made, classes)


def _take(learner: Learner, rows: Sequence[int]) -> None:
    if rows:
        pending = torch.tensor(sorted(rows), dtype=torch.int64)
        learner.commit(Picks(pending, torch.zeros(len(pending), dtype=torch.float64)))


def whys(p: Probabilities, near: Sequence[bool], names: Sequence[str]) -> Iterator[str]:
    """Why each item was chosen, in words: from the model's probabilities, and whether a labelled item is near."""
    for row, known in zip(p, near, strict=True):
        best, second = np.argsort(-row, kind="stable")[:2]
        if row[second] >= CLOSE * row[best]:
            yield f"the model hesitates between {names[best]} and {names[second]}"
        elif not known:
            yield "unlike anything labelled so far"
        else:
            yield "stands for many similar items"


def near_labelled(rows: Numbers, labelled: Float[np.ndarray, "labelled width"]) -> list[bool]:
    """Whether a labelled row is nearer than most labelled rows are to each other."""
    if len(labelled) < 2:
        return [False] * len(rows)
    x, known = _unit(rows), _unit(labelled)
    among = known @ known.T
    np.fill_diagonal(among, -np.inf)
    return ((x @ known.T).max(1) > np.median(among.max(1))).tolist()


def _unit(rows: Numbers) -> Numbers:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
