"""The types of balent: axes, tensors, and the protocols of all plug-ins. The architecture on one page.

Pool first, classes last, draws between, always: so `.sum(-1)` is over classes and `.mean(1)` over
draws. Shapes are checked while the tests run, and cost nothing in production.

    Source ──blocks──▶ Engine.scan( Sampled ──▶ Moments ──▶ Measure ──▶ Fold ) ──merged──▶ Strategy ──▶ Picks

Protocols are small. What a plug-in may offer beyond its protocol is declared by a protocol of its own (`HasFeatures`,
`HasParts`, …) or in one value (`Traits`, `Needs`), and is read in one place: `adapt.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Generator, Tensor

from balent.notebook_cards import of_picks

if TYPE_CHECKING:
    from balent.maths.moments import Moments

# pool: points without a label | draws: posterior samples | classes
Probabilities = Float[Tensor, "pool draws classes"]  # p(y = c | x, w_k): sums to 1 over classes
ByClass = Float[Tensor, "pool classes"]  # one number per point and class
Scores = Float[Tensor, " pool"]  # the larger, the more worth a label
Features = Float[Tensor, "pool features"]
Indices = Int[Tensor, " chosen"]  # positions in the pool, best first
Array = Tensor | np.ndarray  # what a user passes in; results have the same kind
Batch = Any  # some points as a model takes them: a tensor, an array, a dict of tensors, a list of items


@dataclass(frozen=True)
class Picks:
    """The points to label next, best first. Unpacks as `indices, scores = picks`.

    Fields that are not known are None. stability: share of the picks on which two halves of the draws agree. errors:
    Monte-Carlo standard error of each score. draws: posterior samples per point, on average. confidence: share of
    the picks that all draws would have picked as well, at least. covers: for each pick, the positions of points so near
    to it that its label applies to them too. plan: how they were found, in words.
    """

    indices: Array
    scores: Array
    stability: float | None = None
    errors: Array | None = None
    draws: float | None = None
    confidence: float | None = None
    covers: list[Tensor] | None = None
    plan: str | None = None

    def __iter__(self) -> Iterator[Array]:
        return iter((self.indices, self.scores))

    def _repr_html_(self) -> str:
        return of_picks(self)


# ── posterior samples ────────────────────────────────────────────────────────────────────────────


@runtime_checkable
class Measure(Protocol):
    """How much is a label worth at each point?  A pure function of the moments of its draws."""

    def __call__(self, m: "Moments", /) -> Scores: ...


@runtime_checkable
class Sampled(Protocol):
    """Posterior samples: n *fixed* functions, evaluated together on a batch of points.

    The same input at the same position gives the same output at every call, in every batch, on every worker.
    """

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities: ...
    def moments(self, batch: Batch, positions: Indices | None = None) -> "Moments": ...


@dataclass(frozen=True)
class Traits:
    """What a Sampled declares of itself, as its property `traits`; the defaults hold where it declares nothing."""

    n: int | None = None  # posterior samples; None: not a number of them (analytic moments), or not known
    block: int = 1024  # points that are best evaluated together, at most
    shared: bool = True  # a draw is the same function at every point; False: it belongs to a point (masks per point)
    independent: bool = True  # draws are independent, so groups of them give a standard error
    plan: str = ""  # how it is evaluated, in words
    features: bool = True  # its method `features`, if it has one, works
    costly: bool = False  # each draw costs much when it is first needed, so no more of them are made than are used
    by_position: bool = False  # it knows points by their positions alone, not by inputs (`balent.Draws`)
    parts: bool = False  # its moments are those of parts of items: there are no draws [pool, draws, classes]
    answers: bool = True  # it gives draws; False: there is no model yet, or it has features only


@runtime_checkable
class HasTraits(Protocol):
    @property
    def traits(self) -> Traits: ...


@runtime_checkable
class HasFeatures(Protocol):
    """The features of each point: the input of the last layer."""

    def features(self, batch: Batch, /) -> Array: ...


@runtime_checkable
class HasParts(Protocol):
    """The draws start..stop can be computed without the others."""

    def part(self, start: int, stop: int, /) -> Sampled: ...


@runtime_checkable
class HasGroups(Protocol):
    """The moments of groups of draws, computed without keeping the draws."""

    def groups(self, batch: Batch, positions: Indices | None, count: int, /) -> "list[Moments]": ...


@runtime_checkable
class HasDevice(Protocol):
    """The same draws, evaluated on another device."""

    def to(self, device: str, /) -> Sampled: ...


@runtime_checkable
class Samples(Protocol):
    """Anything that draws posterior samples: enough for `balent acquire`, which does not train."""

    def sample(self, n: Any, *, seed: int, masks: str = "shared") -> Sampled: ...


@runtime_checkable
class Predictor(Protocol):
    """A classifier that knows what it does not know: a distribution over functions."""

    def fit(self, labelled: Any, *, generator: Generator) -> None: ...
    def sample(self, n: Any, *, seed: int, masks: str = "shared") -> Sampled: ...
    def state(self) -> dict[str, Tensor]: ...  # what the next fit starts from; {} is allowed
    def load_state(self, state: dict[str, Tensor]) -> None: ...


@runtime_checkable
class HasWidth(Protocol):
    """A predictor that knows, before it is trained, how many classes it has an output for; None: labels decide."""

    def width(self, batch: Batch, /) -> int | None: ...


@runtime_checkable
class HasComparison(Protocol):
    """A predictor that knows, before it is trained, whether its draws will have features of such points."""

    def compares(self, batch: Batch, /) -> bool: ...


@runtime_checkable
class Grows(Protocol):
    """A predictor that takes more classes. What it was trained on is forgotten; the next fit is as wide as that."""

    def grow(self, classes: int, /) -> None: ...


@runtime_checkable
class Task(Protocol):
    """What a label is: one class per point, one per part, or several labels at once."""

    def labels(self, y: Any, /) -> Tensor: ...  # as one tensor, a row for each point
    def check(self, y: Tensor, shape: tuple[int, ...], /, *, one_class: bool) -> None: ...  # shape: of one output
    def width(self, shape: tuple[int, ...], /) -> int: ...  # classes of an output
    def loss(self, output: Tensor, y: Tensor, /) -> Tensor: ...


@runtime_checkable
class Learns(Protocol):
    """A predictor that can be trained on labels of any task, and whose draws give outputs of any shape."""

    def learn(self, labelled: Any, task: Task, /, *, generator: Generator) -> None: ...
    def sample(self, n: Any, *, seed: int, masks: str = "shared") -> "HasOutputs": ...
    def shape(self, batch: Batch, /) -> tuple[int, ...]: ...  # of one output
    def state(self) -> dict[str, Tensor]: ...
    def load_state(self, state: dict[str, Tensor]) -> None: ...


@runtime_checkable
class ReadsLabels(Protocol):
    """A predictor whose labels are more than a class: it makes plain labels of what a user gives for some points."""

    def read(self, values: Any, names: Sequence[str], batch: Batch, /) -> list[Any]: ...


@runtime_checkable
class HasOutputs(Protocol):
    """The outputs of all draws as the model gives them, [pool, draws, …]; features pooled over the parts that count."""

    @property
    def traits(self) -> Traits: ...
    def outputs(self, batch: Batch, positions: Indices | None = None) -> Tensor: ...
    def pooled(self, batch: Batch, counts: Tensor | None, /) -> Features: ...
    def part(self, start: int, stop: int, /) -> "HasOutputs": ...


@runtime_checkable
class HasMasks(Protocol):
    """A predictor whose draws can belong to points: sample(…, masks="per-point")."""

    per_point: bool


@runtime_checkable
class HasAnchors(Protocol):
    """A predictor that looks at rows of the pool beside the labelled ones; they belong to its state."""

    @property
    def anchors(self) -> Tensor | None: ...
    def anchor(self, rows: Batch, /) -> None: ...


# ── pools ────────────────────────────────────────────────────────────────────────────────────────


@runtime_checkable
class Source(Protocol):
    """Where points are read from, in order and in blocks. A point has a position, an integer that never changes."""

    @property
    def size(self) -> int | None: ...  # points; None for a stream that does not know
    def blocks(self, points: int, /) -> Iterator[tuple[Batch, Indices]]: ...


@runtime_checkable
class Rereadable(Source, Protocol):
    """A source whose points can be read again, by their positions."""

    @property
    def positions(self) -> Indices: ...  # of all its points, in order
    def at(self, positions: Indices, /) -> Batch: ...


@runtime_checkable
class Keyed(Protocol):
    """A source whose points have keys, such as hashes of ids, that stay with them wherever they lie in the pool."""

    def keys(self, positions: Indices, /) -> Indices: ...


@runtime_checkable
class KeysDraws(Keyed, Protocol):
    """A source whose keys, if `keyed`, take the place of positions in masks and in all noise."""

    @property
    def keyed(self) -> bool: ...


@runtime_checkable
class HasPieces(Protocol):
    """A source or a pool that lists its positions some at a time: those of 10⁸ points take 800 MB."""

    def pieces(self) -> Iterator[Indices]: ...


@runtime_checkable
class Spanned(Protocol):
    """A source that is cut into spans, each of which a worker opens and reads by itself.

    Spans are small and picklable, and stand in the order of the pool. `part` has the blocks of a pass over all, where
    the size of blocks divides `rows`.
    """

    def spans(self, rows: int, /) -> Sequence[Any]: ...
    def part(self, span: Any, /) -> Source: ...


@runtime_checkable
class Skips(Protocol):
    """A source, or a part of one, that may go on without rows that cannot be read, and lists them."""

    skipped: list[Any]


@runtime_checkable
class Fold(Protocol):
    """A small, picklable accumulator over a pool: the k best, an embedding, a matrix of sums.

    `add` changes the fold only once everything about the block is computed: an engine may try a block again in
    halves. Merging in the order of the pool gives the result of one pass.
    """

    def add(self, sampled: Sampled, batch: Batch, positions: Indices, /) -> None: ...
    def merge(self, other: Any, /) -> Any: ...


@runtime_checkable
class HasState(Protocol):
    """A fold whose content is tensors: it is sent and kept on disk without pickles."""

    def state(self) -> dict[str, Tensor]: ...
    def load_state(self, state: dict[str, Tensor], /) -> None: ...  # of a fold that was made alike and saw nothing


Folded = TypeVar("Folded", bound=Fold)
Reading = Callable[[Sampled, Batch, Indices], Tensor]  # features, draws, … of some points


@runtime_checkable
class Engine(Protocol):
    """Runs folds over sources: in this process, or on a cluster. The picks are the same, bit for bit."""

    def scan(self, sampled: Sampled, source: Source, fold: Folded) -> Folded: ...
    def read(self, sampled: Sampled, source: Rereadable, positions: Indices, what: Reading) -> Tensor: ...


@runtime_checkable
class Pool(Protocol):
    """What a strategy sees: points that an engine scans and reads, and those that have labels already."""

    @property
    def size(self) -> int | None: ...
    @property
    def positions(self) -> Indices: ...  # that can be read again; none of a stream
    @property
    def labelled(self) -> "Pool | None": ...
    def keys(self, positions: Indices, /) -> Indices: ...  # what noise is keyed by: positions, or hashes of ids
    def scan(self, sampled: Sampled, fold: Folded, /) -> Folded: ...
    def read(self, sampled: Sampled, positions: Indices, what: Reading, /) -> Tensor: ...
    def only(self, positions: Indices, /) -> "Pool": ...  # these points alone, in ascending order


# ── strategies ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Needs:
    """What a strategy declares to need, as its attribute `needs`; checked once, in `acquire`."""

    features: bool = False  # of points: `sampled.features`
    shared: bool = False  # draws that are the same functions at every point: masks="shared"
    again: bool = False  # a pool that can be read twice
    parts: bool = False  # draws in parts
    labelled: bool = False  # the labelled points: it avoids points near them
    separates: bool = False  # it keeps duplicates apart itself, so shared masks are enough for it
    model: bool = True  # posterior samples; False: it also works before there is a model
    noise: bool = False  # it draws random numbers of its own, keyed by (seed, position)


@runtime_checkable
class Strategy(Protocol):
    """Which k points of the pool to label next?  Noise has the seed `generator.initial_seed()`."""

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks: ...


@runtime_checkable
class HasNeeds(Protocol):
    @property
    def needs(self) -> Needs: ...


@runtime_checkable
class Measured(Protocol):
    """A strategy that ranks points by a measure."""

    @property
    def measure(self) -> Measure: ...
