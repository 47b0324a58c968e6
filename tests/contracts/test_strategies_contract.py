"""What every entry of STRATEGIES obeys, also tomorrow's, and every kind of `kind:measure`."""

import dataclasses
import pickle

import numpy as np
import pytest
import torch
from helpers.examples import normal, probabilities
from torch import Generator

from balent import STRATEGIES, Draws, acquire
from balent.strategies import PREFIXES, strategy
from balent.types import Strategy

NAMES = [*STRATEGIES, *(f"{prefix}:{measure}" for prefix in PREFIXES for measure in ("bald", "balentacq"))]
every = pytest.mark.parametrize("name", NAMES)
POINTS = 60


def sampled(copies=1, block=None):
    """Draws with features; each point `copies` times, so many points to a block."""
    p, h = probabilities(POINTS // copies, 6, 3), normal(POINTS // copies, 5)
    found = Draws(p.repeat(copies, 1, 1), features=h.repeat(copies, 1))
    found.block = block or found.block
    return found


def pick(name, k, source=None, seed=0, pool=None):
    pool = np.arange(POINTS) if pool is None else pool
    return strategy(name)(source or sampled(), pool, k, generator=Generator().manual_seed(seed))


@every
def test_it_is_a_strategy_that_can_be_kept_and_sent(name):
    assert isinstance(strategy(name), Strategy)
    assert dataclasses.is_dataclass(strategy(name))
    assert pickle.loads(pickle.dumps(strategy(name))) == strategy(name)


@every
@pytest.mark.parametrize("k", [1, 7, POINTS])
@pytest.mark.parametrize("copies", [1, 3, POINTS])
def test_picks_are_k_different_points_of_the_pool_with_scores(name, k, copies):
    """Whatever copies there are: BEMPS draws some points twice, badge gives NaN where all distances are 0."""
    picks = pick(name, k, sampled(copies))
    indices = torch.as_tensor(picks.indices)
    assert indices.dtype == torch.int64
    assert len(set(indices.tolist())) == len(indices) == len(picks.scores) == k
    assert 0 <= int(indices.min()) <= int(indices.max()) < POINTS
    assert not torch.as_tensor(picks.scores).isnan().any()


@every
def test_the_same_seed_gives_the_same_picks(name):
    one, again = (pick(name, 9) for _ in range(2))
    assert one.indices.tolist() == again.indices.tolist()
    assert one.scores.tolist() == again.scores.tolist()


@every
@pytest.mark.parametrize("block", [1, 7, 59])
def test_picks_do_not_depend_on_the_size_of_blocks(name, block):
    assert pick(name, 9, sampled(block=block)).indices.tolist() == pick(name, 9).indices.tolist()


@every
@pytest.mark.parametrize("k", [0, POINTS + 1])
def test_a_k_that_the_pool_cannot_serve_is_refused(name, k):
    with pytest.raises(ValueError, match=f"k must be between 1 and the {POINTS} points of the pool, but is {k}"):
        pick(name, k)


@every
def test_an_engine_changes_nothing(name):
    """`acquire` wraps pool and functions; picks are those of the strategy itself."""
    picks = acquire(sampled(), np.arange(POINTS), 9, name, seed=4)
    assert picks.indices.tolist() == pick(name, 9, seed=4).indices.tolist()
