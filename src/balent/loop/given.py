"""Positions, labels and scores as users give them, in any kind of array, checked and as plain numbers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from balent.lookup import nearest
from balent.types import ReadsLabels

if TYPE_CHECKING:
    from balent.loop.learner import Learner

MOST = 1 << 31  # classes, where neither names nor the predictor tell how many there are

Positions = Sequence[int] | np.ndarray | Tensor
Answers = Sequence[Any] | np.ndarray | Tensor


def positions(indices: Any, pool: int) -> list[int]:
    """Positions in a pool."""
    found = _whole(indices, "positions")
    for position in found:
        if not 0 <= position < pool:
            raise ValueError(f"positions must be 0..{pool - 1} in this pool, but one is {position}")
    return found


def read(answers: Answers, learner: "Learner") -> list[Any]:
    """Labels as the journal holds them: class numbers, or what the predictor makes of labels of another kind."""
    if isinstance(learner.predictor, ReadsLabels):
        return learner.predictor.read(answers, learner.labels.classes, learner.pool[torch.tensor([0])])
    return labels(answers, learner.labels.classes, learner.width)


def labels(values: Any, names: Sequence[str], width: int | None) -> list[int]:
    """Class numbers: an int is the number of a class, a str is its name."""
    items = _texts(values)
    if items is None:
        found = _whole(values, "labels")
    else:
        known = {name: number for number, name in enumerate(names)}
        found = [_number(item, known) if isinstance(item, str) else _whole([item], "labels")[0] for item in items]
    _check_range(found, len(names) or width or MOST)
    return found


def scores(values: Any, points: int) -> list[float]:
    """One score per point."""
    found = [float(score) for score in (values.tolist() if isinstance(values, Tensor | np.ndarray) else values)]
    if len(found) != points:
        raise ValueError(f"every pick needs one score, but there are {points} picks and {len(found)} scores")
    if any(math.isnan(score) for score in found):
        raise ValueError("scores must be numbers, but one is NaN; nothing was recorded")
    return found


def one_label_each(positions: list[int], labels: list[Any]) -> None:
    """Refuses calls with more or fewer labels than points, or with two labels for one point."""
    if len(positions) != len(labels):
        raise ValueError(f"every point needs one label, but there are {len(positions)} points and {len(labels)} labels")
    last = dict(zip(positions, labels, strict=True))
    for position, label in zip(positions, labels, strict=True):
        if label != last[position]:
            raise ValueError(
                f"a point has one label, but point {position} was given {label!s:.40} and {last[position]!s:.40} "
                "in one call; nothing was recorded"
            )


def _texts(values: Any) -> list[Any] | None:
    """The labels one by one if some of them are names, else None."""
    if isinstance(values, str):
        return [values]
    if isinstance(values, Tensor | np.ma.MaskedArray):
        return None
    items = values if isinstance(values, list | tuple) else _array(values).ravel().tolist()
    return list(items) if any(isinstance(item, str) for item in items) else None


def _number(name: str, known: dict[str, int]) -> int:
    if not known:
        raise ValueError(
            f"the label {name!r} is a name, but this Learner knows classes by their numbers only; "
            "make it with classes=[…], or give numbers; nothing was recorded"
        )
    if name not in known:
        raise ValueError(
            f"there is no class {name!r}; {nearest(name, known)}; nothing was recorded (add_class makes a new class)"
        )
    return known[name]


def _check_range(labels: list[int], classes: int) -> None:
    for label in labels:
        if not 0 <= label < classes:
            raise ValueError(
                f"labels must be class numbers 0..{classes - 1} of the model, but one is {label}; nothing was recorded"
            )


def _whole(values: Any, what: str) -> list[int]:
    """Numbers of any kind of array, if they are whole."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{what} must be plain numbers, but are a masked array; pass x.compressed(), which leaves masked values out"
        )
    if isinstance(values, list | tuple) and any(map(_is_bool, values)):
        raise TypeError(f"{what} must be whole numbers, but one is True or False; write 1 or 0")
    array = _array(values)
    if array.ndim == 0:
        array = array[None]
    if array.size and (array.ndim != 1 or array.dtype.kind not in "iu"):
        raise TypeError(f"{what} must be whole numbers on one axis, but are {array.dtype} of shape {array.shape}")
    return [int(value) for value in array]


def _array(values: Any) -> np.ndarray:
    return values.cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Tensor) and value.dtype is torch.bool)
