"""What balent relies on in a strategy, for a strategy of anybody's: `check_strategy(mine)` in a test or a notebook.

The pool has 60 points with 6 draws of 3 classes, and features. Every promise is about picks, so a strategy can be
anything that is called as one; what it declares to need decides which promises apply.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from balent import adapt, by_name, names
from balent.acquisition.acquire import acquire
from balent.acquisition.draws import Draws
from balent.acquisition.engines.local import Local
from balent.contracts import global_randomness
from balent.contracts.cut_engine import Cut
from balent.contracts.promises import Findings, expect, findings
from balent.data.pool import Indexed, Subset
from balent.maths.moments import Moments
from balent.strategies import strategy as named
from balent.types import Batch, Indices, Needs, Picks, Strategy

POINTS, DRAWS, CLASSES, FEATURES = 60, 6, 3, 5
K = 9
BLOCKS = (1, 7, 59)
LEFT = torch.tensor([i for i in range(POINTS) if i % 4 != 1])  # what is left of the pool where points are labelled
LABELLED = np.setdiff1d(np.arange(POINTS), LEFT.numpy())


def check_strategy(strategy: str | Strategy, *, stop: bool = True) -> Findings:
    """Raises `BrokenPromise` where a strategy breaks what balent relies on. Takes about a second.

    strategy  yours: an object, a function, or a name such as "mine.py:closest"
    stop      False: go on after a broken promise, raise nothing, and return all of them
    """
    given = named(strategy) if isinstance(strategy, str) else strategy
    return findings(SUITE, Trial(given), names.identity(strategy), stop=stop)


@dataclass(frozen=True)
class Trial:
    """A strategy, and the pool on which it is tried."""

    strategy: Any

    @cached_property
    def probabilities(self) -> Tensor:
        """Points from sure to unsure, whose draws agree or not."""
        random = Generator().manual_seed(0)
        point, draw = (
            torch.randn(POINTS, 1, CLASSES, generator=random),
            torch.randn(POINTS, DRAWS, CLASSES, generator=random),
        )
        sure, spread = (3 * torch.rand(POINTS, 1, 1, generator=random) for _ in range(2))
        return (sure * point + spread * draw).double().softmax(-1)

    @cached_property
    def features(self) -> Tensor:
        return torch.randn(POINTS, FEATURES, generator=Generator().manual_seed(1), dtype=torch.float64)

    @property
    def needs(self) -> Needs:
        return adapt.needs(self.strategy)

    def draws(self, rows: Any = slice(None), times: int = 1) -> Draws:
        """Of these points of the pool; or of the first of them, `times` times."""
        some = slice(POINTS // times) if times > 1 else rows
        return Draws(self.probabilities[some].repeat(times, 1, 1), features=self.features[some].repeat(times, 1))

    def picks(self, pool: Any = None, k: int = K, sampled: Any = None, **options: Any) -> list[int]:
        """Positions of the pool, best first."""
        points = np.arange(POINTS) if pool is None else pool
        found = acquire(self.draws() if sampled is None else sampled, points, k, self.strategy, **options)
        expect(isinstance(found, Picks), f"it returns {type(found).__name__}; return balent.Picks(indices, scores)")
        return torch.as_tensor(found.indices).tolist()


@dataclass(frozen=True)
class LeftOut:
    """A whole pool whose other points were left out, as one block: what a part of a pool must be equal to."""

    positions: Indices

    @property
    def size(self) -> int:
        return len(self.positions)

    def blocks(self, points: int) -> Iterator[tuple[Batch, Indices]]:
        yield self.positions.numpy(), self.positions

    def at(self, positions: Indices) -> Batch:
        return positions.numpy()


@dataclass(frozen=True)
class Once:
    """A stream: the same points, which cannot be read again."""

    size: int | None = None

    def blocks(self, points: int) -> Iterator[tuple[Batch, Indices]]:
        for at in torch.arange(POINTS).split(points):
            yield at.numpy(), at


@dataclass(frozen=True)
class ByIds:
    """The points in another order; their ids, not their positions, are what noise goes by."""

    order: Indices
    ids: Indices  # of the points in their first order
    keyed: bool = True

    @property
    def size(self) -> int:
        return len(self.order)

    @property
    def positions(self) -> Indices:
        return torch.arange(len(self.order))

    def keys(self, positions: Indices) -> Indices:
        return self.ids[self.order[positions]]

    def at(self, positions: Indices) -> Batch:
        return self.order[positions].numpy()

    def blocks(self, points: int) -> Iterator[tuple[Batch, Indices]]:
        for at in self.positions.split(points):
            yield self.at(at), at


@dataclass(frozen=True)
class Bare:
    """Posterior samples that offer what their protocol says and no more; a point is its number and its features."""

    probabilities: Tensor

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Tensor:
        return self.probabilities[torch.as_tensor(batch)[:, 0].long()]

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return Moments.of(self(batch), positions=positions)


# ── picks ────────────────────────────────────────────────────────────────────────────────────────


def is_called_as_a_strategy(trial: Trial) -> None:
    """A strategy is called with (sampled, pool, k, *, generator)."""
    called = callable(trial.strategy) and by_name.takes(trial.strategy, None, None, 1, generator=None)
    arguments = by_name.arguments(trial.strategy) if callable(trial.strategy) else "none: it cannot be called"
    expect(called, f"its arguments are {arguments}")


def picks_k_different_points(trial: Trial) -> None:
    """It picks k different points of the pool, for every k up to all of them."""
    for k in (1, 7, POINTS):
        _check_picks(trial.strategy, trial.draws(), k, "")


def picks_k_points_among_duplicates(trial: Trial) -> None:
    """It picks k different points where many points are equal."""
    for times in (3, POINTS):
        for k in (1, 7, POINTS):
            _check_picks(trial.strategy, trial.draws(times=times), k, f" where each point is there {times} times")


def _check_picks(strategy: Any, sampled: Draws, k: int, where: str) -> None:
    found = acquire(sampled, np.arange(POINTS), k, strategy)
    expect(isinstance(found, Picks), f"it returns {type(found).__name__}; return balent.Picks(indices, scores)")
    indices, scores = torch.as_tensor(found.indices), torch.as_tensor(found.scores)
    whole = indices.ndim == 1 and not indices.is_floating_point() and indices.dtype != torch.bool
    expect(whole, f"with k = {k} its indices are {indices.dtype} of shape {tuple(indices.shape)}; return whole numbers")
    expect(len(indices) == k, f"with k = {k} it picks {len(indices)} points{where}")
    expect(len(set(indices.tolist())) == k, f"with k = {k} it picks point {_twice(indices)} twice{where}")
    outside = ", ".join(str(i) for i in indices.tolist() if not 0 <= i < POINTS)
    expect(not outside, f"with k = {k} it picks position {outside} of a pool that has 0..{POINTS - 1}{where}")
    expect(scores.shape == indices.shape, f"with k = {k} it returns scores of shape {tuple(scores.shape)}{where}")
    expect(not scores.isnan().any(), f"with k = {k} the score of a pick is NaN{where}; return a number for every point")


def _twice(indices: Tensor) -> int:
    values, counts = indices.unique(return_counts=True)
    return int(values[counts.argmax()])


def picks_the_same_again(trial: Trial) -> None:
    """The same seed gives the same picks, call after call, so that a run that was killed goes on as it began."""
    fresh = deepcopy(trial.strategy)
    first, again = trial.picks(), trial.picks()
    _expect_same(first, again, "the same call", "the call before", "keep nothing between calls")
    _expect_same(Trial(fresh).picks(), again, "a fresh copy", "one that was used", "keep nothing between calls")


def leaves_global_randomness_alone(trial: Trial) -> None:
    """It neither uses nor changes the random numbers that a whole process shares."""
    found = []
    for seed in (1, 2):
        with global_randomness.seeded(seed):
            found.append(trial.picks())
    _expect_same(found[0], found[1], "one state of these", "another", "draw from the generator that is passed")


def leaves_its_inputs_alone(trial: Trial) -> None:
    """It changes neither draws nor features."""
    sampled, expected = trial.draws(), trial.draws()
    every = torch.arange(POINTS)
    trial.picks(sampled=sampled)
    same = torch.equal(sampled(every), expected(every))
    same &= torch.equal(torch.as_tensor(sampled.features(every)), trial.features)
    expect(same, "after a call they are others; work on a copy")


# ── one pool, read in any way ────────────────────────────────────────────────────────────────────


def does_not_depend_on_blocks(trial: Trial) -> None:
    """Picks do not depend on how many points a block has."""
    whole = trial.picks()
    for block in BLOCKS:
        advice = "a score may use its own point only; compare points in the end of a fold, not in `add`"
        _expect_same(trial.picks(engine=Local(block=block)), whole, f"blocks of {block}", "one block", advice)


def does_not_depend_on_spans(trial: Trial) -> None:
    """Picks do not depend on how a cluster cuts the pool: it merges folds."""
    advice = "merge(other) must give what one pass over both gives"
    _expect_same(trial.picks(engine=Cut(13)), trial.picks(), "spans of 13 points", "one pass", advice)


def does_not_depend_on_the_rest(trial: Trial) -> None:
    """A part of a pool gives the picks of the whole pool with the other points left out."""
    options: dict[str, Any] = {"labelled": LABELLED} if trial.needs.labelled else {}
    expected = trial.picks(LeftOut(LEFT), **options)
    outside = ", ".join(map(str, sorted({*expected} - {*LEFT.tolist()})))
    expect(not outside, f"it picks positions {outside}, which are not in the pool; use pool.positions")
    for block in (None, *BLOCKS):
        part = trial.picks(Subset(Indexed(np.arange(POINTS)), LEFT), engine=Local(block=block), **options)
        advice = "key random numbers by pool.keys(positions), not by the order of points"
        _expect_same(part, expected, "a part", "the whole with the others left out", advice)


def numbers_of_points_say_nothing(trial: Trial) -> None:
    """Where no noise is declared, points have no numbers: a part is picked from as a pool of its own."""
    if trial.needs.noise:
        return
    part = trial.picks(Subset(Indexed(np.arange(POINTS)), LEFT))
    alone = trial.picks(np.arange(len(LEFT)), sampled=trial.draws(LEFT))
    advice = "declare needs = Needs(noise=True) if it draws random numbers"
    _expect_same(part, LEFT[torch.tensor(alone)].tolist(), "a part", "a pool of these points alone", advice)


def order_says_nothing(trial: Trial) -> None:
    """Where no noise is declared, points that are known by ids are picked alike in any order."""
    if not trial.needs.noise:
        ids_decide(trial)


def ids_decide(trial: Trial) -> None:
    """Points that are known by ids are picked alike in any order. Of strategies with noise, balent's own promise it."""
    ids, order = (torch.randperm(POINTS, generator=Generator().manual_seed(seed)) for seed in (2, 3))
    before = trial.picks(ByIds(torch.arange(POINTS), ids))
    now = order[torch.tensor(trial.picks(ByIds(order, ids)))].tolist()
    advice = "declare needs = Needs(noise=True) if it draws random numbers"
    _expect_same(now, before, "another order", "the first", advice)


# ── needs ────────────────────────────────────────────────────────────────────────────────────────


def declares_features(trial: Trial) -> None:
    """It declares that it needs features of the model, or does without."""
    if not trial.needs.features:
        numbered = torch.cat([torch.arange(POINTS)[:, None], trial.features], 1)
        trial.picks(numbered, sampled=Bare(trial.probabilities))


def declares_to_read_again(trial: Trial) -> None:
    """It declares that it reads points again, or does with one pass over a stream."""
    if not trial.needs.again:
        trial.picks(Once())


SUITE = (
    is_called_as_a_strategy,
    picks_k_different_points,
    picks_k_points_among_duplicates,
    picks_the_same_again,
    leaves_global_randomness_alone,
    leaves_its_inputs_alone,
    does_not_depend_on_blocks,
    does_not_depend_on_spans,
    does_not_depend_on_the_rest,
    numbers_of_points_say_nothing,
    order_says_nothing,
    declares_features,
    declares_to_read_again,
)


def _expect_same(one: list[int], other: list[int], first: str, second: str, advice: str) -> None:
    expect(one == other, f"with {first} it picks {one}, with {second} {other}; {advice}")
