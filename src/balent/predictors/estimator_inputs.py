"""Points and labels in the form that estimators take: numpy rows of numbers, of texts, or of both.

    numbers            [points, numbers]: any further axes become one
    texts              [points], strings as Python objects
    a dict of columns  a table [points, columns] in the order of the dict, of Python objects if a column has texts

Labels are class numbers, or class names where classes have names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent.predictors.inputs import columns, whole_numbers

NUMERIC = "biuf"  # kinds of numpy's types


def pairs(labelled: Any) -> tuple[Any, Any]:
    """Points and labels as they were given: of the tuple (x, y), or of a Dataset of (x, y) pairs."""
    return labelled if isinstance(labelled, tuple) and len(labelled) == 2 else columns(labelled)


def as_rows(batch: Any, flatten: bool = True) -> np.ndarray:
    """Points as one array, a row for each.

    >>> as_rows({"age": np.array([31, 64]), "city": np.array(["Oslo", "Rome"])})
    array([[31, 'Oslo'],
           [64, 'Rome']], dtype=object)
    """
    if isinstance(batch, Mapping):
        return _table([as_rows(column, flatten) for column in batch.values()])
    if isinstance(batch, list | tuple):
        return _listed(batch, flatten)
    array = _array(batch) if isinstance(batch, Tensor) else np.asarray(batch)
    if array.dtype.kind not in NUMERIC:
        return array.astype(object)
    return array.reshape(len(array), -1) if (flatten and array.ndim > 2) or array.ndim == 1 else array


def _array(x: Tensor) -> np.ndarray:
    x = x.detach().cpu()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()  # numpy has no bfloat16


def _listed(items: Sequence[Any], flatten: bool) -> np.ndarray:
    if items and isinstance(items[0], Mapping):
        return as_rows({name: [item[name] for item in items] for name in items[0]}, flatten)
    if items and isinstance(items[0], Tensor):
        return as_rows(torch.stack(list(items)), flatten)
    return as_rows(np.array(items, object if items and isinstance(items[0], str) else None), flatten)


def _table(parts: list[np.ndarray]) -> np.ndarray:
    """Columns side by side."""
    return np.concatenate([part[:, None] if part.ndim == 1 else part for part in parts], 1)


def are_numbers(rows: np.ndarray) -> bool:
    """Are these vectors of numbers?"""
    return rows.ndim == 2 and rows.dtype.kind in NUMERIC


def finite(rows: np.ndarray) -> np.ndarray:
    """Which rows have numbers only, no NaN and no infinity?  Texts do."""
    if rows.dtype.kind != "f":
        return np.ones(len(rows), bool)
    return np.isfinite(rows.reshape(len(rows), -1)).all(1)


def are_names(y: Any) -> bool:
    """Are these labels class names?"""
    if isinstance(y, Tensor):
        return False
    given = np.asarray(y, object).ravel() if not isinstance(y, np.ndarray) else y.ravel()
    return any(isinstance(label, str) for label in given)


def numbered(y: Any, names: Sequence[str]) -> Tensor:
    """Labels as class numbers. Class names must be among `names`."""
    if not are_names(y):
        return whole_numbers(y)
    number = {name: i for i, name in enumerate(names)}
    for at, label in enumerate(y):
        if label not in number:
            known = f"the classes are {', '.join(names)}" if names else "classes have no names; pass classes=[…]"
            raise ValueError(f"labels must be names of classes, but label {at} is {label!r}: {known}")
    return torch.tensor([number[label] for label in y], dtype=torch.int64)
