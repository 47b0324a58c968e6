"""A pool of unlabelled points, read in batches; the next batch is read while this one is scored.

Arrays and tensors, dicts of them, images kept as bytes and pools several times over are sliced; Datasets
(torch's or Hugging Face's) and lists are read item by item; a DataLoader lends its dataset and how it
collates; any other iterable is a stream of batches, read once. Labels in the items, as in (x, y) or
{"label": y}, are removed and never used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from balent import checks
from balent.batches import size
from balent.data.views import Images, Repeated
from balent.types import Array, Batch, Indices, Keyed, KeysDraws, Rereadable, Source

LABELS = ("label", "labels")  # of items that are dicts
TOGETHER = 256  # items per batch, where they are read one by one


@runtime_checkable
class Sized(Protocol):
    """Points of known length, read by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Batch: ...


# What a person may pass as a pool; `as_source` makes a source of it.
PoolLike = Source | Sized | Dataset[Any] | Mapping[str, Array] | Iterable[Batch]


def as_source(given: object) -> Source:
    """The given points as a source of known length, or as a stream of batches."""
    if isinstance(given, Source):
        return given
    checks.unmasked(given, "a pool")
    if isinstance(given, IterableDataset):
        return Stream(DataLoader(given, TOGETHER))
    if isinstance(given, DataLoader):
        stream = isinstance(given.dataset, IterableDataset)
        return Stream(given) if stream else Indexed(given.dataset, given.collate_fn)
    if isinstance(given, Mapping):
        return Indexed(_columns(given))
    if isinstance(given, Sized):
        return Indexed(given)
    if isinstance(given, Iterable):
        return Stream(given)
    raise TypeError(
        "a pool must be an array, a Dataset, a DataLoader, a dict of arrays or an iterable of batches, but is of type "
        f"{type(given).__name__}"
    )


@dataclass(frozen=True)
class Indexed:
    """Points by number. `pool[2:5]` and `pool[positions]` are batches."""

    source: Sized | Dataset[Any] | Mapping[str, Array]
    collate: Callable[[list[Any]], Batch] = default_collate

    def __len__(self) -> int:
        columns = self.source.values() if isinstance(self.source, Mapping) else [self.source]
        return len(next(iter(columns)))  # type: ignore[arg-type]  # a Dataset of known length

    @property
    def size(self) -> int:
        return len(self)

    @property
    def positions(self) -> Indices:
        return torch.arange(len(self))

    def at(self, positions: Indices) -> Batch:
        """These points as a batch."""
        return self[positions]

    def __getitem__(self, points: slice | Tensor) -> Batch:
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
            item = self.source[i]  # type: ignore[index]  # a mapping is read by columns
        except Exception as error:
            error.add_note(f"while reading point {i} of the pool")
            raise
        return item

    def blocks(self, points: int) -> Iterator[tuple[Batch, Tensor]]:
        """Batches in order, with their positions."""
        for start in range(0, len(self), points):
            stop = min(start + points, len(self))
            yield self[start:stop], torch.arange(start, stop)

    def spans(self, rows: int) -> list[range]:
        """All points, at most `rows` of them at a time."""
        return ranges(len(self), rows)

    def part(self, span: range) -> "Subset":
        """The points of a span."""
        return Subset(self, torch.arange(span.start, span.stop))


@dataclass(frozen=True)
class Subset:
    """Some points of a pool, at the positions that they have in the whole of it."""

    whole: Indexed
    positions: Indices  # ascending
    hashes: Int[Tensor, " pool"] | None = None  # of the ids of all points of the whole

    def keys(self, positions: Indices) -> Indices:
        """What noise is keyed by: hashes of ids, or positions where there are none."""
        return positions if self.hashes is None else self.hashes[positions]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def size(self) -> int:
        return len(self)

    def at(self, positions: Indices) -> Batch:
        """These points as a batch: neighbours as one slice."""
        first, last = int(positions[0]), int(positions[-1])
        together = last - first + 1 == len(positions) and bool((positions.diff() == 1).all())
        return self.whole[slice(first, last + 1) if together else positions]

    def blocks(self, points: int) -> Iterator[tuple[Batch, Tensor]]:
        for part in self.positions.split(points):
            yield self.at(part), part

    def spans(self, rows: int) -> list[range]:
        """All points, at most `rows` of them at a time."""
        return ranges(len(self), rows)

    def part(self, span: range) -> "Subset":
        """The points of a span."""
        return replace(self, positions=self.positions[span.start : span.stop])


def ranges(points: int, rows: int) -> list[range]:
    """0..points in ranges of this length; the last one may be shorter."""
    return [range(start, min(start + rows, points)) for start in range(0, points, rows)]


@dataclass(frozen=True)
class Narrowed:
    """Some points of any source that can be read again, at the positions that they have in it."""

    whole: Rereadable
    positions: Indices  # ascending

    @property
    def size(self) -> int:
        return len(self.positions)

    @property
    def keyed(self) -> bool:
        """Whether keys take the place of positions in masks, too."""
        return isinstance(self.whole, KeysDraws) and self.whole.keyed

    def keys(self, positions: Indices) -> Indices:
        return self.whole.keys(positions) if isinstance(self.whole, Keyed) else positions

    def at(self, positions: Indices) -> Batch:
        return self.whole.at(positions)

    def blocks(self, points: int) -> Iterator[tuple[Batch, Tensor]]:
        for part in self.positions.split(points):
            yield self.at(part), part

    def spans(self, rows: int) -> list[range]:
        """All points, at most `rows` of them at a time."""
        return [range(start, min(start + rows, self.size)) for start in range(0, self.size, rows)]

    def part(self, span: range) -> "Narrowed":
        """The points of a span."""
        return replace(self, positions=self.positions[span.start : span.stop])


def _rows(array: Array, points: slice | Tensor) -> Array:
    return array[points if isinstance(points, slice) or isinstance(array, Tensor) else points.numpy()]


def _columns(source: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays of one length by name, as models take them that are called with keywords."""
    columns = unlabelled(source)
    for name, column in columns.items():
        checks.unmasked(column, f"the array {name!r} of a pool")
        if not isinstance(column, Tensor | np.ndarray):
            raise TypeError(f"a pool that is a dict must hold arrays, but {name!r} is of type {type(column).__name__}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"the arrays of a pool must have one length, but have {lengths or 'no array'}")
    return columns


def unlabelled(item: Any) -> Any:
    """An item or a batch without its label: x of (x, y) or (x,). Two numbers are a point in the plane, not a pair."""
    if isinstance(item, Mapping):
        return {name: value for name, value in item.items() if name not in LABELS}
    pair = isinstance(item, tuple | list) and len(item) in (1, 2) and not isinstance(item[0], int | float)
    return item[0] if pair else item


def _tensors(item: Any) -> Any:
    """Lists of numbers as tensors: `default_collate` would treat each number as an item."""
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
    """A stream of batches. A point's position is its number in the stream; labels in (x, y) batches are removed."""

    batches: Iterable[Batch]

    @property
    def size(self) -> None:
        return None

    def blocks(self, points: int) -> Iterator[tuple[Batch, Tensor]]:
        """The batches of the stream, in the sizes it gives."""
        start = 0
        for batch in self.batches:
            x = unlabelled(batch)
            yield x, torch.arange(start, start + size(x))
            start += size(x)
