"""What plug-ins offer beyond their protocols. This is the only module that asks for it.

Every function takes an object that may be a user's and always gives an answer, so no other module probes for
attributes.
"""

import numpy as np
import torch
from torch import Tensor

from balent.maths.moments import Moments
from balent.types import (
    Array,
    Batch,
    Features,
    HasFeatures,
    HasGroups,
    HasMasks,
    HasNeeds,
    HasParts,
    Indices,
    Measure,
    Measured,
    Needs,
    Probabilities,
    Sampled,
    Samples,
    Strategy,
    Traits,
)

KINDS = INPUTS, MODELS, FLATTENED = "the inputs", "the model's features", "the numbers of each input"


class Untrained:
    """In place of posterior samples where there is no model yet: it answers nothing."""

    traits = Traits(plan="no model yet")

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        raise ValueError("there is no model yet: label points of two classes first, chosen by auto or at random")

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        raise ValueError("there is no model yet: label points of two classes first, chosen by auto or at random")


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
    """Does it answer?  Before the first labels there is no model that could."""
    return not isinstance(sampled, Untrained)


def few(sampled: Sampled, count: int) -> Sampled:
    """The first draws, if there are more and they are to be had alone; else all."""
    more = (traits(sampled).n or 0) > count
    return sampled.part(0, count) if more and isinstance(sampled, HasParts) else sampled


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


def _is_floating(array: Array) -> bool:
    return array.is_floating_point() if isinstance(array, Tensor) else array.dtype.kind == "f"


def _numbers(array: Array) -> Tensor:
    """As a tensor, whatever the byte order and layout of the array."""
    return array if isinstance(array, Tensor) else torch.from_numpy(np.array(array, np.float32))


def kinds_of_vectors(sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
    """A reading: which of KINDS the vectors of these points are."""
    return torch.full((len(positions),), KINDS.index(kind_of_vectors(sampled, batch)))


def draws(sampled: Sampled, batch: Batch, positions: Indices | None = None) -> Probabilities:
    """The draws themselves."""
    return sampled(batch, positions)
