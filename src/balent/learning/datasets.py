"""Data sets with all labels known, for experiments: what is in the pool, and what tests the result.

To add one, write a function that returns `Data` and put it into DATASETS. Splits are fixed: a point
is in the test set because of a hash of its position, whatever seed a run has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from balent import checks
from balent.kernels.hashing import mixed, uniform

ARRAYS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True, eq=False)
class Data:
    """A pool with labels that an experiment may buy, and a test set that decides nothing."""

    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: int
    image: tuple[int, int, int] | None = None  # channels, height, width, where points are images in [0, 1]


def digits() -> Data:
    """1,797 handwritten digits of 8 × 8 pixels (Alpaydin & Kaynak, 1998; as in scikit-learn): 1,200 pool, 597 test."""
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as file:
        x, y = torch.from_numpy(file["images"]), torch.from_numpy(file["labels"])
    images = x.reshape(-1, 1, 8, 8).float() / 16
    order = mixed(17, torch.arange(len(y))).argsort()
    return split(images, y.long(), order, 597, 10, (1, 8, 8))


def moons(pool: int = 2000, test: int = 2000, noise: float = 0.15) -> Data:
    """Three half circles in the plane, each bent around the end of the one before: the paper's toy example."""
    n = pool + test
    u = uniform(mixed(23, torch.arange(n)), 3)
    label = torch.arange(n) % 3
    angle = torch.pi * u[:, 0]
    up = 1.0 - 2.0 * (label % 2)  # the middle one opens upwards
    center = torch.stack([label.double() - 1, 0.5 * (label % 2)], 1)
    points = center + torch.stack([angle.cos(), up * angle.sin()], 1)
    points = points + noise * torch.special.ndtri(u[:, 1:].clamp(2.0**-53, 1 - 2.0**-53))
    return split(points.float(), label, torch.arange(n), test, 3)


def from_file(path: Path) -> Data:
    """An .npz with x_train, y_train, x_test, y_test; labels are 0..classes-1."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as an .npz of arrays: {error}") from None
    missing = [name for name in ARRAYS if name not in found]
    if missing:
        raise ValueError(f"{path} must hold {', '.join(ARRAYS)}, but has no {missing[0]}; it has {sorted(found)}")
    x_train, x_test = (_numbers(path, name, found[name]) for name in ("x_train", "x_test"))
    y_train, y_test = (_labels(path, name, found[name]) for name in ("y_train", "y_test"))
    for x, y, part in ((x_train, y_train, "train"), (x_test, y_test, "test")):
        if len(x) != len(y) or len(x) == 0:
            raise ValueError(f"{path}: x_{part} has {len(x)} points and y_{part} has {len(y)} labels; they must agree")
    classes = int(torch.cat([y_train, y_test]).max()) + 1
    return Data(x_train, y_train, x_test, y_test, classes, _image(x_train))


DATASETS: dict[str, Callable[[], Data]] = {"digits": digits, "moons": moons}


def load(name: str) -> Data:
    """A data set by name, or from a file that ends in .npz."""
    if name.endswith(".npz"):
        return from_file(Path(name))
    return checks.lookup(DATASETS, name, "data set")()


def split(
    x: Tensor, y: Tensor, order: Tensor, test: int, classes: int, image: tuple[int, int, int] | None = None
) -> Data:
    """The last `test` points in this order test, the others are the pool."""
    pool, held = order[:-test], order[-test:]
    return Data(x[pool], y[pool], x[held], y[held], classes, image)


def _numbers(path: Path, name: str, array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "fiu" or array.ndim < 2:
        raise ValueError(
            f"{path}: {name} must be numbers with a row for each point, but is {array.dtype} {array.shape}"
        )
    x = torch.from_numpy(array.astype(np.float32) / (255 if array.dtype == np.uint8 else 1))
    bad = (~x.flatten(1).isfinite().all(1)).nonzero()
    if len(bad):
        raise ValueError(f"{path}: {name} must be finite, but row {int(bad[0])} is not")
    return x


def _labels(path: Path, name: str, array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "iu" or array.ndim != 1 or (len(array) and array.min() < 0):
        raise ValueError(f"{path}: {name} must be whole numbers 0..classes-1, but is {array.dtype} {array.shape}")
    return torch.from_numpy(array.astype(np.int64))


def _image(x: Tensor) -> tuple[int, int, int] | None:
    """Images have three axes, the first of one or three channels, and values from 0 to 1."""
    shape = tuple(x.shape[1:])
    is_image = len(shape) == 3 and shape[0] in (1, 3) and float(x.min()) >= 0 and float(x.max()) <= 1
    return (shape[0], shape[1], shape[2]) if is_image else None
