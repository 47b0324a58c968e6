"""Estimators of other libraries: anything with `fit` and `predict_proba`. Copied, seeded, fitted, and asked.

An estimator always sees the classes that are there as 0, 1, 2, …, without a gap: XGBoost takes no others. What it
answers is put back into the order of all classes; one that it never saw has probability 0. Parameters are read by
`get_params`, as scikit-learn defines it, nested ones included. An estimator without it is copied as it is.
"""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from balent.kernels.hashing import mixed
from balent.predictors.estimator_inputs import finite
from balent.predictors.seeded import seeded

SEEDS = ("random_state", "random_seed")  # the latter is CatBoost's
ByClass = Float[np.ndarray, "points classes"]


@runtime_checkable
class Estimator(Protocol):
    """What scikit-learn, XGBoost, LightGBM and CatBoost call a classifier."""

    def fit(self, X: Any, y: Any, /) -> Any: ...
    def predict_proba(self, X: Any, /) -> Any: ...


@runtime_checkable
class HasParameters(Protocol):
    """Settings by name, as in scikit-learn; nested ones are `step__name`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Any: ...


@runtime_checkable
class HasSteps(Protocol):
    """A pipeline: the last of its steps classifies."""

    steps: Sequence[tuple[str, Any]]


@runtime_checkable
class HasClasses(Protocol):
    """A fitted estimator that says which class each column of its answer is."""

    @property
    def classes_(self) -> Any: ...


def check_estimator(given: object) -> None:
    """Refuses what is not an estimator: a class, an estimator without probabilities, anything else."""
    if isinstance(given, type):
        raise TypeError(f"an estimator is expected, but {given.__name__} is a class; pass {given.__name__}(…)")
    if not isinstance(given, Estimator):
        missing = [name for name in ("fit", "predict_proba") if not hasattr(given, name)]
        hint = "; some estimators have it on request, as SVC(probability=True)" if missing == ["predict_proba"] else ""
        raise TypeError(
            f"an estimator has the methods fit and predict_proba, but {type(given).__name__} has no "
            f"{' and no '.join(missing)}{hint}"
        )


def name_of(estimator: object) -> str:
    """Its name; of a pipeline, the name of its last step."""
    return name_of(estimator.steps[-1][1]) if isinstance(estimator, HasSteps) else type(estimator).__name__


def unfitted(estimator: Any) -> Any:
    """A copy with the same settings. The one that was passed in stays as it is."""
    if not isinstance(estimator, HasParameters):
        return copy.deepcopy(estimator)
    try:
        from sklearn.base import clone
    except ImportError as error:
        raise ImportError(
            f"{type(estimator).__name__} is copied by scikit-learn, which is not installed; pip install 'balent[text]'"
        ) from error
    return clone(estimator)


def weights_keyword(estimator: Any) -> str:
    """The argument of `fit` that takes a weight for each label; "" if there is none.

    >>> class Mine:
    ...     def fit(self, X, y, sample_weight=None): ...
    >>> weights_keyword(Mine())
    'sample_weight'
    """
    if isinstance(estimator, HasSteps):
        name, last = estimator.steps[-1]
        inner = weights_keyword(last)
        return inner and f"{name}__{inner}"
    fit = getattr(estimator, "fit", None)
    taken = {} if fit is None else inspect.signature(fit).parameters
    return "sample_weight" if "sample_weight" in taken else ""


@dataclass(frozen=True)
class Recipe:
    """An unfitted estimator, and what its settings say about classes by name."""

    estimator: Any
    names: Sequence[str] = ()

    def fitted(self, rows: np.ndarray, y: Int[np.ndarray, " labels"], seed: int, **weights: np.ndarray) -> "Member":
        """A copy of the estimator, fitted. Where only one class is left there is nothing to fit."""
        present, codes = np.unique(y, return_inverse=True)
        if len(present) == 1:
            return Member(None, present)
        made = unfitted(self.estimator)
        self._set(made, present, seed)
        try:
            with seeded(seed):
                made.fit(rows, codes, **weights)
        except ValueError as error:
            if finite(rows).all():
                raise
            raise ValueError(
                f"{name_of(made)} refuses these points: {error}\nlook for NaN in the inputs, or use an estimator that "
                "takes missing values, such as HistGradientBoostingClassifier"
            ) from error
        _one_by_one(made)
        return Member(made, present)

    def _set(self, made: Any, present: Int[np.ndarray, " present"], seed: int) -> None:
        """Its own seed, and weights of the classes that are there."""
        found = parameters(made)
        seeds = {key: seed_of(seed, i) for i, key in enumerate(sorted(found)) if _last(key) in SEEDS}
        weights = {key: found[key] for key in found if _last(key) == "class_weight"}
        given = {key: self._by_code(value, present) for key, value in weights.items() if isinstance(value, Mapping)}
        if seeds or given:
            made.set_params(**seeds, **given)

    def _by_code(self, weights: Mapping[Any, Any], present: Int[np.ndarray, " present"]) -> dict[int, float]:
        """Weights of classes, given by name or number, as the estimator numbers them; 1 where none is given."""
        unknown = [key for key in weights if isinstance(key, str) and key not in self.names]
        if unknown:
            raise ValueError(
                f"class_weight has the class {unknown[0]!r}, but the classes are {', '.join(self.names) or 'numbers'}"
            )
        by_number = {self.names.index(key) if isinstance(key, str) else int(key): w for key, w in weights.items()}
        return {code: by_number.get(int(number), 1.0) for code, number in enumerate(present)}


@dataclass(frozen=True)
class Member:
    """A fitted estimator, and the class numbers that it calls 0, 1, 2, …; None knows one class alone."""

    estimator: Any
    present: Int[np.ndarray, " present"]

    def __call__(self, rows: np.ndarray, classes: int) -> ByClass:
        """Probabilities of all classes. NaN at rows with NaN, if the estimator refuses those: so they can be named."""
        found = np.zeros((len(rows), classes))
        if self.estimator is None:
            found[:, self.present] = 1
            return found
        try:
            found[:, self._columns()] = self._answers(rows)
        except ValueError:
            fine = finite(rows)
            if fine.all():
                raise
            found[~fine] = np.nan
            if fine.any():
                found[fine] = self(rows[fine], classes)
        return found

    def _columns(self) -> Int[np.ndarray, " columns"]:
        """The class number of each column of its answers."""
        if not isinstance(self.estimator, HasClasses):
            return self.present
        return self.present[np.asarray(self.estimator.classes_).astype(np.int64)]

    def _answers(self, rows: np.ndarray) -> ByClass:
        answers = np.asarray(self.estimator.predict_proba(rows), np.float64)
        expected = (len(rows), len(self._columns()))
        if answers.shape != expected:
            raise TypeError(
                f"predict_proba of {name_of(self.estimator)} must give [points, classes] = {list(expected)}, but gave "
                f"{list(answers.shape)}"
            )
        return answers


def parameters(estimator: Any) -> dict[str, Any]:
    """Its settings by name, nested ones too; none of an estimator that does not tell."""
    return estimator.get_params(deep=True) if isinstance(estimator, HasParameters) else {}


def seed_of(seed: int, purpose: int) -> int:
    """A seed of 31 bits, which all libraries take."""
    return int(mixed(seed, purpose)) & ((1 << 31) - 1)


def _last(key: str) -> str:
    return key.rpartition("__")[2]


def _one_by_one(fitted: Any) -> None:
    """Predict in one thread: several add up the trees of a forest in the order in which they finish, and round so."""
    found = {key: 1 for key, value in parameters(fitted).items() if _last(key) == "n_jobs" and value not in (None, 1)}
    if found:
        fitted.set_params(**found)
