"""Any estimator with `fit` and `predict_proba`, Bayesian by the bootstrap: scikit-learn, XGBoost, LightGBM, CatBoost.

A draw is a copy of the estimator, fitted with random weights of the labels, v_i ~ Exp(1) (Bayesian bootstrap: Rubin,
1981). An estimator that takes no weights is fitted to as many labels, drawn with replacement (Efron, 1979). A draw is a
function of the seed, its number and the labels, and is fitted when it is first needed: 20 of 100 draws cost 20 fits.
n draws are n fits, never fewer that are counted twice. Nothing of them is written to disk: a resumed run fits again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from balent.maths import noise
from balent.maths.moments import Moments
from balent.predictors.asked import shared_draws
from balent.predictors.estimator_inputs import are_names, are_numbers, as_rows, numbered, pairs
from balent.predictors.estimators import (
    Member,
    Recipe,
    check_estimator,
    name_of,
    seed_of,
    unfitted,
    weights_keyword,
)
from balent.predictors.tasks import check_labels
from balent.predictors.training import check_sizes
from balent.types import Batch, Indices, Probabilities, Traits

FITS = 1 << 40  # purposes of the seeds of fits; draws are counted from there


class Classifier:
    """A bootstrap of any classifier with `fit` and `predict_proba`.

    estimator   the classifier, with its settings; it is copied, and stays as it is
    classes     their number, or their names in order; None: those of the labels, up to the largest number or all names
    flatten     points of several axes (images) become rows of numbers; False passes them on as they are
    """

    def __init__(self, estimator: Any, classes: int | Sequence[str] | None = None, *, flatten: bool = True) -> None:
        check_estimator(estimator)
        self.classes, self.names = known(classes)
        self.estimator, self.flatten = unfitted(estimator), flatten
        self.problem: Problem | None = None

    def fit(self, labelled: Any, *, generator: Generator) -> None:
        """Take the labels. The estimator is fitted to them once, all weights equal; nothing here is random."""
        x, y = pairs(labelled)
        rows = as_rows(x, self.flatten)
        names = tuple(sorted({str(name) for name in y})) if self.classes is None and are_names(y) else self.names
        numbers = numbered(y, names)
        check_sizes(rows, numbers)
        classes = self.classes or len(names) or int(numbers.max()) + 1
        check_labels(numbers, classes)
        self.problem = Problem.of(Recipe(self.estimator, names), rows, numbers.numpy(), classes, self.flatten)

    @property
    def best(self) -> Member:
        """The estimator fitted to all labels alike: `best.estimator` is it."""
        return self._problem().best

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> "Bootstraps":
        """n draws: n copies of the estimator, each fitted when it is first needed."""
        shared_draws(n, masks, "a draw of Classifier is one fitted estimator for all points")
        return Bootstraps(Fits(self._problem(), seed), n)

    def state(self) -> dict[str, Tensor]:
        """Nothing: each fit starts anew, and draws follow from labels and seed."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Nothing to put back."""

    def width(self, batch: Batch) -> int | None:
        """How many classes there are; None if the labels decide it."""
        return self.classes

    def compares(self, batch: Batch) -> bool:
        """Vectors of numbers have features: themselves."""
        return are_numbers(as_rows(batch, self.flatten))

    def _problem(self) -> "Problem":
        if self.problem is None:
            raise ValueError(
                f"Classifier({name_of(self.estimator)}) has learnt nothing yet; call fit((x, y), generator=…) first. A "
                "bootstrap needs the labelled points: an estimator that was fitted elsewhere is not enough"
            )
        return self.problem


@dataclass(frozen=True)
class Problem:
    """Labelled points, and how to fit an estimator to a bootstrap of them."""

    recipe: Recipe
    rows: np.ndarray
    y: Int[np.ndarray, " labels"]
    classes: int
    flatten: bool
    weights: str  # the argument of `fit` that takes them; "": rows are drawn with replacement
    best: Member = field(repr=False)

    @classmethod
    def of(
        cls, recipe: Recipe, rows: np.ndarray, y: Int[np.ndarray, " labels"], classes: int, flatten: bool
    ) -> "Problem":
        """Fits once, which shows whether the estimator takes these points, and weights."""
        keyword = weights_keyword(recipe.estimator)
        try:
            best = recipe.fitted(rows, y, 0, **({keyword: np.ones(len(y))} if keyword else {}))
        except TypeError:  # as of a vote of several estimators, one of which takes no weights
            keyword, best = "", recipe.fitted(rows, y, 0)
        return cls(recipe, rows, y, classes, flatten, keyword, best)

    def draw(self, seed: int, number: int) -> Member:
        """The draw of this number."""
        at, own = torch.arange(len(self.y)), seed_of(seed, FITS + number)
        if self.weights:
            v = noise.exponential(seed, at, number).double().numpy()
            return self.recipe.fitted(self.rows, self.y, own, **{self.weights: v})
        drawn = (noise.uniform(seed, at, number).double() * len(at)).long().clamp(max=len(at) - 1).numpy()
        return self.recipe.fitted(self.rows[drawn], self.y[drawn], own)


class Fits:
    """The draws of one seed, each fitted when it is first needed."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self._members: dict[int, Member] = {}

    def __getitem__(self, number: int) -> Member:
        if number not in self._members:
            try:
                self._members[number] = self.problem.draw(self.seed, number)
            except Exception as error:
                error.add_note(f"while fitting draw {number} of {name_of(self.problem.recipe.estimator)}")
                raise
        return self._members[number]


@dataclass(frozen=True)
class Bootstraps:
    """n draws, beginning with the draw `first`."""

    fits: Fits
    n: int
    first: int = 0

    @property
    def traits(self) -> Traits:
        problem = self.fits.problem
        how = "weights" if problem.weights else "labels drawn with replacement"
        plan = f"{self.n} bootstraps of {name_of(problem.recipe.estimator)} by {how}, fitted when needed"
        return Traits(self.n, plan=plan, features=are_numbers(problem.rows), costly=True)

    @property
    def plan(self) -> str:
        """How draws are computed, in words."""
        return self.traits.plan

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        rows, classes = as_rows(batch, self.fits.problem.flatten), self.fits.problem.classes
        found = [self.fits[self.first + i](rows, classes) for i in range(self.n)]
        return torch.from_numpy(np.stack(found, 1))

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return Moments.of(self(batch, positions), positions=positions)

    def part(self, start: int, stop: int) -> "Bootstraps":
        """Some of the draws; the others are not fitted."""
        return replace(self, n=stop - start, first=self.first + start)

    def features(self, batch: Batch) -> Float[Tensor, "pool features"]:
        """The rows themselves, where they are numbers."""
        rows = as_rows(batch, self.fits.problem.flatten)
        if not are_numbers(rows):
            raise ValueError(
                "points that are not vectors of numbers (texts) have no features; use a strategy that does not compare "
                "points, such as balentacq"
            )
        return torch.from_numpy(rows.astype(np.float32))


def known(classes: int | Sequence[str] | None) -> tuple[int | None, tuple[str, ...]]:
    """The number of classes, and their names; as far as they are known."""
    if classes is None:
        return None, ()
    if isinstance(classes, int | np.integer):
        if isinstance(classes, bool) or classes < 2:
            raise ValueError(f"classes must be a whole number of 2 or more, or names, but is {classes!r}")
        return int(classes), ()
    names = () if isinstance(classes, str) else tuple(classes)
    if len(names) < 2 or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"classes must be different names, two or more, or their number, but are {classes!r}")
    return len(names), names
