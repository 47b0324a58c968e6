"""The words of balent as types: axes, tensors, and the protocols that parts plug into.

Pool first, classes last, draws between, always: so `.sum(-1)` is over classes and `.mean(1)` over
draws. Shapes are checked while the tests run, and cost nothing in production.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Generator, Tensor

if TYPE_CHECKING:
    from balent.maths.moments import Moments

# pool: points that wait for a label | draws: functions drawn from the posterior | classes
Draws = Float[Tensor, "pool draws classes"]  # p(y = c | x, w_k): sums to 1 over classes
ByClass = Float[Tensor, "pool classes"]  # one number for each point and class
Scores = Float[Tensor, " pool"]  # the larger, the more worth a label
Indices = Int[Tensor, " chosen"]  # positions in the pool, best first
Array = Tensor | np.ndarray  # what a person hands in; answers come back as the same kind


@dataclass(frozen=True)
class Picks:
    """The points to label next, best first. Unpacks as `indices, scores = picks`.

    What is not known is None: `stability`, the share of the picks that two halves of the draws agree on;
    `errors`, the Monte-Carlo standard error of each score; `draws`, how many a point took on average;
    `confidence`, the share of the picks that all draws would have picked as well, at least; `covers`, for each pick
    the positions of the points that are so near to it that its label goes for them too.
    """

    indices: Array
    scores: Array
    stability: float | None = None
    errors: Array | None = None
    draws: float | None = None
    confidence: float | None = None
    covers: list[Tensor] | None = None

    def __iter__(self) -> Iterator[Array]:
        return iter((self.indices, self.scores))


@runtime_checkable
class Measure(Protocol):
    """How much is a label worth at each point?  A pure function of the moments of its draws."""

    def __call__(self, m: "Moments", /) -> Scores: ...


@runtime_checkable
class Pool(Protocol):
    """Points that wait for a label: anything indexable of known length; positions are stable ids."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...


@runtime_checkable
class Batches(Protocol):
    """A pool that makes its batches itself, with their positions: a stream of them can be read but once."""

    def blocks(self, points: int, /) -> Iterator[tuple[Any, Indices]]: ...


@runtime_checkable
class Sampled(Protocol):
    """Functions drawn from the posterior, fixed, evaluated together on a batch of points."""

    def __call__(self, batch: Any, positions: Indices | None = None) -> Draws: ...
    def moments(self, batch: Any, positions: Indices | None = None) -> "Moments": ...


@runtime_checkable
class Predictor(Protocol):
    """A classifier that knows what it does not know: a distribution over functions."""

    def fit(self, labelled: Any, *, generator: Generator) -> None: ...
    def sample(self, n: Any, *, seed: int, masks: str = "shared") -> Sampled: ...
    def state(self) -> dict[str, Tensor]: ...  # what the next fit starts from; {} is allowed
    def load_state(self, state: dict[str, Tensor]) -> None: ...


@runtime_checkable
class Wide(Protocol):
    """A predictor that knows, before it is trained, for how many classes it has an output."""

    def width(self, batch: Any) -> int: ...


@runtime_checkable
class Designed(Protocol):
    """A Sampled that says whether its draws are independent of each other. One that does not say so has such draws."""

    @property
    def independent(self) -> bool: ...


@runtime_checkable
class Strategy(Protocol):
    """Which k points of the pool to label next?"""

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks: ...
