"""Checks of what users pass in. An error says what was expected, what was given and where, and what to do.

The kernel checks values in the pass that it makes anyway. Only when it finds a bad row, `bad_row` reads that row
again and describes it.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from balent.kernels import SUM_TOLERANCE
from balent.types import Array, Indices, Predictor


def draws(x: object) -> Tensor:
    """The draws as a tensor [pool, draws, classes] of floating-point numbers. No axis may be empty."""
    if not isinstance(x, np.ndarray | Tensor):
        raise TypeError(f"draws must be a numpy array or a torch tensor, but are of type {type(x).__name__}")
    unmasked(x, "draws")
    if x.ndim != 3:
        raise ValueError(
            f"draws must have three axes [pool, draws, classes], but have shape {tuple(x.shape)}; "
            "for a single draw insert an axis: draws[:, None, :]"
        )
    for size, axis in zip(x.shape, ("points", "draws", "classes"), strict=True):
        if size == 0:
            raise ValueError(f"draws must not be empty, but have no {axis}: shape {tuple(x.shape)}")
    return _floating(x)


def unmasked(x: object, what: str) -> None:
    """Refuses a masked array: nothing here would leave the masked numbers out."""
    if np.ma.is_masked(x):
        raise TypeError(
            f"{what} must not be a masked array: its mask would be ignored; leave the masked points out, "
            "or pass x.data if all of its numbers count"
        )


def _floating(x: Array) -> Tensor:
    if isinstance(x, np.ndarray):
        if x.dtype.kind != "f" or x.dtype.itemsize > 8:
            raise TypeError(f"draws must be float16, float32 or float64, but are {x.dtype}; convert them first")
        x = np.asarray(x).astype(x.dtype.newbyteorder("="), copy=False)
        # torch knows only strides of whole elements, from 0 upwards, and the kernel only aligned numbers.
        fits = x.flags.aligned and all(stride >= 0 and stride % x.itemsize == 0 for stride in x.strides)
        x = torch.from_numpy(_writeable(x) if fits else x.copy())
    if x.dtype not in SUM_TOLERANCE:
        raise TypeError(f"draws must be floating-point numbers, but are {x.dtype}; convert them first")
    if x.layout != torch.strided or x.device.type == "meta":
        raise TypeError(f"draws must be dense and in memory, but are {x.layout} on {x.device}; use .to_dense()")
    # A graph of gradients would keep the draws alive; a minus sign that torch still owes is unknown to the kernel.
    return x.detach().resolve_neg()


class _Memory:
    """Memory that we only read, declared as writeable. One class serves all arrays, so no garbage is left behind."""

    def __init__(self, interface: dict[str, Any], owner: np.ndarray) -> None:
        self.__array_interface__, self.owner = interface, owner


def _writeable(x: np.ndarray) -> np.ndarray:
    if x.flags.writeable:
        return x
    pointer, _ = x.__array_interface__["data"]
    interface = {**x.__array_interface__, "data": (pointer, False)}
    return np.asarray(_Memory(interface, x))


def bad_row(x: Tensor, point: int, draw: int, *, logits: bool, positions: Indices | None = None) -> ValueError:
    """Why the kernel refused this row."""
    row = x[point, draw].double()
    where = point if positions is None else int(positions[point])
    return ValueError(f"{_complaint(row, logits, SUM_TOLERANCE[x.dtype])} (at point {where}, draw {draw})")


def _complaint(row: Tensor, logits: bool, tolerance: float) -> str:
    kind = "logits" if logits else "probabilities"
    for broken, value in ((row.isnan(), "NaN"), (row == torch.inf, "+inf")):
        if broken.any():
            return f"{kind} must be finite, but class {int(broken.nonzero()[0])} is {value}; look at the model's output"
    if logits:
        return "logits must leave at least one class, but all are -inf; unmask one"
    if (row < 0).any():
        worst = int(row.argmin())
        return f"probabilities must not be negative, but class {worst} is {row[worst]:.6g}{LOGITS_HINT}"
    hint = LOGITS_HINT if row.max() > 1 + tolerance else "; divide by the sum if only rounding is lost"
    return f"probabilities must sum to 1 over classes within {tolerance:g}, but sum to {row.sum():.6g}{hint}"


LOGITS_HINT = "; if these are logits, pass logits=True (on the command line: --logits)"


def enough_draws(given: int, wanted: int) -> None:
    if given < wanted:
        raise ValueError(
            f"a Monte-Carlo error needs at least {wanted} draws, but the number of draws is {given}; use more"
        )


def batch_size(k: object, pool: int | None) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k must be a whole number of points, but is {k!r}")
    if k < 1 or (pool is not None and k > pool):
        raise ValueError(f"k must be between 1 and the {pool} points of the pool, but is {k}")


def predictor(given: object) -> None:
    """Refuses an object that a Learner could not train and resume."""
    if not isinstance(given, Predictor):
        missing = [name for name in ("fit", "sample", "state", "load_state") if not hasattr(given, name)]
        raise TypeError(
            f"a predictor has the methods fit, sample, state and load_state, but {type(given).__name__} has no "
            f"{' and no '.join(missing)}; wrap a torch module that has dropout as MCDropout(module), "
            "an estimator with fit and predict_proba as Classifier(estimator)"
        )


def ids(given: Iterable[str], points: int) -> list[str]:
    """The ids as a list: one per point, no two equal."""
    found = [str(name) for name in given]
    if len(found) != points:
        raise ValueError(f"every point needs one id, but there are {points} points and {len(found)} ids")
    repeated = [name for name, count in Counter(found).items() if count > 1]
    if repeated:
        raise ValueError(f"ids must differ, but {repeated[0]!r} is given more than once; a label belongs to one id")
    return found


def generator(seed: object) -> Generator:
    """A generator with this seed, a whole number in the range that torch accepts."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed must be a whole number, but is {seed!r}")
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"seed must be between -2**63 and 2**64 - 1, but is {seed}")
    return Generator().manual_seed(int(seed))


def scores(x: object, positions: Tensor) -> None:
    """Refuses scores that are not one number per point, or that contain NaN. The measure may be a user's function."""
    if not isinstance(x, Tensor):
        raise TypeError(f"a measure must return a torch tensor of scores, but returned {type(x).__name__}")
    if x.shape != positions.shape or x.is_complex():
        raise ValueError(
            f"a measure must return one number for each of {len(positions)} points, but returned {x.dtype} of shape "
            f"{tuple(x.shape)}"
        )
    if x.isnan().any():
        point = int(positions[x.isnan().cpu()][0])
        raise ValueError(f"a score must be a number, but is NaN at point {point}; look at the measure's formula there")


def features(x: Tensor, norms: Tensor, largest: float, positions: Indices | None = None) -> None:
    """Refuses features that are NaN, infinite or too large for the type they are stored in. Their norms show it."""
    fine = norms.isfinite()
    if fine.all():
        return
    row = int((~fine).nonzero()[0])
    worst = float(x[row][x[row].isnan()][0] if x[row].isnan().any() else x[row][x[row].abs().argmax()])
    where = f"labelled point {row}" if positions is None else f"point {int(positions[row])}"
    raise ValueError(
        f"features must be numbers of size {largest:g} at most, but one is {worst:.6g} at {where}; "
        "look at the model's features, or scale them"
    )
