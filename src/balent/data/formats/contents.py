"""A data set, whatever it was read from: a pool with its labels, and a test set."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from balent.data.views import Images, Points, Repeated

UNLABELLED = -1  # in y_train: the label is not known


@dataclass(frozen=True, eq=False)
class Data:
    """A pool with labels that a simulated experiment queries, and a test set that no decision uses."""

    x_train: Points
    y_train: Tensor  # UNLABELLED where the label is not known
    x_test: Points
    y_test: Tensor
    classes: int
    image: tuple[int, int, int] | None = None  # channels, height, width, where points are images in [0, 1]
    names: tuple[str, ...] = ()  # of the classes, where they have any
    notes: tuple[str, ...] = ()  # what a user should know about how it was read
    ids_train: np.ndarray | None = None  # [points] of str: names given by the source, such as file names
    ids_test: np.ndarray | None = None


def redundant(data: Data, times: int) -> Data:
    """The pool repeated `times` times, as in the paper's 3×CIFAR-100 and τ×CIFAR-100, without copying it in memory.

    The paper makes them "by adding three identical points": no noise is added, labels are those of the
    original, and the test set stays as it is. Position i + j·n is copy j of point i.
    """
    if times == 1:
        return data
    x = data.x_train
    again = Repeated(x.source, times * x.times) if isinstance(x, Repeated) else Repeated(x, times)
    ids = None if data.ids_train is None else np.tile(data.ids_train, times)
    return replace(data, x_train=again, y_train=data.y_train.repeat(times), ids_train=ids)


def all_labelled(data: Data) -> Data:
    """The same data, if the label of every point is known, as an experiment needs."""
    missing = int((data.y_train == UNLABELLED).sum())
    if missing or len(data.y_test) == 0:
        what = f"{missing} of {len(data.y_train)} points have none" if missing else "the test set is empty"
        raise ValueError(
            f"an experiment needs the label of every point, but {what}; label them with balent.Learner, or "
            "remove these points"
        )
    return data


def image_of(x: Images | Tensor) -> tuple[int, int, int] | None:
    """Images have three axes, the first of one or three channels, and values from 0 to 1."""
    shape = tuple(x.shape[1:])
    if len(shape) != 3 or shape[0] not in (1, 3):
        return None
    if isinstance(x, Tensor) and (len(x) == 0 or float(x.min()) < 0 or float(x.max()) > 1):
        return None
    return (shape[0], shape[1], shape[2])
