"""What balent relies on in a predictor, for a predictor of anybody's: `check_predictor(mine)` in a test or a notebook.

Every promise starts from a fresh copy of the predictor that was passed. Draws are compared bit for bit where the same
call is repeated, and up to the rounding of float32 where batches differ.
"""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Generator, Tensor

from balent import adapt, checks
from balent.contracts import global_randomness
from balent.contracts.promises import Findings, expect, findings
from balent.data.pool import Indexed
from balent.loop.learner import Learner
from balent.maths.moments import Moments
from balent.predictors.inputs import as_pairs
from balent.types import Batch, Grows, HasWidth, Predictor, Sampled

N = 5  # posterior samples
ROUNDING = 1e-5  # of sums of float32 numbers in another order, relative to them
PARTS = ("mean", "var", "within", "entropy")


def check_predictor(
    predictor: Predictor | Callable[[], Predictor], labelled: Any = None, pool: Any = None, *, stop: bool = True
) -> Findings:
    """Raises `BrokenPromise` where a predictor breaks what balent relies on. Trains it about twenty times.

    predictor  yours, or a function that makes one; keep it small. A copy of it is trained, never itself
    labelled   (points, labels) as `fit` takes them; by default 60 points of 4 numbers in 3 classes
    pool       about ten other points, as the model takes them; by default points like those
    stop       False: go on after a broken promise, raise nothing, and return all of them
    """
    trial = Trial(predictor, clouds(60, 0) if labelled is None else labelled, _pool(labelled, pool))
    return findings(SUITE, trial, type(trial.fresh()).__name__, stop=stop)


def clouds(points: int, seed: int, classes: int = 3, numbers: int = 4) -> tuple[Tensor, Tensor]:
    """Points around one corner for each class, of all classes in turn, and their labels; some are hard to tell."""
    y = torch.arange(points) % classes
    noise = torch.randn(points, numbers, generator=Generator().manual_seed(seed))
    return torch.eye(classes, numbers)[y] + 0.5 * noise, y


def _pool(labelled: Any, pool: Any) -> Any:
    if pool is not None:
        return pool
    return clouds(11, 9)[0] if labelled is None else Indexed(as_pairs(labelled)[0])[slice(0, 11)]


@dataclass(frozen=True)
class Trial:
    """A predictor, and the points on which it is tried."""

    given: Any
    labelled: Any
    pool: Any

    def fresh(self) -> Any:
        """A predictor that has seen nothing."""
        made = isinstance(self.given, Predictor) and not isinstance(self.given, type)
        return deepcopy(self.given) if made else self.given()

    @cached_property
    def points(self) -> tuple[Batch, Tensor]:
        """Points and labels, as `fit` takes them."""
        return as_pairs(self.labelled)

    @cached_property
    def classes(self) -> int:
        return int(self.points[1].max()) + 1

    @cached_property
    def batch(self) -> Batch:
        return Indexed(self.pool)[slice(0, len(Indexed(self.pool)))]

    @cached_property
    def positions(self) -> Tensor:
        return torch.arange(len(Indexed(self.pool)))

    def rows(self, at: Tensor) -> Batch:
        return Indexed(self.pool)[at]

    def fitted(self, seed: int = 0, labelled: Any = None, predictor: Any = None) -> Any:
        """A fresh predictor, or the given one, trained."""
        one = self.fresh() if predictor is None else predictor
        one.fit(self.labelled if labelled is None else labelled, generator=Generator().manual_seed(seed))
        return one

    @cached_property
    def trained(self) -> Any:
        """One that promises may share, since none of them trains it."""
        return self.fitted()

    @property
    def half(self) -> tuple[Batch, Tensor]:
        """Every other labelled point, from the first on and from the second on in turn: all classes are there."""
        x, y = self.points
        at = torch.arange(len(y))[: max(2 * self.classes, len(y) // 2)]
        return Indexed(x)[at], y[at]

    def draws(self, predictor: Any, seed: int = 0) -> Tensor:
        return torch.as_tensor(predictor.sample(N, seed=seed)(self.batch, self.positions))

    @property
    def sampled(self) -> Any:
        """Posterior samples of one that is trained."""
        return self.trained.sample(N, seed=0)


# ── posterior samples ────────────────────────────────────────────────────────────────────────────


def has_the_methods_of_a_predictor(trial: Trial) -> None:
    """A predictor has fit, sample, state and load_state, and sample returns functions with moments."""
    checks.predictor(trial.fresh())
    expect(isinstance(trial.sampled, Sampled), "what sample returns cannot be called, or has no method moments")


def draws_are_distributions(trial: Trial) -> None:
    """Draws are n distributions over the classes for each point."""
    draws = trial.draws(trial.trained)
    shape = (len(trial.positions), N, trial.classes)
    expect(draws.ndim == 3 and tuple(draws.shape) == shape, f"they have shape {tuple(draws.shape)}, not {shape}")
    expect(bool((draws >= 0).all()), f"one probability is {float(draws.min()):.4g}; take the softmax of logits")
    sums = draws.double().sum(-1)
    worst = float(sums.flatten()[(sums - 1).abs().argmax()])
    expect(bool(((sums - 1).abs() < 1e-4).all()), f"one sums to {worst:.4g} over classes; take the softmax of logits")


def draws_differ(trial: Trial) -> None:
    """Draws are samples of a posterior: no two are the same function."""
    draws = trial.draws(trial.trained)
    alike = [(i, j) for i, j in combinations(range(N), 2) if (draws[:, i] - draws[:, j]).abs().max() <= 1e-4]
    expect(not alike, f"draws {alike[:1]} are equal, so no measure of disagreement can work; is the model stochastic?")


def moments_are_those_of_the_draws(trial: Trial) -> None:
    """`moments` gives the moments of the draws that the call itself gives."""
    expected = Moments.of(trial.draws(trial.trained))
    found = trial.sampled.moments(trial.batch, trial.positions)
    expect(found.n == N, f"they are of {found.n} draws, not {N}")
    for part in PARTS:
        same = _close(vars(found)[part], vars(expected)[part], 10 * ROUNDING)
        expect(same, f"their {part} is another; return Moments.of(self(batch, positions))")


def draws_are_the_same_at_every_call(trial: Trial) -> None:
    """The same input gives the same draws at every call."""
    sampled = trial.sampled
    first, again = (torch.as_tensor(sampled(trial.batch, trial.positions)) for _ in range(2))
    expect(torch.equal(first, again), "two calls differ; draw random numbers in sample(n, seed=…), and keep them")


def draws_do_not_depend_on_the_batch(trial: Trial) -> None:
    """A point has the same draws alone, in any batch and in any order."""
    sampled = trial.sampled
    order = torch.randperm(len(trial.positions), generator=Generator().manual_seed(1))
    whole = torch.as_tensor(sampled(trial.batch, trial.positions))[order]
    for size in (1, 2, 7):
        parts = [torch.as_tensor(sampled(trial.rows(at), trial.positions[at])) for at in order.split(size)]
        same = _close(torch.cat(parts), whole)
        expect(same, f"in batches of {size} they are others; use each row alone (batch norm belongs in eval mode)")


def features_do_not_depend_on_the_batch(trial: Trial) -> None:
    """A point has the same features in any batch, if there are features."""
    sampled = trial.sampled
    if not adapt.has_features(sampled):
        return
    whole = adapt.features(sampled, trial.batch)
    parts = [adapt.features(sampled, trial.rows(at)) for at in torch.arange(len(trial.positions)).split(4)]
    expect(len(whole) == len(trial.positions), f"there are {len(whole)} rows for {len(trial.positions)} points")
    expect(_close(torch.cat(parts), whole), "in batches of 4 they are others; use each row alone")


def draws_stay_when_the_predictor_learns(trial: Trial) -> None:
    """Draws stay what they are when the predictor is trained again, which changes later draws."""
    predictor = trial.fitted(labelled=trial.half)
    sampled = predictor.sample(N, seed=0)
    before = torch.as_tensor(sampled(trial.batch, trial.positions)).clone()
    trial.fitted(4, predictor=predictor)
    same = torch.equal(torch.as_tensor(sampled(trial.batch, trial.positions)), before)
    expect(same, "draws made before the second fit are others after it; copy the weights in sample")
    expect(not torch.equal(trial.draws(predictor), before), "after more labels draws are the same; does fit train?")


def draws_can_be_sent(trial: Trial) -> None:
    """Draws can be pickled, before and after they were used, so that workers can evaluate them."""
    sampled = trial.sampled
    fresh = pickle.loads(pickle.dumps(sampled))
    draws = torch.as_tensor(sampled(trial.batch, trial.positions))
    for sent in (fresh, pickle.loads(pickle.dumps(sampled))):
        same = torch.equal(torch.as_tensor(sent(trial.batch, trial.positions)), draws)
        expect(same, "elsewhere they give other probabilities; keep in them all that they need")


# ── randomness ───────────────────────────────────────────────────────────────────────────────────


def seed_decides_the_draws(trial: Trial) -> None:
    """The seed of `sample`, and nothing else, decides the draws."""
    first, again, other = (trial.draws(trial.trained, seed) for seed in (3, 3, 4))
    expect(torch.equal(first, again), "the same seed gives other draws; use Generator().manual_seed(seed)")
    expect(not torch.equal(first, other), "another seed gives the same draws; use the seed")


def generator_decides_what_is_learnt(trial: Trial) -> None:
    """A fit is a function of its labels and its generator."""
    first, again = (trial.draws(trial.fitted(1)) for _ in range(2))
    expect(torch.equal(first, again), "two fits alike give other draws; take random numbers from the generator")


def leaves_global_randomness_alone(trial: Trial) -> None:
    """It neither uses nor changes the random numbers that a whole process shares."""
    found = []
    for seed in (1, 2):
        with global_randomness.seeded(seed):
            found.append(trial.draws(trial.fitted()))
    expect(torch.equal(*found), "its draws follow from these numbers; use the generator and the seed that are passed")


def masks_belong_to_positions(trial: Trial) -> None:
    """If it has `per_point`, masks="per-point" gives each position masks of its own."""
    if not adapt.per_point(trial.trained):
        return
    sampled = trial.trained.sample(N, seed=0, masks="per-point")
    copies = trial.rows(torch.zeros(len(trial.positions), dtype=torch.int64))
    apart, same = (torch.as_tensor(sampled(copies, at)) for at in (trial.positions, trial.positions * 0))
    expect(float(apart.std(0).max()) > 1e-3, "one input has the same draws at every position")
    expect(float(same.std(0).max()) < 1e-5, "one input has other draws at the same position")


# ── going on in another process ──────────────────────────────────────────────────────────────────


def state_is_what_the_next_fit_starts_from(trial: Trial) -> None:
    """`state` holds tensors, and with them put back another predictor goes on as this one does."""
    one = trial.fitted(8, trial.half)
    state = one.state()
    tensors = isinstance(state, dict) and all(isinstance(value, Tensor) for value in state.values())
    expect(tensors, "it is not a dict of tensors; return {} if every fit starts anew")
    kept = {name: value.clone() for name, value in state.items()}
    other = trial.fitted(5)
    other.load_state(kept)
    same = torch.equal(trial.draws(trial.fitted(6, predictor=one)), trial.draws(trial.fitted(6, predictor=other)))
    expect(same, "the next fit of the two differs; put into state all that a fit starts from")


def a_killed_learner_goes_on(trial: Trial) -> None:
    """A Learner that is killed after every batch picks what one picks that never stops."""
    with TemporaryDirectory() as directory:
        killed, whole = _picked(trial, directory), _picked(trial, None)
    expect(killed == whole, f"with a new process for each batch it picks {killed}, without {whole}; see state")


def _picked(trial: Trial, directory: str | None, rounds: int = 4, k: int = 4) -> list[list[int]]:
    """With a directory by a Learner made for each batch, as by a new process every time."""
    x, y = trial.points
    found, driven = list[list[int]](), None
    start = [int((y == c).nonzero()[0]) for c in range(trial.classes)]
    for _ in range(rounds):
        driven = driven or Learner(trial.fresh(), x, "bald", directory=directory, draws=N, start=start)
        picks = driven.ask(len(start) if not found else k)
        driven.tell(picks.indices, y[torch.as_tensor(picks.indices)])
        found.append(torch.as_tensor(picks.indices).tolist())
        if directory is not None:
            driven.close()
            driven = None
    return found


# ── what it may offer ────────────────────────────────────────────────────────────────────────────


def width_is_the_number_of_classes(trial: Trial) -> None:
    """If it has `width`, that is the number of classes, before any fit."""
    predictor = trial.fresh()
    if isinstance(predictor, HasWidth):
        width = predictor.width(trial.batch)
        expect(width in (None, trial.classes), f"it is {width}, but draws have {trial.classes} classes")


def grows_as_if_it_had_been_made_so(trial: Trial) -> None:
    """If it has `grow`, what it was trained on before leaves nothing behind."""
    used, fresh = trial.fitted(8, trial.half), trial.fresh()
    if not isinstance(used, Grows):
        return
    for one in (used, fresh):
        one.grow(trial.classes + 1)
        trial.fitted(predictor=one)
    draws = trial.draws(used)
    expect(
        draws.shape[-1] == trial.classes + 1, f"draws have {draws.shape[-1]} classes after grow({trial.classes + 1})"
    )
    expect(torch.equal(draws, trial.draws(fresh)), "one that was trained before grows into another")


SUITE = (
    has_the_methods_of_a_predictor,
    draws_are_distributions,
    draws_differ,
    moments_are_those_of_the_draws,
    draws_are_the_same_at_every_call,
    draws_do_not_depend_on_the_batch,
    features_do_not_depend_on_the_batch,
    draws_stay_when_the_predictor_learns,
    draws_can_be_sent,
    seed_decides_the_draws,
    generator_decides_what_is_learnt,
    leaves_global_randomness_alone,
    masks_belong_to_positions,
    state_is_what_the_next_fit_starts_from,
    a_killed_learner_goes_on,
    width_is_the_number_of_classes,
    grows_as_if_it_had_been_made_so,
)


def _close(one: Tensor, other: Tensor, rounding: float = ROUNDING) -> bool:
    return torch.allclose(one, other, rtol=rounding, atol=1e-6)
