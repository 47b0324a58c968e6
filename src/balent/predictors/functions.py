"""Posterior samples, drawn once and fixed: what `sample` of every predictor returns.

A predictor brings one callable, `logits(batch, positions) -> [batch, draws, classes]` in any memory
layout, that can be pickled and gives the same output for the same input at every call. Positions
are those of the batch in its pool; only functions whose randomness belongs to points look at them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from balent.maths.moments import Moments
from balent.predictors.inputs import as_tensor
from balent.types import Indices, Probabilities, Traits

Logits = Float[Tensor, "pool draws classes"]


@dataclass(frozen=True)
class Functions:
    """n fixed functions, evaluated together. `plan` says in words how, and why that way."""

    logits: Callable[[Any, Indices | None], Logits]
    n: int
    plan: str = ""
    features_of: Callable[[Any], Float[Tensor, "pool features"]] | None = None
    block: int = 1024  # points at a time, for what `logits` needs

    @property
    def traits(self) -> Traits:
        return Traits(self.n, self.block, features=self.features_of is not None, plan=self.plan)

    @torch.inference_mode()
    def __call__(self, batch: Any, positions: Indices | None = None) -> Probabilities:
        return self.logits(as_tensor(batch), positions).softmax(-1)

    @torch.inference_mode()
    def outputs(self, batch: Any, positions: Indices | None = None) -> Tensor:
        """The outputs of all draws, of any shape: [batch, draws, …]."""
        return self.logits(as_tensor(batch), positions)

    @torch.inference_mode()
    def pooled(self, batch: Any, counts: Tensor | None) -> Float[Tensor, "pool features"]:
        """What the last layer sees, averaged over the places that count."""
        if not isinstance(self.features_of, Pools):
            raise ValueError("these functions have no features that can be averaged over the parts of an item")
        return self.features_of.pooled(as_tensor(batch), counts)

    @torch.inference_mode()
    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        return Moments.of(self.logits(as_tensor(batch), positions), logits=True, positions=positions)

    def part(self, start: int, stop: int) -> "Functions":
        """Some of the draws; of functions that know no parts, all are computed and some are kept."""
        logits = self.logits.part(start, stop) if isinstance(self.logits, InParts) else Slice(self.logits, start, stop)
        return replace(self, logits=logits, n=stop - start)

    @torch.inference_mode()
    def features(self, batch: Any) -> Float[Tensor, "pool features"]:
        """What the last layer sees of each point."""
        if self.features_of is None:
            raise ValueError("these functions have no features; use a strategy that does not compare points")
        return self.features_of(as_tensor(batch))


@runtime_checkable
class Pools(Protocol):
    """Features that can be averaged over places."""

    def pooled(self, batch: Any, counts: Tensor | None, /) -> Tensor: ...


@runtime_checkable
class InParts(Protocol):
    """Logits that can compute some of the draws without the others."""

    def part(self, start: int, stop: int, /) -> Callable[[Any, Indices | None], Logits]: ...


@dataclass(frozen=True)
class Slice:
    """Some of the draws of a function that computes all."""

    whole: Callable[[Any, Indices | None], Tensor]
    start: int
    stop: int

    def __call__(self, batch: Any, positions: Indices | None = None) -> Tensor:
        return self.whole(batch, positions)[:, self.start : self.stop]
