"""Class-balanced herding: cover the pool with labels, more closely where the model cannot decide and classes are rare.

References are random points of the pool, each with a weight. A label covers what lies within a radius of it, which
shrinks by itself as labels grow. Picked is, again and again, the reference that adds most to the covered weight
(geometry/coverage.py). With few labels weights say little, and coverage leads; with many the radius is small, and
weights lead. Points are compared by their directions from the mean of the references. The model is asked at the
references alone, so a batch costs the same whatever the pool.

This is Uncertainty Herding (Bae, Oliveira & Sutherland, 2025; MaxHerding: Bae et al., 2024) with balanced entropy as
the uncertainty, a balance of classes, and another rule for the radius.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from balent import adapt, checks
from balent.geometry.coverage import Coverage, nearest_random
from balent.geometry.covers import covered
from balent.geometry.distances import Points, unit
from balent.geometry.embedded import LARGEST
from balent.geometry.rows import Rows
from balent.maths.facts import declares
from balent.maths.measures import balent
from balent.maths.moments import Moments
from balent.strategies.power import log_key
from balent.strategies.reservoir import Held, Reservoir, at_random
from balent.strategies.top_k import ByMeasure
from balent.types import Batch, Features, Indices, Measure, Needs, Picks, Pool, Sampled, Scores

REFERENCES = 2  # purpose of random numbers; 0 and 1 are those of `Uniform` and `Power`
PER_LABEL = 6  # references for each label that is known or asked for
MOST = 20_000  # references
PER_PICK = 3  # references that may be picked, for each pick; as many as `references` at least
DRAWS = 20  # enough for a weight
MEMORY = 1 << 28  # bytes of mean probabilities; more of them go to a temporary file
TOGETHER = 1024  # references that are read together
HIGHEST = 50.0  # log of a weight
SMALLEST = 1e-12  # squared radius, where all points are copies of one


@declares(spread=True)
def undecided(m: Moments) -> Scores:
    """exp(−|BalEnt|): 1 where the model's uncertainty is balanced, less the more it knows or the less it can know."""
    return balent(m).abs().neg().exp()


@dataclass(frozen=True)
class Herding:
    """k points that cover most of the pool's weight, beside the labelled ones.

    measure      weighs the references; by default exp(−|BalEnt|)
    balance      1: a class that the model seldom predicts weighs as much as a frequent one; 0: classes do not count;
                 between them: a class of frequency f weighs f^(1 - balance)
    radius       of what a label covers: a share of the mean squared distance to the nearest of as many random points
    references   random points that stand for the pool, at least
    near         as in `Diverse`: how near a point must be to a pick to be covered by its label

    Scores are the gains: the share of the weight that each pick adds. Works without a model, on the inputs alone. It
    needs distances that mean something: where they do not separate the classes (SVHN digits with features learnt on
    photos) it is level with random, see docs/evidence/first_labels.md.
    """

    measure: Measure = undecided
    balance: float = 0.5
    radius: float = 0.5
    references: int = 3000
    near: float = 0.2
    needs: ClassVar[Needs] = Needs(labelled=True, noise=True, separates=True, model=False)

    def __post_init__(self) -> None:
        if self.radius <= 0 or self.references < 1 or self.near < 0:
            raise ValueError(
                f"radius and references must be positive and near 0 or more, but are {self.radius}, {self.references} "
                f"and {self.near}"
            )

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        seed, known = generator.initial_seed(), pool.labelled
        labels = 0 if known is None else len(known.positions)
        size = min(max(self.references, PER_LABEL * (labels + k)), max(MOST, self.references, PER_PICK * k))
        found = _held(sampled, pool, seed, size, k) if pool.size is None else pool
        at = at_random(found, seed, REFERENCES, size)
        references = References.read(adapt.few(sampled, DRAWS), found, at, self.measure, self.balance, seed)
        points = references.points
        scale = max(self.radius * nearest_random(points, labels + k), SMALLEST)
        coverage = Coverage(points, references.weights, scale)
        if known is not None and labels:
            rows = checked(known.read(sampled, known.positions, adapt.vectors), known.positions)
            coverage.begin(directions(rows, references.centre))
        candidates = max(self.references, PER_PICK * k)
        chosen, gains = coverage.greedy(points[:candidates], k)
        return Picks(
            at[torch.tensor(chosen)],
            torch.tensor(gains, dtype=torch.float64),
            covers=_covers(points, torch.tensor(chosen), gains, at, self.near),
            plan=f"{k} of {len(at)} random points that cover the others, compared by {references.kind}",
        )


@dataclass(frozen=True)
class References:
    """Points that stand for the pool, as directions from their centre, and their weights."""

    points: Points
    weights: Float[Tensor, " references"]
    centre: Float[Tensor, " features"]
    kind: str

    @classmethod
    def read(
        cls, sampled: Sampled, pool: Pool, at: Indices, measure: Measure, balance: float, seed: int
    ) -> "References":
        """Each point is read once: that may be an image to decode."""
        rows, logs, means = [], [], Rows(MEMORY, expected=len(at))
        try:
            for part in at.split(TOGETHER):
                found = pool.read(sampled, part, Described(measure, seed))
                kind, width = (int(number) for number in found[0, :2])
                logs.append(found[:, 2].clone())  # a view would keep all of `found`
                rows.append(found[:, 3 : 3 + width].float())
                means.add(found[:, 3 + width :])
            together = torch.cat(rows)
            centre = together.double().mean(0).float()
            weighed = weights(torch.cat(logs), means, balance)
            return cls(directions(together, centre), weighed, centre, adapt.KINDS[kind])
        finally:
            means.close()


def weights(log: Float[Tensor, " references"], means: Rows, balance: float) -> Float[Tensor, " references"]:
    """w_r ∝ measure(r) · Σ_c p̄_rc / f_c^balance, with f_c the mean of p̄_rc over the references."""
    rarity = sum(means[chunk].double().sum(0) for chunk in means.chunks()).div(len(means)).pow(-balance)  # type: ignore[union-attr]
    rarity = torch.where(rarity.isfinite(), rarity, 0)  # of a class that nothing is predicted to be
    found = torch.cat([means[chunk].double() @ rarity for chunk in means.chunks()])
    log = log.clamp(max=HIGHEST)
    if log.max() > -torch.inf:
        found *= (log - log.max()).exp()
    return found / found.sum()


@dataclass(frozen=True)
class Described:
    """A reading: the kind of vector and its width, the logarithm of the measure's positive key, the vector, p̄.

    Before there is a model all weigh the same: as with one class and a measure of 1.
    """

    measure: Measure
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        kind = adapt.KINDS.index(adapt.kind_of_vectors(sampled, batch))
        rows = checked(adapt.vectors(sampled, batch), positions)
        log, mean = self._weighed(sampled, batch, positions)
        about = torch.tensor([kind, rows.shape[1]], dtype=torch.float64).expand(len(rows), 2)
        return torch.cat([about, log[:, None], rows, mean], 1)

    def _weighed(self, sampled: Sampled, batch: Batch, positions: Indices) -> tuple[Tensor, Tensor]:
        if not adapt.trained(sampled):
            return torch.zeros(len(positions), dtype=torch.float64), torch.ones(len(positions), 1)
        m = sampled.moments(batch, positions)
        scores = ByMeasure(self.measure, self.seed).of(m, adapt.keys(sampled, positions))
        checks.scores(scores, positions)
        return log_key(self.measure, scores), m.shares


def _held(sampled: Sampled, pool: Pool, seed: int, size: int, k: int) -> Held:
    """The random points of a stream."""
    kept = pool.scan(sampled, Reservoir(seed, REFERENCES, size))
    checks.batch_size(k, kept.seen)  # only now is it known how long it was
    return Held(kept, pool.labelled)


def checked(h: Tensor, positions: Indices) -> Tensor:
    """Vectors that can be compared."""
    checks.features(h, Points.of(h).norms, LARGEST["float32"], positions)
    return h


def directions(h: Features, centre: Float[Tensor, " features"]) -> Points:
    """Unit rows. From 0 features that are never negative would all point the same way."""
    return Points.of(unit(h.float() - centre))


def _covers(points: Points, picks: Indices, gains: list[float], at: Tensor, near: float) -> list[Tensor]:
    """For each pick the positions that its label goes for too, unless it is a duplicate itself."""
    rows, order = picks.sort()
    new = torch.tensor(gains)[order] > 0
    found = covered(points, rows, new, near)
    return [at[found[i]] for i in order.argsort().tolist()]
