"""Class-balanced herding: cover the pool with labels, more closely where the model cannot decide and classes are rare.

References are random points of the pool, each with a weight. A label covers what lies within a radius of it, which
shrinks by itself as labels grow. Picked is, again and again, the reference that adds most to the covered weight
(geometry/coverage.py). Few labels: weights say little, and coverage
leads. Many labels: the radius is small, and weights lead. The model is asked at the references alone, so a batch
costs the same whatever the pool.

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
from balent.maths import noise
from balent.maths.facts import declares
from balent.maths.measures import balent, check_draws, random
from balent.maths.moments import Moments
from balent.strategies.power import log_key
from balent.strategies.reservoir import Held, Reservoir, smallest
from balent.types import Batch, Indices, Measure, Needs, Picks, Pool, Sampled, Scores

REFERENCES = 2  # purpose of random numbers; 0 and 1 are those of `Uniform` and `Power`
PER_LABEL = 6  # references for each label that is known or asked for
MOST = 20_000  # references
PER_PICK = 3  # references that may be picked, for each pick; as many as `references` at least
DRAWS = 20  # enough for a weight
MEMORY = 1 << 28  # bytes of mean probabilities; more of them go to a temporary file
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
    balance      1: a class that the model seldom predicts weighs as much as a frequent one; 0: classes do not count
    radius       of what a label covers: a share of the mean squared distance to the nearest of as many random points
    references   random points that stand for the pool, at least
    near         as in `Diverse`: how near a point must be to a pick to be covered by its label

    Scores are the gains: the share of the weight that each pick adds. Works without a model, on the inputs alone.
    """

    measure: Measure = undecided
    balance: float = 1.0
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
        seed, known = generator.initial_seed(), labelled_rows(sampled, pool)
        labels = 0 if known is None else len(known)
        size = min(max(self.references, PER_LABEL * (labels + k)), max(MOST, self.references, PER_PICK * k))
        found = _held(sampled, pool, seed, size, k) if pool.size is None else pool
        at = found.positions[smallest(seed, found.keys(found.positions), REFERENCES, size)]
        references = as_points(found.read(sampled, at, adapt.vectors), at)
        scale = max(self.radius * nearest_random(references, labels + k), SMALLEST)
        coverage = Coverage(references, self._weights(sampled, found, at, seed), scale)
        if known is not None:
            coverage.begin(known)
        candidates = max(self.references, PER_PICK * k)
        chosen, gains = coverage.greedy(references[:candidates], k)
        kind = adapt.KINDS[int(found.read(sampled, at[:1], adapt.kinds_of_vectors))]
        return Picks(
            at[torch.tensor(chosen)],
            torch.tensor(gains, dtype=torch.float64),
            covers=_covers(references, torch.tensor(chosen), gains, at, self.near),
            plan=f"{k} of {len(at)} random points that cover the others, compared by {kind}",
        )

    def _weights(self, sampled: Sampled, pool: Pool, references: Indices, seed: int) -> Float[Tensor, " references"]:
        """Before there is a model all weigh the same."""
        if not adapt.trained(sampled):
            return torch.full((len(references),), 1 / len(references), dtype=torch.float64)
        return weights(adapt.few(sampled, DRAWS), pool, references, self.measure, self.balance, seed)


def weights(
    sampled: Sampled, pool: Pool, references: Indices, measure: Measure, balance: float, seed: int
) -> Float[Tensor, " references"]:
    """w_r ∝ measure(r) · Σ_c p̄_rc / f_c, with f_c the mean of p̄_rc over the references."""
    means, logs = Rows(MEMORY, expected=len(references)), []
    try:
        for part in references.split(1024):
            found = pool.read(sampled, part, Weighed(measure, seed))
            logs.append(found[:, 0])
            means.add(found[:, 1:])
        rarity = sum(means[chunk].double().sum(0) for chunk in means.chunks()).div(len(means)).pow(-balance)  # type: ignore[union-attr]
        rarity = torch.where(rarity.isfinite(), rarity, 0)  # of a class that nothing is predicted to be
        balanced = torch.cat([means[chunk].double() @ rarity for chunk in means.chunks()])
    finally:
        means.close()
    log = torch.cat(logs).clamp(max=HIGHEST)
    found = balanced * (log - log.max()).exp() if log.max() > -torch.inf else balanced
    return found / found.sum()


@dataclass(frozen=True)
class Weighed:
    """A reading: the logarithm of the measure's positive key, and the mean probabilities."""

    measure: Measure
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        m = sampled.moments(batch, positions)
        check_draws(self.measure, m.n)
        scores = noise.uniform(self.seed, positions) if self.measure is random else self.measure(m)
        checks.scores(scores, positions)
        return torch.cat([log_key(self.measure, scores)[:, None], m.mean], 1)


def _held(sampled: Sampled, pool: Pool, seed: int, size: int, k: int) -> Held:
    """The random points of a stream."""
    kept = pool.scan(sampled, Reservoir(seed, REFERENCES, size))
    checks.batch_size(k, kept.seen)  # only now is it known how long it was
    return Held(kept, pool.labelled)


def labelled_rows(sampled: Sampled, pool: Pool) -> Points | None:
    """The labelled points as unit rows; None if there are none."""
    known = pool.labelled
    if known is None or not len(known.positions):
        return None
    return as_points(known.read(sampled, known.positions, adapt.vectors), known.positions)


def as_points(h: Tensor, positions: Indices) -> Points:
    """Unit rows."""
    checks.features(h, Points.of(h).norms, LARGEST["float32"], positions)
    return Points.of(unit(h))


def _covers(points: Points, picks: Indices, gains: list[float], at: Tensor, near: float) -> list[Tensor]:
    """For each pick the positions that its label goes for too, unless it is a duplicate itself."""
    rows, order = picks.sort()
    new = torch.tensor(gains)[order] > 0
    found = covered(points, rows, new, near)
    return [at[found[i]] for i in order.argsort().tolist()]
