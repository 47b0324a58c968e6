"""What plug-ins offer beyond their protocols. This is the only module that asks for it.

Every function takes an object that may be a user's and always gives an answer, so no other module probes for
attributes.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor

from balent.maths.moments import Moments
from balent.types import (
    Array,
    Batch,
    Features,
    HasComparison,
    HasFeatures,
    HasGroups,
    HasMasks,
    HasNeeds,
    HasParts,
    HasPieces,
    Indices,
    Keyed,
    KeysDraws,
    Measure,
    Measured,
    Needs,
    Pool,
    Probabilities,
    Rereadable,
    Sampled,
    Samples,
    Source,
    Strategy,
    Traits,
)

KINDS = INPUTS, MODELS, FLATTENED = "the inputs", "the model's features", "the numbers of each input"
PIECE = 1 << 20  # positions at a time


class Untrained:
    """In place of posterior samples where there is no model yet: it answers nothing."""

    traits = Traits(plan="no model yet", answers=False)

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        raise ValueError("there is no model yet: label points of two classes first, chosen by auto or at random")

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return Moments.of(self(batch, positions))


def traits(sampled: Sampled) -> Traits:
    """What it declares; the defaults for one that declares nothing."""
    declared = getattr(sampled, "traits", None)  # asked once: isinstance would evaluate the property as well
    return Traits() if declared is None else declared


def needs(strategy: Strategy) -> Needs:
    """What it declares; a plain function needs nothing."""
    return strategy.needs if isinstance(strategy, HasNeeds) else Needs()


def measure_of(strategy: Strategy) -> Measure | None:
    """The measure that it ranks by, if it has one."""
    return strategy.measure if isinstance(strategy, Measured) else None


def per_point(predictor: Samples) -> bool:
    """Does it support masks per point?"""
    return isinstance(predictor, HasMasks) and predictor.per_point


def part(sampled: Sampled, start: int, stop: int) -> Sampled:
    """Some of the draws."""
    if not isinstance(sampled, HasParts):
        raise ValueError(f"{type(sampled).__name__} has no method part(start, stop), as the draws of MCDropout have")
    return sampled.part(start, stop)


def groups(sampled: Sampled, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
    """The moments of groups of draws at these points, fewer groups where there are fewer draws."""
    if count == 1:
        return [sampled.moments(batch, positions)]
    if isinstance(sampled, HasGroups):
        return sampled.groups(batch, positions, count)
    draws = sampled(batch, positions)
    return Moments.groups(draws, min(count, draws.shape[1]), positions=positions)


def features(sampled: Sampled, batch: Batch, positions: Indices | None = None) -> Features:
    """The features of a batch, one row of float32 numbers per point."""
    if not isinstance(sampled, HasFeatures):
        raise ValueError(
            f"this strategy compares features, but {type(sampled).__name__} has none; give it a method features(batch)"
        )
    return torch.as_tensor(sampled.features(batch)).flatten(1).to("cpu", torch.float32)


def trained(sampled: Sampled) -> bool:
    """Does it give draws?  Before the first labels there is no model that could."""
    return traits(sampled).answers


def check_points(sampled: Sampled, what: str) -> None:
    """Refuses items with many parts where only points with one label serve."""
    if traits(sampled).parts:
        raise ValueError(
            f"{what} needs one label per point, but these items have many parts or several labels; use auto, herding, "
            "or a measure such as 'balentacq'"
        )


def few(sampled: Sampled, count: int) -> Sampled:
    """The first draws, if there are more and they are to be had alone without a loss of features; else all."""
    more = (traits(sampled).n or 0) > count
    some = sampled.part(0, count) if more and isinstance(sampled, HasParts) else sampled
    return some if has_features(some) == has_features(sampled) else sampled


def only_positions(sampled: Sampled) -> bool:
    """Are its points known by their positions alone?  Draws computed elsewhere are, if no features came with them."""
    return traits(sampled).by_position and not has_features(sampled)


def has_features(sampled: Sampled) -> bool:
    return isinstance(sampled, HasFeatures) and traits(sampled).features


def vectors(sampled: Sampled, batch: Batch, positions: Indices | None = None) -> Features:
    """Points as vectors: the inputs where they are some, else the model's features, else all numbers of an input."""
    kind = kind_of_vectors(sampled, batch)
    return features(sampled, batch) if kind == MODELS else _numbers(batch).flatten(1).to("cpu", torch.float32)


def kind_of_vectors(sampled: Sampled, batch: Batch) -> str:
    """Which of them, in words."""
    array = batch if isinstance(batch, Tensor | np.ndarray) else None
    if array is not None and array.ndim == 2 and _is_floating(array):
        return INPUTS
    if has_features(sampled):
        return MODELS
    if array is None or array.ndim < 2:
        raise ValueError(
            f"this strategy compares points, but neither are they vectors nor has {type(sampled).__name__} features; "
            "pass an array [points, numbers], or give the model a method features(batch)"
        )
    return FLATTENED


def comparable(sampled: Sampled, batch: Batch) -> bool:
    """Can such points be compared as vectors?"""
    try:
        kind_of_vectors(sampled, batch)
    except ValueError:
        return False
    return True


def will_compare(predictor: Samples, batch: Batch) -> bool:
    """Once it is trained, can such points be compared?  Yes, unless the predictor says otherwise."""
    if not isinstance(predictor, HasComparison):
        return True
    return predictor.compares(batch) or comparable(Untrained(), batch)


def tried(sampled: Sampled) -> Sampled:
    """The draws that show whether a model takes a pool: one of costly ones, else all."""
    return few(sampled, 1) if traits(sampled).costly else sampled


def _is_floating(array: Array) -> bool:
    return array.is_floating_point() if isinstance(array, Tensor) else array.dtype.kind == "f"


def _numbers(array: Array) -> Tensor:
    """As a tensor, whatever the byte order and layout of the array."""
    return array if isinstance(array, Tensor) else torch.from_numpy(np.array(array, np.float32))


def draws(sampled: Sampled, batch: Batch, positions: Indices | None = None) -> Probabilities:
    """The draws themselves."""
    return sampled(batch, positions)


# ── pools ────────────────────────────────────────────────────────────────────────────────────────


def rereadable(source: object) -> TypeGuard[Rereadable]:
    """Can its points be read again?  As isinstance, which would make the positions of all points to find out."""
    nothing = object()
    return all(inspect.getattr_static(source, name, nothing) is not nothing for name in ("positions", "at"))


def pieces(pool: Pool | Source) -> Iterator[Indices]:
    """The positions of all points in order, some at a time; none of a stream."""
    if isinstance(pool, HasPieces):
        yield from pool.pieces()
    elif isinstance(pool, Pool) or rereadable(pool):
        yield from (piece for piece in pool.positions.split(PIECE) if len(piece))


def first(pool: Pool | Source, count: int) -> Indices:
    """The positions of the first points."""
    return next(pieces(pool), torch.empty(0, dtype=torch.int64))[:count]


def keys(sampled: Sampled, positions: Indices) -> Indices:
    """What noise at these points is keyed by, within an engine: the positions, unless their source has keys."""
    return sampled.keys(positions) if isinstance(sampled, Keyed) else positions


def at_keys(sampled: Sampled, source: Source) -> Sampled:
    """The same posterior samples, which know points by the keys of the source if it has some."""
    keyed = isinstance(source, KeysDraws) and source.keyed and trained(sampled)
    return AtKeys(sampled, source) if keyed and isinstance(source, KeysDraws) else sampled


@dataclass(frozen=True)
class AtKeys:
    """Posterior samples to which a point is known by its key, wherever it lies in the pool."""

    sampled: Sampled
    source: Keyed

    def keys(self, positions: Indices) -> Indices:
        return self.source.keys(positions)

    @property
    def traits(self) -> Traits:
        return replace(traits(self.sampled), features=has_features(self.sampled))

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        return self.sampled(batch, self._keys(positions))

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return self.sampled.moments(batch, self._keys(positions))

    def groups(self, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        return groups(self.sampled, batch, self._keys(positions), count)

    def part(self, start: int, stop: int) -> "AtKeys":
        return AtKeys(part(self.sampled, start, stop), self.source)

    def features(self, batch: Batch) -> Array:
        return features(self.sampled, batch)

    def _keys(self, positions: Indices | None) -> Indices | None:
        return None if positions is None else self.keys(positions)
