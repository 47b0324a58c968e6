"""Ensembles: members that begin apart, train as if alone, and are drawn as they are."""

import pytest
import torch
from helpers.labelled import blobs, generator, network, same_weights
from torch import nn
from torch.testing import assert_close

from balent.predictors import Ensemble
from balent.predictors.training import Training, train


def test_members_of_a_model_begin_at_weights_of_their_own():
    model = network()
    before = network()
    members = Ensemble(model, members=3).members.models
    assert not any(same_weights(a, b) for a, b in [(members[0], members[1]), (members[1], members[2])])
    assert same_weights(model, before)


def test_the_seed_decides_where_members_begin():
    first, again, other = (Ensemble(network(), members=2, seed=seed).members for seed in (1, 1, 2))
    assert same_weights(first, again)
    assert not same_weights(first, other)


def test_frozen_layers_are_not_drawn_anew():
    model = network()
    model[0].requires_grad_(False)
    for member in Ensemble(model, members=2).members.models:
        assert torch.equal(member[0].weight, model[0].weight)
        assert not torch.equal(member[3].weight, model[3].weight)


def test_a_function_makes_members_as_it_likes():
    seeds = iter(range(3))
    members = Ensemble(lambda: network(seed=next(seeds)), members=3).members.models
    assert all(same_weights(member, network(seed=seed)) for seed, member in enumerate(members))


def test_a_member_trained_beside_others_is_one_trained_alone():
    """Losses add up and share no weights; so the gradients are the same, and Adam's steps with them."""
    x, y = blobs()
    predictor = Ensemble(lambda: network(p=0.0), members=3, epochs=4, batch_size=16)
    predictor.fit((x, y), generator=generator())
    alone = network(p=0.0)
    train(alone, x, y, settings=Training(epochs=4, batch_size=16), generator=generator())
    for member in predictor.members.models:
        assert_close(member.state_dict(), alone.state_dict())


def test_draws_are_the_members():
    predictor = Ensemble(network(), members=4, epochs=2)
    predictor.fit(blobs(), generator=generator())
    x, _ = blobs(9, seed=5)
    draws = predictor.sample(4, seed=0)(x)
    members = torch.stack([member(x).softmax(-1) for member in predictor.members.models], 1)
    for k in range(4):
        assert min((draws[:, k] - members[:, m]).abs().max() for m in range(4)) < 1e-6


def test_there_are_no_more_functions_than_members():
    with pytest.raises(ValueError, match="6 functions were asked for, but the ensemble has 5 members: members=6"):
        Ensemble(network()).sample(6, seed=0)


def test_features_are_those_of_all_members():
    assert Ensemble(network(width=8), members=3).sample(3, seed=0).features(blobs(5)[0]).shape == (5, 24)


def test_batch_norm_trains_in_every_member():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    predictor = Ensemble(model, members=2, epochs=2)
    predictor.fit(blobs(33), generator=generator())
    assert all(member[1].num_batches_tracked == 4 for member in predictor.members.models)


def test_an_ensemble_has_members():
    with pytest.raises(ValueError, match="at least one member, but 0 were asked for"):
        Ensemble(network(), members=0)


def test_a_model_that_cannot_be_reset_needs_a_function():
    with pytest.raises(ValueError, match=r"no layer of the model can be reset; pass a function"):
        Ensemble(network().requires_grad_(False))
