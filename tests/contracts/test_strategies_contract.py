"""What every entry of STRATEGIES obeys, also tomorrow's, and every kind of `kind:measure` and `kind:strategy`."""

import dataclasses
import pickle

import numpy as np
import pytest
import torch
from helpers.examples import normal, probabilities
from torch import Generator

from balent import STRATEGIES, Draws, acquire
from balent.acquisition.engines.local import Local
from balent.acquisition.view import View
from balent.adapt import needs
from balent.data.pool import Indexed, Subset, as_source
from balent.strategies import PREFIXES, WRAPPERS, strategy
from balent.types import Strategy

INNER = ("bald", "random", "herding", "diverse:bald", "badge", "batch_bald", "core_mse", "cluster_margin")
NAMES = [
    *STRATEGIES,
    *(f"{prefix}:{measure}" for prefix in PREFIXES for measure in ("bald", "balentacq")),
    *(f"{wrapper}:{inner}" for wrapper in WRAPPERS for inner in INNER),
]
every = pytest.mark.parametrize("name", NAMES)
POINTS = 60


def sampled(copies=1):
    """Draws with features; each point `copies` times."""
    p, h = probabilities(POINTS // copies, 6, 3), normal(POINTS // copies, 5)
    return Draws(p.repeat(copies, 1, 1), features=h.repeat(copies, 1))


def pick(name, k, source=None, seed=0, pool=None, **options):
    pool = np.arange(POINTS) if pool is None else pool
    return acquire(source or sampled(), pool, k, name, seed=seed, **options)


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
    """`memory` of acquire is for one block: 8 bytes per draw and class, 24 per class, 16 per number of the input."""
    each = 8 * 6 * 3 + 24 * 3 + 16
    sizes = []

    class Counting(Draws):
        def moments(self, batch, positions=None):
            sizes.append(len(batch))
            return super().moments(batch, positions)

    source = Counting(probabilities(POINTS, 6, 3), features=normal(POINTS, 5))
    assert pick(name, 9, source, memory=block * each).indices.tolist() == pick(name, 9).indices.tolist()
    assert max(sizes, default=0) <= max(block, 2)  # two points tell how large the others are


LEFT = torch.tensor([i for i in range(POINTS) if i % 4 != 1])


@every
@pytest.mark.parametrize("block", [None, 5])
def test_a_part_of_a_pool_is_picked_from_as_if_the_rest_had_been_left_out(name, block):
    """A position keeps its noise: a stream of the same points at the same positions, and a Subset, pick the same."""
    p, h = probabilities(POINTS, 6, 3), normal(POINTS, 5)
    whole = Indexed(np.arange(POINTS))
    memory = {} if block is None else {"memory": block * (8 * 6 * 3 + 24 * 3 + 16)}
    part = pick(name, 9, Draws(p, features=h), pool=Subset(whole, LEFT), **memory)
    assert part.indices.tolist() == pick(name, 9, Draws(p, features=h), pool=LeftOut(LEFT)).indices.tolist()
    assert torch.isin(torch.as_tensor(part.indices), LEFT).all()


@pytest.mark.parametrize("name", [name for name in NAMES if not needs(strategy(name)).noise])
def test_without_noise_a_part_is_a_pool_of_its_own(name):
    """Picks of a Subset are those of a pool of its points alone, but for their numbers."""
    p, h = probabilities(POINTS, 6, 3), normal(POINTS, 5)
    part = pick(name, 9, Draws(p, features=h), pool=Subset(Indexed(np.arange(POINTS)), LEFT))
    alone = pick(name, 9, Draws(p[LEFT], features=h[LEFT]), pool=np.arange(len(LEFT)))
    assert torch.as_tensor(part.indices).tolist() == LEFT[torch.as_tensor(alone.indices)].tolist()


@pytest.mark.parametrize("name", [name for name in NAMES if needs(strategy(name)).labelled])
@pytest.mark.parametrize("block", [1, 7])
def test_with_labelled_points_too_neither_blocks_nor_the_rest_of_a_pool_matter(name, block):
    """The points left out of the pool are labelled."""
    p, h = probabilities(POINTS, 6, 3), normal(POINTS, 5)
    source, known = Draws(p, features=h), np.setdiff1d(np.arange(POINTS), LEFT.numpy())
    part, options = Subset(Indexed(np.arange(POINTS)), LEFT), {"labelled": known, "memory": block * 232}
    picks = pick(name, 9, source, pool=part, **options)
    assert len(set(picks.indices.tolist())) == 9
    assert picks.indices.tolist() == pick(name, 9, source, pool=LeftOut(LEFT), labelled=known).indices.tolist()


class LeftOut:
    """A source written by hand: a whole pool whose other points were left out, one block of all that remain."""

    def __init__(self, positions):
        self.positions, self.size = positions, len(positions)

    def blocks(self, points):
        yield self.positions.numpy(), self.positions

    def at(self, positions):
        return positions.numpy()


@every
@pytest.mark.parametrize("k", [0, POINTS + 1])
def test_a_k_that_the_pool_cannot_serve_is_refused(name, k):
    with pytest.raises(ValueError, match=f"k must be between 1 and the {POINTS} points of the pool, but is {k}"):
        pick(name, k)


@every
def test_acquire_adds_nothing_to_what_a_strategy_picks(name):
    """The strategy itself, on a view of the pool and with a generator of that seed."""
    view = View(Local(), as_source(np.arange(POINTS)))
    picks = strategy(name)(sampled(), view, 9, generator=Generator().manual_seed(4))
    assert picks.indices.tolist() == pick(name, 9, seed=4).indices.tolist()
