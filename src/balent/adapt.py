"""What plug-ins offer beyond their protocols. This is the only module that asks for it.

Every function takes an object that may be a user's and always gives an answer, so no other module probes for
attributes.
"""

import torch

from balent.maths.moments import Moments
from balent.types import (
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


def draws(sampled: Sampled, batch: Batch, positions: Indices | None = None) -> Probabilities:
    """The draws themselves."""
    return sampled(batch, positions)
