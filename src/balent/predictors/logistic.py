"""Logistic regression on features, for few labels: Bayesian by the bootstrap. Start here if you have features.

    W = argmin  Σ_i v_i · cross-entropy(y_i, W x_i) + ½ τ |W|²        without bias, rows x_i of length 1

x_i is the direction of a point from the middle of the pool. v = 1 gives the one best W. A draw has v_i ~ Exp(1),
independent for each label and draw (Bayesian bootstrap: Rubin, 1981; Newton & Raftery, 1994). Every second draw sees
the points moved towards their neighbours (neighbours.py), so that where the two views differ the draws differ as well.
W lies in the span of the labelled rows, and is found there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from balent.geometry.distances import unit
from balent.maths import noise
from balent.maths.lbfgs import minimise
from balent.predictors.asked import shared_draws
from balent.predictors.functions import Functions
from balent.predictors.inputs import as_pairs, as_tensor
from balent.predictors.neighbours import ANCHORS, Neighbours
from balent.predictors.tasks import check_labels
from balent.predictors.training import check_sizes
from balent.types import Batch, Features, Indices

PRECISION = 0.03  # τ of the prior
TOGETHER = 10  # bootstraps of one view that are solved together
EXACT, NEAR = 1e-6, 0.03  # how much of the gradient is left: of the best W, of a draw
BLOCK = 1024

Seen = Callable[[Any], Features]
Weights = Float[Tensor, "draws classes features"]


@dataclass(frozen=True)
class Regression:
    """Labelled unit rows, in coordinates of their span."""

    x: Float[Tensor, "labels span"]
    basis: Float[Tensor, "features span"]
    hot: Float[Tensor, "labels classes"]
    precision: float

    @classmethod
    def of(cls, x: Features, y: Int[Tensor, " labels"], classes: int, precision: float) -> "Regression":
        basis, coordinates = torch.linalg.qr(x.double().T)
        return cls(coordinates.T, basis, one_hot(y, classes).double(), precision)

    def best(self) -> Float[Tensor, "1 n"]:
        """W of v = 1."""
        v = self.hot.new_ones(1, len(self.x))
        start = self.x.new_zeros(1, self.hot.shape[1] * self.x.shape[1])
        return minimise(Objective(self.x, self.hot, v, self.precision), start, EXACT)

    def draws(self, v: Float[Tensor, "draws labels"], start: Float[Tensor, "1 n"]) -> Weights:
        """W of each row of v, from the best one on."""
        objective = Objective(self.x.float(), self.hot.float(), v.float(), self.precision)
        found = minimise(objective, start.float().repeat(len(v), 1), NEAR)
        return self.weights(found)

    def weights(self, found: Float[Tensor, "draws n"]) -> Weights:
        """Back from coordinates to features."""
        return found.unflatten(1, (self.hot.shape[1], -1)) @ self.basis.T.to(found)


@dataclass(frozen=True)
class Objective:
    """Σ_i v_i · cross-entropy(y_i, W x_i) + ½ τ |W|² of several v, with its gradient."""

    x: Float[Tensor, "labels span"]
    hot: Float[Tensor, "labels classes"]
    v: Float[Tensor, "problems labels"]
    precision: float

    def __call__(self, w: Float[Tensor, "problems n"]) -> tuple[Tensor, Tensor]:
        problems, span = len(w), self.x.shape[1]
        log_p = (self.x @ w.view(-1, span).T).unflatten(1, (problems, -1)).log_softmax(-1)  # labels, problems, classes
        true = torch.einsum("lpc,lc->pl", log_p, self.hot)
        wrong = log_p.exp_().sub_(self.hot[:, None]).mul_(self.v.T[:, :, None])
        gradient = (wrong.flatten(1).T @ self.x).view(problems, -1)
        return self.precision / 2 * w.square().sum(1) - (true * self.v).sum(1), gradient + self.precision * w


@dataclass
class Fitted:
    """One view of the labelled points, and the best W there: what draws begin with."""

    regression: Regression
    start: Float[Tensor, "1 n"] = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.regression.best()

    def draws(self, seed: int, numbers: list[int]) -> Weights:
        """The draws of these numbers. A draw is a function of the seed, its number and the labels."""
        at = torch.arange(len(self.regression.x))
        return self.regression.draws(torch.stack([noise.exponential(seed, at, j) for j in numbers]), self.start)


class Logistic:
    """Logistic regression on vectors: features of a backbone, columns of a table.

    classes     how many there are; a class without a label yet is allowed
    anchors     rows of the pool, for its middle and for the view of neighbours. A Learner and `balent run` give 10,000
                rows of their pool. None: points are seen from 0, and without neighbours
    precision   τ of the prior
    """

    def __init__(self, classes: int, anchors: Any = None, *, precision: float = PRECISION) -> None:
        check_classes(classes)
        if not precision > 0:
            raise ValueError(f"precision must be positive, but is {precision}")
        self.classes, self.precision = classes, precision
        self.neighbours: Neighbours | None = None
        self.views: list[Fitted] = []
        if anchors is not None:
            self.anchor(anchors)

    @property
    def anchors(self) -> Features | None:
        """The rows that neighbours are looked for among, of length 1 from the middle of the pool."""
        return None if self.neighbours is None else self.neighbours.anchors

    def anchor(self, rows: Any) -> None:
        """Let these rows stand for the pool from now on: `ANCHORS` of them at most, the first ones."""
        found = vectors(rows)[:ANCHORS]
        check_finite(found)
        self.neighbours, self.views = Neighbours.among(found), []

    @property
    def seen(self) -> Seen:
        """x̂ of points: what is seen of them."""
        return partial(unit_rows, centre=None if self.neighbours is None else self.neighbours.centre)

    @torch.inference_mode()
    def fit(self, labelled: Any, *, generator: Generator) -> None:
        """The best W of each view. Nothing here is random."""
        x, y = as_pairs(labelled)
        check_sizes(x, y)
        check_labels(y, self.classes)
        check_finite(vectors(x))
        rows = self.seen(x)
        seen = [rows] if self.neighbours is None else [rows, self.neighbours(rows)]
        self.views = [Fitted(Regression.of(view, y, self.classes, self.precision)) for view in seen]

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        """n draws. They are computed when they are needed: those of `part(0, 20)` cost a fifth of 100."""
        shared_draws(n, masks, "a draw of Logistic is one W for all points")
        if not self.views:
            raise ValueError("Logistic has learnt nothing yet; call fit(labelled, generator=…) first")
        drawn = Drawn(self.views, seed)
        plan = "one product for all draws" + ("" if self.neighbours is None else ", half of them on neighbours' means")
        return Functions(Logits(drawn, self.seen, self.neighbours, 0, n), n, plan, self.seen, BLOCK)

    def best(self) -> Float[Tensor, "classes features"]:
        """The one best W, for points as they are."""
        if not self.views:
            raise ValueError("Logistic has learnt nothing yet; call fit(labelled, generator=…) first")
        return self.views[0].regression.weights(self.views[0].start)[0]

    def state(self) -> dict[str, Tensor]:
        """What the next fit starts from: the anchors and their middle. W is found anew by each fit."""
        pool = self.neighbours
        return {} if pool is None else {"anchors": pool.anchors, "centre": pool.centre}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Put back anchors that `state` gave."""
        if state:
            self.neighbours, self.views = Neighbours(state["anchors"], state["centre"]), []

    def width(self, batch: Batch) -> int:
        """How many classes there are."""
        return self.classes

    def grow(self, classes: int) -> None:
        """From now on there are this many; the next fit finds W of all of them."""
        check_classes(classes)
        self.classes, self.views = classes, []


class Drawn:
    """The draws of one seed, in groups that are solved when the first of them is needed."""

    def __init__(self, views: list[Fitted], seed: int) -> None:
        self.views, self.seed = views, seed
        self._groups: dict[int, Weights] = {}

    def __call__(self, start: int, stop: int) -> Weights:
        """W of the draws start..stop. Draw j belongs to view j modulo their number."""
        size = TOGETHER * len(self.views)
        first = start // size
        some = torch.cat([self._group(g) for g in range(first, (stop - 1) // size + 1)])
        return some[start - first * size : stop - first * size]

    def _group(self, g: int) -> Weights:
        if g not in self._groups:
            first, views = g * TOGETHER * len(self.views), len(self.views)
            numbers = [[first + i * views + view for i in range(TOGETHER)] for view in range(views)]
            solved = [v.draws(self.seed, some) for v, some in zip(self.views, numbers, strict=True)]
            self._groups[g] = torch.stack(solved, 1).flatten(0, 1)
        return self._groups[g]


@dataclass(frozen=True)
class Logits:
    """The logits of the draws start..stop: one product for each view."""

    drawn: Drawn
    seen: Seen
    neighbours: Neighbours | None
    start: int
    stop: int

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Float[Tensor, "pool draws classes"]:
        x = self.seen(batch)
        seen = [x] if self.neighbours is None else [x, self.neighbours(x)]
        weights = self.drawn(self.start, self.stop)
        out = x.new_empty(len(x), *weights.shape[:2])
        for view, rows in enumerate(seen):
            mine = slice((view - self.start) % len(seen), None, len(seen))
            out[:, mine] = (rows @ weights[mine].flatten(0, 1).T).unflatten(1, (-1, weights.shape[1]))
        return out

    def part(self, start: int, stop: int) -> "Logits":
        return Logits(self.drawn, self.seen, self.neighbours, self.start + start, self.start + stop)


def vectors(x: Any) -> Features:
    """Points as rows of numbers, of any size; whatever axes they had become one."""
    rows = as_tensor(x)
    if not isinstance(rows, Tensor):
        raise TypeError(f"Logistic takes vectors, one row of numbers per point, but got {type(x).__name__}")
    return rows.flatten(1).float() if rows.ndim > 1 else rows.float()[:, None]


def check_classes(classes: object) -> None:
    if isinstance(classes, bool) or not isinstance(classes, int) or classes < 2:
        raise ValueError(f"classes must be a whole number of 2 or more, but is {classes!r}")


def check_finite(rows: Features) -> None:
    """Labelled rows and anchors are numbers; of other points, those that are none are named where they are scored."""
    if not rows.isfinite().all():
        at = int((~rows.isfinite()).any(1).nonzero()[0])
        raise ValueError(f"features must be finite numbers, but row {at} is not; look for NaN in the inputs")


def unit_rows(batch: Any, centre: Float[Tensor, " features"] | None = None) -> Features:
    """x̂: the direction of each point, from the centre if there is one."""
    rows = vectors(batch)
    return unit(rows if centre is None else rows - centre)
