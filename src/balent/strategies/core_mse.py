"""CoreMSE and CoreLog (Tan et al., 2021): the label that is expected to change the predictions most, everywhere.

A label y at x gives draw m the weight w_m(y) ∝ p_m(y|x), and so moves the prediction at x' from the mean p̄(x') to
p̂(x') = Σ_m w_m p_m(x'). The expected loss on a reference set X' then falls by

    CoreMSE  (1/|X'|) Σ_y p(y|x) Σ_x' Σ_y' (p̂ - p̄)²                  squared error (Brier score)
    CoreLog  (1/|X'|) Σ_y p(y|x) Σ_x' Σ_y' p̂ log(p̂/p̄)               log loss: the mean of I(Y; Y')

(p̂ - p̄)² is a square of w, so all of X' goes into one matrix. With Q the draws of X' less their mean, [M, |X'|·C], and
G = QQᵀ / |X'|, [M, M],

    CoreMSE = Σ_y p(y|x) wᵀGw = Σ_y qᵀGq / (M² p(y|x)),  q = p_m(y|x) - p(y|x)

since G·1 = 0. To second order KL(p̂ ‖ p̄) = ½ Σ (p̂ - p̄)²/p̄: CoreLog is the same with Q/√(2p̄) for Q, nearly.

G of the whole pool is known only when all of it has been seen. So a first G₀, of a few points, gives every
point a score on the way; G ≼ h·G₀ for a number h, so h times that score bounds the true one, and only the
points whose bound reaches the k-th best are read again. The result is that of two passes over the pool.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from balent import adapt
from balent.maths.exact_sum import ExactSum
from balent.strategies import joint
from balent.strategies.column import Column
from balent.strategies.nesting import nested, unnested
from balent.strategies.reservoir import at_random
from balent.strategies.top_k import Best
from balent.types import Batch, Indices, Needs, Picks, Pool, Probabilities, Sampled, Scores

REFERENCES = 0  # purpose of random numbers
BLOCK = 1024  # points at a time
PILOT = 1024  # points of the first G
FLOOR = 1e-3  # of the mean eigenvalue: directions of G₀ below it would need more points to be known
SLACK = 1.01  # bounds are computed in float32
CACHED = 1 << 19  # elements of draws at a time: they stay in the cache
Matrix = Float[Tensor, "draws draws"]
Columns = Float[Tensor, "draws points classes"]  # draws less their mean
Scale = Callable[[Columns, Tensor], Columns]


@dataclass(frozen=True)
class CoreMSE:
    """The k points whose labels are expected to reduce the squared error of predictions on X' most, each by itself.

    `reference`: how many points X' has, drawn from the pool; None takes all of it, exactly. Tan et al. pick one point
    at a time by this score; k > 1 are its top k, so duplicates are picked together. Their way to make a batch is
    `CoreBatch`.

    Needs draws shared by the pool (masks="shared") and a pool that can be read twice. Time: one pass over the pool
    (and what is read again: few points where scores differ) and 4·N·C·M² operations, 2·N·C·M² with a `reference`.
    Memory: a block of draws, 3 matrices [M, M] and 8 bytes per point. Random: only X', where it is a sample.
    """

    reference: int | None = None

    @property
    def needs(self) -> Needs:
        return Needs(shared=True, again=True, noise=self.reference is not None)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        return most_changing(sampled, pool, k, self.reference, squared_error, generator.initial_seed()).picks()


@dataclass(frozen=True)
class CoreLog:
    """As CoreMSE for log loss, to second order in the change of the predictions (docs/decisions/0023)."""

    reference: int | None = None

    @property
    def needs(self) -> Needs:
        return Needs(shared=True, again=True, noise=self.reference is not None)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        return most_changing(sampled, pool, k, self.reference, log_loss, generator.initial_seed()).picks()


def squared_error(q: Columns, mean: Tensor) -> Columns:
    return q


def log_loss(q: Columns, mean: Tensor) -> Columns:
    """Q/√(2p̄): half the χ² distance, which is the KL divergence for small changes."""
    return q * reciprocal_root(2 * mean)


def reciprocal_root(mean: Tensor) -> Tensor:
    """1/√p; 0 for a class that never occurs, which has no q either."""
    return torch.where(mean > 0, mean.rsqrt(), 0)


def most_changing(sampled: Sampled, pool: Pool, k: int, reference: int | None, scale: Scale, seed: int) -> Best:
    """The k points of the largest Σ_y qᵀGq / (M² p(y))."""
    if reference is not None and reference < 1:
        raise ValueError(f"reference must be a positive number of points, or None for all, but is {reference}")
    few = at_random(pool, seed, REFERENCES, reference or PILOT).sort().values
    pilot = Pilot(gram_of(sampled, pool, few, scale))
    found = pool.scan(sampled, Bounds(pilot.root, Gram(scale) if reference is None else None))
    final = pilot.matrix if found.gram is None else found.gram.mean()
    return refined(sampled, pool, k, found.values * pilot.excess(final), found.positions, final)


@dataclass
class Gram:
    """G = QQᵀ / |X'| of the points seen so far: products in the precision of the draws, their sum exact.

    So the bits of G do not depend on the spans of a cluster.
    """

    scale: Scale
    points: int = 0
    total: ExactSum = field(default_factory=ExactSum)

    def add(self, q: Columns, mean: Tensor) -> None:
        columns = self.scale(q, mean).flatten(1)
        self.total.add(columns @ columns.t())
        self.points += q.shape[1]

    def merge(self, other: "Gram") -> "Gram":
        return Gram(self.scale, self.points + other.points, self.total.merge(other.total))

    def state(self) -> dict[str, Tensor]:
        return {"points": torch.tensor(self.points), "bins": self.total.bins}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.points, self.total = int(state["points"]), ExactSum(state["bins"])

    def mean(self) -> Matrix:
        return self.total.value / self.points


def centred(draws: Tensor) -> tuple[Columns, Tensor]:
    """Draws less their mean, draws first, and the mean [points, classes]."""
    p = draws.transpose(0, 1).contiguous()
    mean = p.mean(0)
    return p.sub_(mean) if p.data_ptr() != draws.data_ptr() else p - mean, mean


def parts(draws: Tensor, positions: Indices) -> Iterator[tuple[Indices, Columns, Tensor]]:
    """Positions, columns and means of a batch, a part at a time that the cache holds."""
    size = max(1, CACHED // draws[0].numel())
    for some, at in zip(draws.split(size), positions.split(size), strict=True):
        yield at, *centred(joint.distributions(some, at))


def gram_of(sampled: Sampled, pool: Pool, few: Indices, scale: Scale) -> Matrix:
    """G of some points."""
    gram = Gram(scale)
    for at in few.split(BLOCK):
        for _, q, mean in parts(pool.read(sampled, at, adapt.draws), at):
            gram.add(q, mean)
    return gram.mean()


class Bounds:
    """A fold: every point by G = RRᵀ, and G of all of them if that is wanted."""

    def __init__(self, root: Matrix, gram: Gram | None) -> None:
        self.root, self.gram = root, gram
        self.column = Column(self._scored)

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        self.column.add(sampled, batch, positions)

    def merge(self, other: "Bounds") -> "Bounds":
        self.column.merge(other.column)
        self.gram = self.gram.merge(other.gram) if self.gram is not None and other.gram is not None else None
        return self

    def state(self) -> dict[str, Tensor]:
        return nested([self.column.state(), {} if self.gram is None else self.gram.state()])

    def load_state(self, state: dict[str, Tensor]) -> None:
        column, gram = unnested(state, 2)
        self.column.load_state(column)
        if self.gram is not None:
            self.gram.load_state(gram)

    @property
    def positions(self) -> Indices:
        return self.column.positions

    @property
    def values(self) -> Scores:
        return self.column.values

    def _scored(self, sampled: Sampled, batch: Batch, positions: Indices) -> Scores:
        """Scores of a block; its points are added to G last, so that a block that fails has changed nothing."""
        found = list(parts(sampled(batch, positions), positions))
        scores = torch.cat([score(q, mean, self.root) for _, q, mean in found])
        if self.gram is not None:
            for _, q, mean in found:
                self.gram.add(q, mean)
        return scores


def score(q: Columns, mean: Tensor, root: Matrix) -> Scores:
    """Σ_y ‖Rᵀq/√p(y)‖² / M²: a sum of squares, of which float32 loses little; q² alone could underflow."""
    columns = (q * reciprocal_root(mean)).flatten(1)
    return (root.t().to(q.dtype) @ columns).square_().sum(0).view_as(mean).sum(-1).double() / len(q) ** 2


class Pilot:
    """The matrix G₀ of a few points; RRᵀ is G₀ in units of its mean eigenvalue, and a floor."""

    def __init__(self, matrix: Matrix) -> None:
        values, self._vectors = torch.linalg.eigh(matrix)
        unit = float(matrix.trace()) / len(matrix) or 1.0  # 0 where all draws agree: then the floor alone is left
        self.matrix, self._lengths = matrix, ((values / unit).clamp(min=0) + FLOOR).sqrt()

    @property
    def root(self) -> Matrix:
        return self._vectors * self._lengths

    def excess(self, final: Matrix) -> float:
        """The least h with G ≼ h·RRᵀ: the largest eigenvalue of R⁻¹ G R⁻ᵀ; and some slack."""
        inverse = self._vectors / self._lengths
        return SLACK * max(0.0, float(torch.linalg.eigvalsh(inverse.t() @ final @ inverse)[-1]))


def refined(sampled: Sampled, pool: Pool, k: int, bounds: Tensor, positions: Indices, matrix: Matrix) -> Best:
    """The k best by this matrix in float64: in the order of their bounds, until none reaches the k-th best."""
    best, order = Best(k), bounds.argsort(descending=True, stable=True)
    for rows in order.split(min(BLOCK, adapt.traits(sampled).block)):
        if len(best.scores) == k and beaten(float(bounds[rows[0]]), int(positions[rows[0]]), best):
            break
        at = positions[rows].sort().values
        best.add(precise(pool.read(sampled, at, joint.drawn), matrix), at)
    return best


def beaten(bound: float, position: int, best: Best) -> bool:
    """A point with this bound, and all that come after it, cannot be among the best: ties go by position."""
    last = float(best.scores[-1])
    return bound < last or (bound == last and position > int(best.positions.max()))


def precise(draws: Probabilities, matrix: Matrix) -> Scores:
    """Σ_y qᵀGq / (M² p(y)). One product per point: duplicates then have equal bits."""
    draws = draws.double()
    mean = draws.mean(1)
    change = torch.stack([((matrix @ q) * q).sum(0) for q in draws - mean.unsqueeze(1)])
    return torch.where(mean > 0, change / mean, 0).sum(-1).clamp(min=0) / draws.shape[1] ** 2  # below 0 by rounding
