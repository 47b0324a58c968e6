"""A pool: anything of points that wait for a label, read in batches, the next one while this one is scored.

Arrays and tensors, dicts of them, images kept as bytes and pools several times over are sliced; Datasets
(torch's or Hugging Face's) and lists are read item by item; a DataLoader lends its dataset and how it
collates; any other iterable is a stream of batches, read once. Labels that come with items, as in (x, y) or
{"label": y}, are left out: nothing looks at them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, default_collate

from balent import checks
from balent.data.views import Images, Repeated
from balent.predictors.inputs import size
from balent.types import Array

LABELS = ("label", "labels")  # of items that are dicts
TOGETHER = 256  # items that come one by one


def as_pool(source: Any) -> "Pool | Stream":
    """The source as a pool of known length, or as a stream of batches."""
    if isinstance(source, Pool | Stream):
        return source
    checks.unmasked(source, "a pool")
    if isinstance(source, IterableDataset):
        return Stream(DataLoader(source, TOGETHER))
    if isinstance(source, DataLoader):
        return (
            Stream(source) if isinstance(source.dataset, IterableDataset) else Pool(source.dataset, source.collate_fn)
        )
    if isinstance(source, Mapping):
        return Pool(_columns(source))
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return Pool(source)
    if isinstance(source, Iterable):
        return Stream(source)
    raise TypeError(
        f"a pool is an array, a Dataset, a DataLoader or an iterable of batches, but came as {type(source).__name__}"
    )


@dataclass(frozen=True)
class Pool:
    """Points with positions. `pool[2:5]` and `pool[positions]` are batches."""

    source: Any
    collate: Any = default_collate

    def __len__(self) -> int:
        return size(self.source)

    def __getitem__(self, points: slice | Tensor) -> Any:
        if isinstance(self.source, Mapping):
            return {name: _rows(column, points) for name, column in self.source.items()}
        if isinstance(self.source, Images | Repeated):
            return self.source[points]
        if isinstance(self.source, Tensor | np.ndarray):
            return _rows(self.source, points)
        at = range(len(self))[points] if isinstance(points, slice) else points.tolist()
        items = [self._item(i) for i in at]
        if self.collate is not default_collate:  # takes items with their labels
            return unlabelled(self.collate(items))
        items = [_tensors(unlabelled(item)) for item in items]
        _check_shapes(items, at)
        return default_collate(items)

    def _item(self, i: int) -> Any:
        try:
            item = self.source[i]
        except Exception as error:
            error.add_note(f"while reading point {i} of the pool")
            raise
        return item

    def blocks(self, points: int) -> Iterator[tuple[Any, Tensor]]:
        """Batches in order with their positions; the next is read while this one is used."""
        spans = [torch.arange(i, min(i + points, len(self))) for i in range(0, len(self), points)]
        yield from ahead((self[int(at[0]) : int(at[-1]) + 1], at) for at in spans)


def _rows(array: Array, points: slice | Tensor) -> Array:
    return array[points if isinstance(points, slice) or isinstance(array, Tensor) else points.numpy()]


def _columns(source: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays of one length by name, as models take them that are called with keywords."""
    columns = unlabelled(source)
    for name, column in columns.items():
        checks.unmasked(column, f"the array {name!r} of a pool")
        if not isinstance(column, Tensor | np.ndarray):
            raise TypeError(f"a pool by name is made of arrays, but {name!r} is of type {type(column).__name__}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"the arrays of a pool must have one length, but have {lengths or 'no array'}")
    return columns


def unlabelled(item: Any) -> Any:
    """An item or a batch without its label: x of (x, y) or (x,). Two numbers are no pair but a point in the plane."""
    if isinstance(item, Mapping):
        return {name: value for name, value in item.items() if name not in LABELS}
    pair = isinstance(item, tuple | list) and len(item) in (1, 2) and not isinstance(item[0], int | float)
    return item[0] if pair else item


def _tensors(item: Any) -> Any:
    """Lists of numbers as tensors: `default_collate` would take each number for a thing of its own."""
    if isinstance(item, Mapping):
        return {name: _tensors(value) for name, value in item.items()}
    numbers = isinstance(item, list | tuple) and item and isinstance(item[0], int | float | list)
    return torch.as_tensor(item) if numbers else item


def _check_shapes(items: list[Any], at: Sequence[int]) -> None:
    for i, item in zip(at, items, strict=True):
        one, other = ([getattr(value, "shape", ()) for value in _values(item)] for item in (items[0], item))
        for a, b in zip(one, other, strict=False):
            if a != b:
                raise ValueError(
                    f"points of a batch must have one shape, but point {at[0]} has {tuple(a)} and point {i} has "
                    f"{tuple(b)}; resize or pad them first"
                )


def _values(item: Any) -> list[Any]:
    return list(item.values()) if isinstance(item, Mapping) else [item]


@dataclass(frozen=True)
class Stream:
    """Batches as they come, each point at the position where it came; labels in (x, y) batches are left out."""

    batches: Iterable[Any]

    def blocks(self, points: int) -> Iterator[tuple[Any, Tensor]]:
        yield from ahead(self._numbered())

    def _numbered(self) -> Iterator[tuple[Any, Tensor]]:
        start = 0
        for batch in self.batches:
            x = unlabelled(batch)
            yield x, torch.arange(start, start + size(x))
            start += size(x)


def ahead(items: Iterator[Any]) -> Iterator[Any]:
    """The same items, each made in another thread while the one before is in use."""
    done = object()
    with ThreadPoolExecutor(1) as reader:
        upcoming = reader.submit(next, items, done)
        while (item := upcoming.result()) is not done:
            upcoming = reader.submit(next, items, done)
            yield item
