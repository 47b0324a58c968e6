"""What every entry of STRATEGIES obeys, also tomorrow's, and every kind of `kind:measure` and `kind:strategy`.

The promises are those of `balent.check_strategy`; what balent promises of its own strategies beyond them stands here.
"""

import dataclasses

import numpy as np
import pytest
import torch
from helpers.examples import normal, probabilities
from helpers.sent import sent
from torch import Generator

from balent import STRATEGIES, Draws, acquire
from balent.acquisition.engines.local import Local
from balent.acquisition.view import View
from balent.adapt import needs
from balent.contracts.strategy_contract import LABELLED, LEFT, POINTS, SUITE, LeftOut, Trial, ids_decide
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


@every
@pytest.mark.parametrize("promise", [*SUITE, ids_decide], ids=lambda promise: promise.__name__)
def test_it_keeps_what_is_promised_of_every_strategy(promise, name):
    promise(Trial(strategy(name)))


def pick(name, k, source=None, seed=0, **options):
    source = source or Draws(probabilities(POINTS, 6, 3), features=normal(POINTS, 5))
    return acquire(source, np.arange(POINTS), k, name, seed=seed, **options)


@every
def test_it_is_a_strategy_that_can_be_kept_and_sent(name):
    assert isinstance(strategy(name), Strategy)
    assert dataclasses.is_dataclass(strategy(name))
    assert sent(strategy(name)) == strategy(name)


@every
def test_the_same_seed_gives_the_same_scores(name):
    one, again = (pick(name, 9) for _ in range(2))
    assert one.indices.dtype == torch.int64
    assert one.scores.tolist() == again.scores.tolist()


@every
@pytest.mark.parametrize("block", [1, 7, 59])
def test_picks_do_not_depend_on_the_memory_of_a_block(name, block):
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


@pytest.mark.parametrize("name", [name for name in NAMES if needs(strategy(name)).labelled])
@pytest.mark.parametrize("block", [1, 7])
def test_with_labelled_points_too_neither_blocks_nor_the_rest_of_a_pool_matter(name, block):
    """The points left out of the pool are labelled."""
    trial = Trial(strategy(name))
    part = Subset(Indexed(np.arange(POINTS)), LEFT)
    picks = trial.picks(part, engine=Local(block=block), labelled=LABELLED)
    assert len(set(picks)) == 9
    assert picks == trial.picks(LeftOut(LEFT), labelled=LABELLED)


@every
@pytest.mark.parametrize("k", [0, POINTS + 1])
def test_a_k_that_the_pool_cannot_serve_is_refused(name, k):
    with pytest.raises(ValueError, match=f"k must be between 1 and the {POINTS} points of the pool, but is {k}"):
        pick(name, k)


@every
def test_acquire_adds_nothing_to_what_a_strategy_picks(name):
    """The strategy itself, on a view of the pool and with a generator of that seed."""
    source = Draws(probabilities(POINTS, 6, 3), features=normal(POINTS, 5))
    view = View(Local(), as_source(np.arange(POINTS)))
    picks = strategy(name)(source, view, 9, generator=Generator().manual_seed(4))
    assert picks.indices.tolist() == pick(name, 9, seed=4).indices.tolist()
