"""Hugging Face data sets, by name or from where `save_to_disk` put them (extra [hub]).

The label column is that of class labels, or one called label or the like. Points are its images, its
column of lists of numbers, or else all columns of numbers. Nothing that a data set brings is run: the
library has no loading scripts since version 4.
"""

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from balent.data import targets as labels
from balent.data.cache import Decoded, cached
from balent.data.formats import pictures
from balent.data.formats.contents import Data
from balent.data.formats.image_file import Picture
from balent.data.formats.table import arrays

PREFIX = "hf:"
LABEL = ("label", "labels", "fine_label", "class", "target", "y")


def hub(name: str, size: int | None = None, skip_bad: bool = False) -> Data:
    """The data set of this name, or in this folder. Without a test part, one in five labelled points is held out."""
    found = _loaded(name)
    parts = _parts(name, found)
    files = [Path(file["filename"]) for part in parts for file in part.cache_files]
    if not files:
        raise ValueError(f"{PREFIX}{name} is not kept in files; save it with save_to_disk, and name that folder")

    def decode() -> Decoded:
        return decoded(name, parts, size, skip_bad)

    return cached(Path(name).name, files[0].parent, files, decode, (name, size, skip_bad))


def _loaded(name: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise ValueError("Hugging Face data sets need their library; pip install 'balent[hub]'") from None
    saved = any((Path(name) / file).exists() for file in ("dataset_dict.json", "dataset_info.json"))
    try:
        return datasets.load_from_disk(name) if saved else datasets.load_dataset(name)
    except Exception as error:  # of the network, the hub, the format: each library in it has its own
        raise ValueError(
            f"{PREFIX}{name} cannot be loaded: {type(error).__name__}: {str(error)[:200]}. Without network: load it "
            f"where there is one, dataset.save_to_disk(DIR), copy DIR here, and name it {PREFIX}DIR"
        ) from None


def _parts(name: str, found: Any) -> list[Any]:
    """The pool and, where there is one, the test part; others are left out."""
    if not isinstance(found, dict):
        return [found]
    train = [found[part] for part in labels.TRAIN if part in found]
    test = [found[part] for part in labels.TEST + labels.VALIDATION if part in found]
    if not train and len(found) > 1:
        raise ValueError(f"{PREFIX}{name} must have a part called train, but has {', '.join(found)}")
    return train[:1] + test[:1] if train else list(found.values())


def decoded(name: str, parts: list[Any], size: int | None, skip_bad: bool) -> Decoded:
    pool, *test = parts
    label = _label(name, pool)

    def where(i: int) -> str:
        return f"{PREFIX}{name}, row {i} of {'train' if i < len(pool) else 'test, counted on from train'},"

    words = labels.as_words([word for part in parts for word in _words(part, label)], where)
    tests = np.arange(len(words)) >= len(pool) if test else None
    keys = [str(i) for i in range(len(words))]
    known = labels.settled(words, tests, keys, where, tuple(getattr(pool.features[label], "names", ())))
    image = next((column for column, kind in pool.features.items() if type(kind).__name__ == "Image"), None)
    if image is None:
        return arrays(np.concatenate([_numbers(name, part, label) for part in parts]), known)
    return pictures.decoded([picture for part in parts for picture in _pictures(part, image)], known, size, skip_bad)


def _label(name: str, part: Any) -> str:
    classes = [column for column, kind in part.features.items() if type(kind).__name__ == "ClassLabel"]
    found = [column for column in LABEL if column in (classes or part.features)] or classes
    if not found:
        raise ValueError(f"{PREFIX}{name} must have a column {' or '.join(LABEL)}, but has {', '.join(part.features)}")
    return found[0]


def _words(part: Any, label: str) -> list[labels.Label]:
    """Labels as the data set names them; it writes -1 where there is none."""
    names = getattr(part.features[label], "names", None)
    values = part.with_format(None)[label][:]
    if names is None:
        return [None if value == -1 else value for value in values]
    known: dict[int | None, str | None] = {None: None, -1: None, **dict(enumerate(names))}
    wrong = [value for value in values if value not in known]
    if wrong:
        raise ValueError(f"labels of column {label!r} must be -1..{len(names) - 1}, but one is {wrong[0]!r}")
    return [known[value] for value in values]


def _pictures(part: Any, column: str) -> Iterator[Picture]:
    raw = part.with_format(None).cast_column(column, type(part.features[column])(decode=False))
    for i in range(len(raw)):
        yield Picture(f"{part.split or 'row'} {i}", partial(_file, raw, column, i))


def _file(raw: Any, column: str, i: int) -> io.BufferedIOBase:
    found = raw[i][column]
    return io.BytesIO(found["bytes"]) if found["bytes"] is not None else Path(found["path"]).open("rb")


def _numbers(name: str, part: Any, label: str) -> np.ndarray:
    """One column of lists, or all columns of numbers side by side."""
    table = part.with_format("numpy").remove_columns([label])
    columns = {column: np.asarray(table[column][:]) for column in table.column_names}
    lists = {column: array for column, array in columns.items() if array.ndim > 1 and array.dtype.kind in "fiu"}
    numbers = {column: array for column, array in columns.items() if array.ndim == 1 and array.dtype.kind in "fiu"}
    if len(lists) > 1 or not (lists or numbers):
        raise ValueError(
            f"{PREFIX}{name} must have images, one column of lists of numbers, or columns of numbers, but has "
            f"{', '.join(part.features)}"
        )
    x = next(iter(lists.values())) if lists else np.stack([*numbers.values()], 1)
    bad = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(1))
    if len(bad):
        raise ValueError(f"{PREFIX}{name}, row {bad[0]}, has a number that is missing or not finite")
    return x.astype(np.float32)
