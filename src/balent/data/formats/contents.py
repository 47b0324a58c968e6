"""What a data set is, whatever it was read from: a pool, the labels an experiment may buy, and a test set."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from balent.data.views import Images, Points, Repeated

UNLABELLED = -1  # in y_train: nobody has said yet


@dataclass(frozen=True, eq=False)
class Data:
    """A pool with labels that an experiment may buy, and a test set that decides nothing."""

    x_train: Points
    y_train: Tensor  # UNLABELLED where nobody has said yet
    x_test: Points
    y_test: Tensor
    classes: int
    image: tuple[int, int, int] | None = None  # channels, height, width, where points are images in [0, 1]
    names: tuple[str, ...] = ()  # of the classes, where they have any
    notes: tuple[str, ...] = ()  # what a person should know of how it was read
    ids_train: np.ndarray | None = None  # [points] of str: what the source calls them, as in files of a folder
    ids_test: np.ndarray | None = None


def redundant(data: Data, times: int) -> Data:
    """The pool `times` over, as in the paper's 3×CIFAR-100 and τ×CIFAR-100: nothing is copied.

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
    """The same data, if an experiment can buy every label of its pool."""
    missing = int((data.y_train == UNLABELLED).sum())
    if missing or len(data.y_test) == 0:
        what = f"{missing} of {len(data.y_train)} points have none" if missing else "the test set is empty"
        raise ValueError(
            f"an experiment needs the label of every point, but {what}; ask a person with balent.Learner, or leave "
            "these points out"
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
