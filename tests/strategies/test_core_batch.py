"""CoreMSE in batches: changes against their definition, and no batch of duplicates."""

import numpy as np
import pytest
import torch
from helpers.examples import probabilities
from torch.testing import assert_close

import balent
from balent import Draws
from balent.strategies import CoreBatch, CoreMSE
from balent.strategies.core_batch import changed, representatives
from balent.strategies.core_mse import centred


def pick(p, k, chosen):
    return balent.acquire(Draws(p), np.arange(len(p)), k, chosen, seed=3)


def by_definition(p, x, place):
    """Σ_y p(y|x) Σ_y' (p̂(y'|x') - p̄(y'|x'))², the weights of draws in words."""
    total = 0.0
    for y in range(p.shape[2]):
        weights = p[x, :, y] / p[x, :, y].sum()
        after = weights @ p[place]
        total += float(p[x, :, y].mean() * (after - p[place].mean(0)).square().sum())
    return total


def test_changes_agree_with_their_definition():
    p = probabilities(6, 5, 3)
    expected = torch.tensor([[by_definition(p, x, place) for place in range(6)] for x in range(6)]).double()
    assert_close(changed(p, centred(p)[0]), expected)


def test_changes_add_up_to_core_mse():
    """The mean change over all places is what CoreMSE scores."""
    p = probabilities(9, 6, 4)
    picks = pick(p, 9, CoreMSE())
    assert_close(changed(p, centred(p)[0]).mean(1)[picks.indices], picks.scores)


def test_one_candidate_per_pick_is_the_top_k():
    p = probabilities(40, 8, 3)
    assert pick(p, 5, CoreBatch(candidates=1)).indices.tolist() == pick(p, 5, CoreMSE()).indices.tolist()


def test_duplicates_are_not_picked_together():
    """Every point three times: the top k of CoreMSE has duplicates side by side, a batch has none."""
    p = probabilities(30, 8, 3).repeat(3, 1, 1)
    assert len(set((pick(p, 9, CoreMSE()).indices % 30).tolist())) == 3
    assert len(set((pick(p, 9, CoreBatch()).indices % 30).tolist())) == 9


def test_fewer_clusters_than_picks_are_filled_up_by_score():
    """Two kinds of changes, three picks: one of each kind, and the first row that is left."""
    changes = torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3)
    chosen = representatives(changes, 3, 0, torch.arange(6)).tolist()
    assert len(set(chosen)) == 3
    assert min(chosen) == 0
    assert max(chosen) >= 3


def test_settings_are_checked():
    with pytest.raises(ValueError, match="candidates and places must be 1 or more, but are 0 and 200"):
        CoreBatch(candidates=0)
