"""`check_strategy` finds every broken promise: a strategy that breaks each, and nothing on good ones."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from balent import Picks, TopK, check_strategy
from balent.contracts import strategy_contract as contract
from balent.contracts.promises import BrokenPromise
from balent.maths.measures import bald
from balent.types import Needs


def scores(sampled, batch, positions):
    return bald(sampled.moments(batch, positions))


def ranked(positions, values, k):
    order = values.argsort(descending=True, stable=True)[:k]
    return Picks(positions[order], values[order])


def good(sampled, pool, k, *, generator):
    return ranked(pool.positions, pool.read(sampled, pool.positions, scores), k)


good.needs = Needs(again=True)


def needing(**needs):
    """Declares what a strategy of this page needs, beside a pool that can be read again."""

    def declared(strategy):
        strategy.needs = Needs(**{"again": True, **needs})
        return strategy

    return declared


def no_strategy(sampled, pool, k):
    return good(sampled, pool, k, generator=None)


@needing()
def a_list(sampled, pool, k, *, generator):
    return good(sampled, pool, k, generator=generator).indices.tolist()


@needing()
def fewer(sampled, pool, k, *, generator):
    return good(sampled, pool, max(1, k - 1), generator=generator)


@needing()
def twice(sampled, pool, k, *, generator):
    picks = good(sampled, pool, k, generator=generator)
    indices = picks.indices.clone()
    indices[-1] = indices[0]
    return Picks(indices, picks.scores)


@needing()
def outside(sampled, pool, k, *, generator):
    picks = good(sampled, pool, k, generator=generator)
    return Picks(picks.indices + 1, picks.scores)


@needing()
def fractions(sampled, pool, k, *, generator):
    picks = good(sampled, pool, k, generator=generator)
    return Picks(picks.indices.double(), picks.scores)


@needing()
def no_numbers(sampled, pool, k, *, generator):
    picks = good(sampled, pool, k, generator=generator)
    return Picks(picks.indices, picks.scores * torch.nan)


@needing()
def one_score(sampled, pool, k, *, generator):
    picks = good(sampled, pool, k, generator=generator)
    return Picks(picks.indices, picks.scores.sum())


@needing(features=True)
def one_of_each(sampled, pool, k, *, generator):
    """Duplicates are left out, so there are too few points in the end."""
    rows = pool.read(sampled, pool.positions, lambda sampled, batch, at: sampled.features(batch))
    _, group = rows.unique(dim=0, return_inverse=True)
    first = [int((group == g).nonzero()[0]) for g in range(int(group.max()) + 1)]
    return Picks(pool.positions[first][:k], torch.zeros(min(k, len(first))))


@dataclass
class Remembers:
    """It does not pick what it has picked before, even if the process is another one."""

    before: list = field(default_factory=list)
    needs = Needs(again=True)

    def __call__(self, sampled, pool, k, *, generator):
        values = pool.read(sampled, pool.positions, scores)
        values[torch.isin(pool.positions, torch.tensor(self.before, dtype=torch.int64))] -= 1
        picks = ranked(pool.positions, values, k)
        self.before = picks.indices.tolist()
        return picks


def shared_noise(draw):
    @needing(noise=True)
    def noisy(sampled, pool, k, *, generator):
        return ranked(pool.positions, torch.as_tensor(draw(len(pool.positions))), k)

    return noisy


@needing(noise=True)
def seeds_everybody(sampled, pool, k, *, generator):
    torch.manual_seed(generator.initial_seed())
    return ranked(pool.positions, torch.rand(len(pool.positions)), k)


@needing()
def changes_its_draws(sampled, pool, k, *, generator):
    picks = good(sampled, pool, k, generator=generator)
    sampled.array.mul_(0.5).add_(0.5 / sampled.array.shape[-1])
    return picks


@dataclass
class Above:
    """A fold of how far each point is above something."""

    level: object
    values: list = field(default_factory=list)
    positions: list = field(default_factory=list)

    def add(self, sampled, batch, positions):
        found = scores(sampled, batch, positions)
        self.values.append(found - self.level(found))
        self.positions.append(positions)

    def merge(self, other):
        self.values, self.positions = self.values + other.values, self.positions + other.positions
        return self

    def best(self, k):
        return ranked(torch.cat(self.positions), torch.cat(self.values), k)


class Forgets(Above):
    """Merging keeps this one alone, unless it is empty."""

    def merge(self, other):
        return self if self.values else other


def above_the_mean_of_a_block(sampled, pool, k, *, generator):
    return pool.scan(sampled, Above(torch.mean)).best(k)


def forgets_other_spans(sampled, pool, k, *, generator):
    return pool.scan(sampled, Forgets(torch.zeros_like)).best(k)


@needing(noise=True)
def counts_from_zero(sampled, pool, k, *, generator):
    """Right for a whole pool only, where position i is the point i."""
    order = good(sampled, pool, k, generator=generator).indices
    rank = torch.searchsorted(pool.positions, order)
    return Picks(rank, torch.zeros(k))


@needing()
def undeclared_noise(sampled, pool, k, *, generator):
    """Keyed by positions, which a strategy without noise does not look at."""
    noise = torch.rand(1000, generator=torch.Generator().manual_seed(generator.initial_seed()))
    return ranked(pool.positions, noise[pool.positions], k)


@needing()
def first_come(sampled, pool, k, *, generator):
    return Picks(pool.positions[:k], torch.zeros(k))


@needing()
def undeclared_features(sampled, pool, k, *, generator):
    rows = pool.read(sampled, pool.positions, lambda sampled, batch, at: sampled.features(batch))
    return ranked(pool.positions, rows.norm(dim=1), k)


@needing(again=False)
def undeclared_reading(sampled, pool, k, *, generator):
    return good(sampled, pool, k, generator=generator)


BROKEN = [
    (no_strategy, contract.is_called_as_a_strategy, "its arguments are"),
    (a_list, contract.picks_k_different_points, "it returns list; return balent.Picks|list"),
    (fewer, contract.picks_k_different_points, "with k = 7 it picks 6 points"),
    (twice, contract.picks_k_different_points, r"with k = 7 it picks point \d+ twice"),
    (outside, contract.picks_k_different_points, "it picks position 60 of a pool that has 0..59"),
    (fractions, contract.picks_k_different_points, "its indices are torch.float64"),
    (no_numbers, contract.picks_k_different_points, "the score of a pick is NaN"),
    (one_score, contract.picks_k_different_points, r"it returns scores of shape \(\)"),
    (one_of_each, contract.picks_k_points_among_duplicates, "it picks 20 points where each point is there 3 times"),
    (Remembers(), contract.picks_the_same_again, "keep nothing between calls"),
    (shared_noise(torch.rand), contract.picks_the_same_again, "keep nothing between calls"),
    (seeds_everybody, contract.leaves_global_randomness_alone, "the random numbers of torch"),
    (changes_its_draws, contract.leaves_its_inputs_alone, "work on a copy"),
    (above_the_mean_of_a_block, contract.does_not_depend_on_blocks, "with blocks of 1 it picks"),
    (forgets_other_spans, contract.does_not_depend_on_spans, "with spans of 13 points it picks"),
    (counts_from_zero, contract.does_not_depend_on_the_rest, "which are not in the pool; use pool.positions"),
    (undeclared_noise, contract.numbers_of_points_say_nothing, "declare needs"),
    (first_come, contract.order_says_nothing, "with another order it picks"),
    (undeclared_features, contract.declares_features, "no attribute 'features'|has none|features"),
    (undeclared_reading, contract.declares_to_read_again, "a stream is read only once|number of positions"),
]


def first_line(promise):
    return promise.__doc__.splitlines()[0].rstrip(".")


@pytest.mark.parametrize(
    ("strategy", "promise", "said"), BROKEN, ids=[row[1].__name__ + str(i) for i, row in enumerate(BROKEN)]
)
def test_a_broken_promise_is_found_and_said(strategy, promise, said):
    with pytest.raises(BrokenPromise, match=said) as raised:
        check_strategy(strategy)
    assert first_line(promise) in str(raised.value)


def test_every_promise_has_a_strategy_that_breaks_it():
    assert {promise for _, promise, _ in BROKEN} == set(contract.SUITE)


@pytest.mark.parametrize("whose", [np.random.rand, lambda n: [random.random() for _ in range(n)]])
def test_random_numbers_of_the_process_are_not_to_be_used(whose):
    """Those of numpy and Python, too. Every call draws others, so they are found as picks that differ."""
    with pytest.raises(BrokenPromise, match="keep nothing between calls"):
        check_strategy(shared_noise(whose))


def test_good_strategies_keep_all_promises():
    for strategy in (good, TopK(lambda m: m.var.sum(-1)), "auto", "seals:badge"):
        assert check_strategy(strategy).broken == []


def test_all_broken_promises_can_be_returned():
    found = check_strategy(first_come, stop=False)
    assert [finding.promise for finding in found] == [first_line(promise) for promise in contract.SUITE]
    assert [finding.promise for finding in found.broken] == [first_line(contract.order_says_nothing)]
    assert str(found).count("kept    ") == len(contract.SUITE) - 1


def test_a_name_is_enough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def runner_up(m):\n    return -m.mean.amax(-1)\n")
    assert check_strategy("mine.py:runner_up").broken == []
