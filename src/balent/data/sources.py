"""Data sets by name: a pool and a test set.

To add one, write a function that returns `Data` and put it into DATASETS, or into PUBLISHED if it is
read from the user's folder with data. A user's own needs no entry: its name is `file.py:function`. Splits
are fixed: a point is in the test set because of a hash of its position or its name, whatever seed a run has.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent import by_name
from balent.data import arrays
from balent.data.cells import shown
from balent.data.formats import cifar, idx, limits, svhn, tinyimagenet
from balent.data.formats import folder as folders
from balent.data.formats.contents import UNLABELLED, Data, all_labelled, image_of, redundant
from balent.data.formats.files import folder_of
from balent.data.formats.hub import PREFIX, hub
from balent.data.formats.table import READERS, table
from balent.kernels.hashing import mixed, uniform
from balent.lookup import nearest

__all__ = [
    "DATASETS",
    "PUBLISHED",
    "Data",
    "all_labelled",
    "image_folder",
    "known",
    "load",
    "own_function",
    "redundant",
]

ARRAYS = ("x_train", "y_train", "x_test", "y_test")
IDS = ("ids_train", "ids_test")  # optional
FEATURES = "-features"  # mnist-features is mnist-features.npz in the folder with data
TIMES = re.compile(r"(\d+)x(.+)")  # 3xmnist is mnist three times over


def digits() -> Data:
    """1,797 handwritten digits of 8 × 8 pixels (Alpaydin & Kaynak, 1998; as in scikit-learn): 1,200 pool, 597 test."""
    found = arrays.several(Path(__file__).with_name("digits.npz"), ("images", "labels"))
    x, y = torch.from_numpy(found["images"]), torch.from_numpy(found["labels"])
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
    """An .npz with x_train, y_train, x_test, y_test; labels are 0..classes-1, or -1 in y_train if not known.

    The test set may be empty. Arrays ids_train and ids_test, of text, may name the points.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    found = arrays.several(path, (*ARRAYS, *IDS))
    _check_names(path, found, arrays.names(path))
    return from_arrays(path, found)


def _check_names(where: Path | str, found: Mapping[str, Any], names: Iterable[str]) -> None:
    missing = [name for name in ARRAYS if name not in found]
    if missing:
        has = shown(sorted(names), 200)
        raise ValueError(f"{where} must hold {', '.join(ARRAYS)}, but has no {missing[0]}; it has {has}")


def from_arrays(path: Path | str, found: Mapping[str, np.ndarray]) -> Data:
    """Data of arrays by name, checked; `path` is where they come from."""
    x_train, x_test = (_numbers(path, name, found[name]) for name in ("x_train", "x_test"))
    y_train, y_test = (_labels(path, *of, found[of[0]]) for of in (("y_train", UNLABELLED), ("y_test", 0)))
    _check_sizes(path, x_train, y_train, x_test, y_test)
    ids = [_ids(path, name, found.get(name), len(y)) for name, y in zip(IDS, (y_train, y_test), strict=True)]
    classes = int(torch.cat([y_train, y_test]).max()) + 1
    return Data(x_train, y_train, x_test, y_test, classes, image_of(x_train), (), (), *ids)


def _check_sizes(path: Path | str, x_train: Tensor, y_train: Tensor, x_test: Tensor, y_test: Tensor) -> None:
    for x, y, part in ((x_train, y_train, "train"), (x_test, y_test, "test")):
        if len(x) != len(y):
            raise ValueError(f"{path}: x_{part} has {len(x)} points and y_{part} has {len(y)} labels; they must agree")
    if len(x_train) == 0:
        raise ValueError(f"{path}: x_train must have points, but is empty")
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ValueError(
            f"{path}: points must have one shape, but those of x_train have {tuple(x_train.shape[1:])} and those of "
            f"x_test {tuple(x_test.shape[1:])}"
        )


DATASETS: dict[str, Callable[[], Data]] = {"digits": digits, "moons": moons}
PUBLISHED: dict[str, Callable[[Path], Data]] = {
    "mnist": idx.MNIST,
    "fashion-mnist": idx.FASHION_MNIST,
    "kmnist": idx.KMNIST,
    "cifar10": cifar.CIFAR10,
    "cifar100": cifar.CIFAR100,
    "svhn": svhn.svhn,
    "tinyimagenet": tinyimagenet.tinyimagenet,
}


def load(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    size: int | None = None,
    skip_bad: bool = False,
    say: Callable[[str], None] = warnings.warn,
) -> Data:
    """A data set by name, or from a file or folder. `docs/data.md` lists all possible names.

    name      of a data set, a file or a folder; `3x` before it repeats the pool three times
    folder    the folder with published sets and `<name>-features.npz`; None: the environment variable BALENT_DATA
    size      height and width of images from a folder, in pixels; None keeps their size
    skip_bad  leave out images that cannot be read
    say       is called with notes about how the data were read; they are also kept in `.notes`
    """
    times, of = _times(name)
    if size is not None and size < 1:
        raise ValueError(f"size must be a positive number of pixels, but is {size}")
    if of.startswith(PREFIX):
        data = hub(of.removeprefix(PREFIX), size, skip_bad)
    elif not _is_known(of) and Path(of).is_dir():
        data = folders.folder(Path(of), size, skip_bad)
    elif size is not None or skip_bad:
        raise ValueError(f"size and skip_bad are for folders of images, but {name} is not one; leave them out")
    else:
        data = _found(of, folder)
    data = redundant(data, times)
    for note in data.notes:
        say(note)
    return data


def image_folder(name: str) -> Path | None:
    """The folder of images that a name stands for; None for all other data sets, and for a repeated one."""
    times, of = _times(name)
    return Path(of) if times == 1 and not _is_known(of) and Path(of).is_dir() else None


def known(name: str) -> None:
    """Raises if there is no data set of that name. Does not check that its files exist."""
    _, of = _times(name)
    if _is_known(of) or _is_file(of):
        return
    if by_name.is_name(of) and by_name.exists(of):
        by_name.function(of)
    else:
        near = nearest(of, (*DATASETS, *PUBLISHED))
        raise ValueError(f"there is no data set {of!r}, and no folder or file of that name; {near}")


def own_function(name: str) -> Callable[..., Any] | None:
    """The user's own function that a data set is read by; None for all others."""
    _, of = _times(name)
    return None if _is_known(of) or _is_file(of) else by_name.function(of)


def _is_file(name: str) -> bool:
    """Is this read from a file, a folder or the hub, rather than by a user's own function?"""
    return name.startswith(PREFIX) or name.endswith((".npz", *READERS)) or Path(name).is_dir()


def _is_known(name: str) -> bool:
    return name in DATASETS or name.removesuffix(FEATURES) in PUBLISHED


def _times(name: str) -> tuple[int, str]:
    """The number of repetitions and the name. A known name is that data set even if a folder has the same name."""
    match = TIMES.fullmatch(name)
    several = match and (_is_known(match[2]) or not Path(_file(name)).exists())
    return (int(match[1]), match[2]) if match and several else (1, name)


def _file(name: str) -> str:
    """The file that a name begins with: 3x5.py of 3x5.py:load."""
    return by_name.split(name)[0].rpartition(":")[0] if by_name.is_name(name) else name


def _found(name: str, folder: str | os.PathLike[str] | None) -> Data:
    known(name)
    if name.endswith(".npz"):
        return from_file(Path(name))
    if name.endswith((*READERS,)):
        return table(Path(name))
    if name in DATASETS:
        return DATASETS[name]()
    if not _is_known(name):
        return own(name, folder)
    place = folder_of(name, folder)
    return PUBLISHED[name](place) if name in PUBLISHED else features(name, place)


def own(name: str, folder: str | os.PathLike[str] | None) -> Data:
    """What a user's function returns: `Data`, or arrays by name as in an .npz. It may take the `folder` with data."""
    place = by_name.parameters(by_name.function(name)).get("folder")
    needed = place is not None and (folder is not None or place.default is place.empty)
    made = by_name.filled(name, {"folder": lambda: folder_of(name, folder)} if needed else {})
    if isinstance(made, Data):
        return made
    if not isinstance(made, Mapping):
        raise TypeError(
            f"{name} must return Data, or a dict with {', '.join(ARRAYS)}, but returned {type(made).__name__}"
        )
    _check_names(name, made, map(str, made))
    return from_arrays(name, {key: np.asarray(made[key]) for key in (*ARRAYS, *IDS) if made.get(key) is not None})


def features(name: str, folder: Path) -> Data:
    """Features of a data set, as `balent embed` writes them: <name>.npz in the folder with data."""
    path = folder / f"{name}.npz"
    if not path.exists():
        of = name.removesuffix(FEATURES)
        raise FileNotFoundError(
            f"there is no {path}: an .npz with {', '.join(ARRAYS)}; make it with balent embed {of}, or put it there"
        )
    return from_file(path)


def split(
    x: Tensor, y: Tensor, order: Tensor, test: int, classes: int, image: tuple[int, int, int] | None = None
) -> Data:
    """The last `test` points of this order become the test set, the others the pool."""
    pool, held = order[:-test], order[-test:]
    return Data(x[pool], y[pool], x[held], y[held], classes, image)


def _numbers(path: Path | str, name: str, array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "fiu" or array.ndim < 2:
        raise ValueError(
            f"{path}: {name} must be numbers with a row for each point, but is {array.dtype} {array.shape}"
        )
    with np.errstate(over="ignore"):  # too large for 32 bits: infinite, and so refused
        x = torch.from_numpy(array.astype(np.float32))
    x = x / 255 if array.dtype == np.uint8 else x
    bad = (~x.flatten(1).isfinite().all(1)).nonzero()
    if len(bad):
        raise ValueError(f"{path}: {name} must be finite, but row {int(bad[0])} is not")
    return x


def _labels(path: Path | str, name: str, least: int, array: np.ndarray) -> Tensor:
    if array.dtype.kind not in "iu" or array.ndim != 1 or (len(array) and array.min() < least):
        least_said = f" (or {least}, where nobody has said yet)" if least else ""
        raise ValueError(
            f"{path}: {name} must be whole numbers 0..classes-1{least_said}, but is {array.dtype} {array.shape}"
            + (f" with {array.min()}" if array.dtype.kind == "i" and array.size else "")
        )
    if len(array) and array.max() >= limits.CLASSES:
        raise ValueError(
            f"{path}: {name} must be whole numbers 0..classes-1 of at most {limits.CLASSES:,} classes, but has "
            f"{array.max()}; number the classes 0, 1, …"
        )
    return torch.from_numpy(array.astype(np.int64))


def _ids(path: Path | str, name: str, array: np.ndarray | None, count: int) -> np.ndarray | None:
    if array is not None and (array.dtype.kind != "U" or array.shape != (count,)):
        raise ValueError(
            f"{path}: {name} must be {count} texts, one for each point, but is {array.dtype} {array.shape}"
        )
    return array
