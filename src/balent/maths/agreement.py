"""How well labels of parts, or several labels per item, are predicted: mean IoU, token F1, macro F1.

Each number counts over all items together, not item by item. Parts whose true label is `ignore` do not count.
"""

import math

import torch
from torch import Tensor

from balent.types import Array


def mean_iou(predicted: Array, truth: Array, *, ignore: int = -100) -> float:
    """Mean over classes of the intersection over the union of the parts that are predicted and truly of that class.

    A class that is neither predicted nor true anywhere is left out.

    >>> import numpy as np
    >>> mean_iou(np.array([[0, 0, 1]]), np.array([[0, 1, 1]]))  # class 0: 1/2, class 1: 1/2
    0.5
    """
    found, true = _counted(predicted, truth, ignore)
    classes = int(torch.cat([found, true]).max()) + 1
    both = torch.bincount(true[found == true], minlength=classes)
    union = torch.bincount(found, minlength=classes) + torch.bincount(true, minlength=classes) - both
    return float((both[union > 0] / union[union > 0]).double().mean())


def token_f1(predicted: Array, truth: Array, *, outside: int = 0, ignore: int = -100) -> float:
    """Micro F1 of single tokens: those of class `outside` (no entity) count only where they are confused with others.

    NaN if there is no entity, neither predicted nor true.

    It is not the F1 of whole entities that seqeval computes, which counts an entity only if all its tokens are right.

    >>> import numpy as np
    >>> token_f1(np.array([[0, 1, 2, 2]]), np.array([[0, 1, 1, 2]]))  # 2 of 3 found are right, 2 of 3 true are found
    0.6666666666666666
    """
    found, true = _counted(predicted, truth, ignore)
    right = int(((found == true) & (true != outside)).sum())
    total = int((found != outside).sum()) + int((true != outside).sum())
    return 2 * right / total if total else math.nan


def macro_f1(predicted: Array, truth: Array, *, ignore: int = -100) -> float:
    """Mean over labels of F1, for predictions and truth [items, labels] of 0 and 1.

    A label that is neither predicted nor true of any item is left out.

    >>> import numpy as np
    >>> macro_f1(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]]))  # F1 of 2/3 and of 1
    0.8333333333333333
    """
    found, true = _pair(predicted, truth)
    known = true != ignore
    found, true = (found == 1) & known, (true == 1) & known
    total = found.sum(0) + true.sum(0)
    return float((2 * (found & true).sum(0).double() / total)[total > 0].mean())


def _counted(predicted: Array, truth: Array, ignore: int) -> tuple[Tensor, Tensor]:
    """Class numbers of all parts that count."""
    found, true = _pair(predicted, truth)
    known = true != ignore
    if not bool(known.any()):
        raise ValueError(f"there is nothing to compare: every true label is {ignore}, ignored")
    return found[known].long(), true[known].long()


def _pair(predicted: Array, truth: Array) -> tuple[Tensor, Tensor]:
    found, true = torch.as_tensor(predicted), torch.as_tensor(truth)
    if found.shape != true.shape:
        raise ValueError(
            f"predictions and truth must have one shape, but have {tuple(found.shape)} and {tuple(true.shape)}; of "
            "probabilities take .argmax(-1), or > 0.5 for several labels"
        )
    return found, true
