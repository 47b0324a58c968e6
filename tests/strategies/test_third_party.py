"""A strategy from elsewhere: any class with `needs`, or a plain function."""

import numpy as np
import pytest
import torch
from helpers.examples import probabilities
from helpers.labelled import blobs, network

from balent import Draws, Learner, MCDropout, acquire, adapt
from balent.maths.measures import bald
from balent.strategies.column import Column
from balent.strategies.top_k import ByMeasure
from balent.types import Needs, Picks, Strategy

SEEN = []  # whether draws were the same functions at every point


class Shared:
    """It derives from nothing."""

    needs = Needs(shared=True)

    def __call__(self, sampled, pool, k, *, generator):
        SEEN.append(adapt.traits(sampled).shared)
        return last(sampled, pool, k, generator=generator)


class Indifferent(Shared):
    needs = Needs()


def last(sampled, pool, k, *, generator):
    """The k points of the least BALD."""
    found = pool.scan(sampled, Column(ByMeasure(bald, generator.initial_seed())))
    order = found.values.argsort(stable=True)[:k]
    return Picks(found.positions[order], -found.values[order])


@pytest.mark.parametrize(("chosen", "shared"), [(Shared(), True), (Indifferent(), False)])
def test_a_class_that_declares_to_need_shared_masks_gets_them_from_a_learner(chosen, shared):
    """Without the need, masks are drawn per point wherever the predictor can."""
    assert isinstance(chosen, Strategy)
    x, y = blobs(40)
    SEEN.clear()
    learner = Learner(MCDropout(network(), epochs=2), x, chosen, draws=6, start=[0, 1, 2, 3])
    learner.tell(learner.ask(4).indices, y[:4])
    picks = learner.ask(5)
    assert [shared] == SEEN
    assert not set(picks.indices.tolist()) & {0, 1, 2, 3}


def test_masks_per_point_are_refused_for_it():
    sampled = MCDropout(network()).sample(5, seed=0, masks="per-point")
    with pytest.raises(ValueError, match="needs draws that are the same functions at every point"):
        acquire(sampled, torch.randn(20, 4), 3, Shared())


def test_a_plain_function_is_a_strategy():
    p = probabilities(30, 6, 3)
    picks = acquire(Draws(p), np.arange(30), 30, last)
    assert picks.indices.tolist() == acquire(Draws(p), np.arange(30), 30, "bald").indices.tolist()[::-1]
    assert adapt.needs(last) == Needs()


def test_a_plain_function_drives_a_learner():
    x, y = blobs(40)
    learner = Learner(MCDropout(network(), epochs=2), x, last, draws=6, start=[0, 1, 2, 3])
    learner.tell(learner.ask(4).indices, y[:4])
    assert len(set(learner.ask(5).indices.tolist()) - {0, 1, 2, 3}) == 5
