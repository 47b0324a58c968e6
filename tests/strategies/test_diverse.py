"""Diverse: the best by a measure, no two alike, and what each label covers."""

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import blobs, network
from reference import features as reference

from balent import Diverse, Draws, Learner, MCDropout, Moments, TopK, acquire
from balent.geometry import facility_location as facility
from balent.maths.measures import bald, balentacq, entropy
from balent.strategies import diverse, strategy


def coins(doubts):
    """Points of one draw whose entropy grows with their doubt, from 0 to 1/2."""
    doubt = f64(doubts)
    return torch.stack([1 - doubt, doubt], -1)[:, None]


def pick(p, h, k, seed=0, **settings):
    settings = {"measure": entropy, **settings}
    return acquire(Draws(p, features=h), np.arange(len(p)), k, Diverse(**settings), seed=seed)


def test_points_on_a_line_by_hand():
    """Candidates are the six best. The best is at 0; 5 stands for its neighbours too, 9 but for itself."""
    p = coins([0.5, 0.49, 0.48, 0.47, 0.46, 0.45, 0.1, 0.0])
    h = f64([[0.0], [0.1], [5.0], [9.0], [4.9], [4.8], [100.0], [200.0]])
    assert pick(p, h, 2, times=3).indices.tolist() == [0, 2]
    assert pick(p, h, 3, times=2).indices.tolist() == [0, 2, 3]  # 9 is the next: all others are served
    picks = pick(p, h, 3, times=1)
    assert picks.indices.tolist() == [0, 1, 2]  # once k: no choice
    assert picks.scores.tolist() == entropy(Moments.of(p))[:3].tolist()


@pytest.mark.parametrize("measure", [entropy, bald, balentacq])
@pytest.mark.parametrize("stored", [0, facility.STORED])
def test_picks_stand_for_the_best_by_the_measure(measure, stored, monkeypatch):
    """The slow way: sort by the measure, take 5·k, then what saves most; scores are the measure's, best first."""
    monkeypatch.setattr(facility, "STORED", stored)  # distances are computed again, or kept
    p, h = probabilities(200, 8, 4), normal(200, 5)
    picks = pick(p, h, 12, measure=measure, times=5)
    scores = measure(Moments.of(p))
    candidates = scores.argsort(descending=True, stable=True)[:60]
    expected = sorted(reference.facilities(h[candidates], 12))
    assert picks.indices.tolist() == candidates[expected].tolist()
    assert torch.equal(picks.scores, scores[picks.indices])


def test_what_is_labelled_serves_too():
    p, h = probabilities(200, 8, 4), normal(200, 5)
    sampled, pool = Draws(p, features=h), np.arange(150)
    picks = acquire(sampled, pool, 12, Diverse(entropy, times=5), labelled=np.arange(150, 200))
    candidates = entropy(Moments.of(p))[:150].argsort(descending=True, stable=True)[:60]
    expected = sorted(reference.facilities(h[candidates], 12, h[150:]))
    assert picks.indices.tolist() == candidates[expected].tolist()


def test_an_outlier_waits():
    """Twenty points in two heaps and one far off: farthest first would take it second."""
    h = torch.cat([normal(10, 4), 10 + normal(10, 4, seed=1), torch.full((1, 4), 40.0)])
    picks = pick(coins(torch.linspace(0.5, 0.4, 21).tolist()), h, 2, times=11)
    assert 20 not in picks.indices.tolist()


def test_large_batches_have_fewer_candidates(monkeypatch):
    """All candidates are compared with each other: no more than are stored, or twice the batch."""
    monkeypatch.setattr(diverse, "STORED", 30)
    p, h = coins(torch.linspace(0.5, 0.3, 100).tolist()), normal(100, 5)
    assert max(pick(p, h, 6, times=10).indices.tolist()) < 30
    assert 30 <= max(pick(p, h, 30, times=10).indices.tolist()) < 60


def test_copies_are_kept_out():
    """modAL#11, #119: batches of near-duplicates. Three copies of each point: the top k buys all three."""
    p, h = probabilities(100, 8, 4).repeat(3, 1, 1), normal(100, 5).repeat(3, 1)
    top = acquire(Draws(p), np.arange(300), 30, TopK(bald))
    assert len({i % 100 for i in top.indices.tolist()}) == 10
    picks = pick(p, h, 30, measure=bald)
    assert len({i % 100 for i in picks.indices.tolist()}) == 30


def test_a_label_covers_copies_and_near_copies():
    """Each point again with a noise of a hundredth: near, so that one label goes for both. Nobody else is near."""
    p, h = probabilities(20, 8, 4).repeat(3, 1, 1), normal(20, 16).repeat(3, 1)
    h[40:] += 0.01 * normal(20, 16, seed=1)
    picks = pick(p, h, 20, times=3)
    assert sorted(i % 20 for i in picks.indices.tolist()) == list(range(20))
    assert [sorted([i, *near.tolist()]) for i, near in zip(picks.indices.tolist(), picks.covers, strict=True)] == [
        [i % 20, i % 20 + 20, i % 20 + 40] for i in picks.indices.tolist()
    ]


def test_nothing_is_covered_twice_and_no_pick_is_covered():
    p, h = probabilities(60, 8, 4), normal(60, 2)
    picks = pick(p, h, 10, times=6, near=0.5)
    covered = torch.cat(picks.covers).tolist()
    assert covered
    assert len(set(covered)) == len(covered)
    assert not set(covered) & set(picks.indices.tolist())
    for i, near in zip(picks.indices.tolist(), picks.covers, strict=True):
        for j in near.tolist():
            apart = reference.squared_distances(h[[j]], h[picks.indices])[0]
            assert picks.indices[int(apart.argmin())] == i


def test_copies_among_the_picks_cover_nothing():
    """Two places, ten points each, five picks: each place is covered by the first pick there."""
    p, h = probabilities(2, 8, 4).repeat(10, 1, 1), normal(2, 16).repeat(10, 1)
    picks = pick(p, h, 5)
    assert sorted(len(near) for near in picks.covers) in ([0, 0, 0, 6, 9], [0, 0, 0, 7, 8])
    assert {int(i) % 2 for i, near in zip(picks.indices, picks.covers, strict=True) if len(near)} == {0, 1}


def test_a_reach_of_zero_covers_exact_copies_alone():
    p, h = probabilities(20, 8, 4).repeat(2, 1, 1), normal(20, 16).repeat(2, 1)
    h[20:30] += 1e-4
    picks = pick(p, h, 20, times=2, near=0.0)
    covered = torch.cat(picks.covers).tolist()
    assert {i % 20 for i in covered} == set(range(10, 20))


def test_candidates_near_labelled_points_come_last():
    p = coins([0.5, 0.49, 0.48, 0.3])
    h = f64([[0.0], [5.0], [9.0], [5.0]])
    sampled = Draws(p, features=h)
    picks = acquire(sampled, np.arange(3), 2, Diverse(entropy), labelled=np.array([3]))
    assert picks.indices.tolist() == [0, 2]  # the best, then 9: the point at 5 is a copy of the labelled one


def test_the_learner_buys_no_copies_of_what_it_was_told():
    """A pool of everything twice: as long as there are other candidates, none is a copy of a point told."""
    x, y = blobs(40)
    learner = Learner(MCDropout(network(), epochs=5), x.repeat(2, 1), "diverse:entropy", draws=8, start=[0, 1, 2, 3])
    told = set()
    for k in (4, 10, 10):
        picks = learner.ask(k)
        originals = {i % 40 for i in picks.indices.tolist()}
        assert len(originals) == k
        assert not originals & told
        told |= originals
        learner.tell(picks.indices, y[picks.indices % 40])
    for i, near in zip(picks.indices.tolist(), picks.covers, strict=True):
        assert (i + 40) % 80 in near.tolist()  # positions in the whole pool, though told points are not in it


def test_covers_are_none_where_nobody_compared():
    picks = acquire(Draws(probabilities(9, 4, 3)), np.arange(9), 3, TopK(bald))
    assert picks.covers is None


def test_infinite_scores_are_candidates_like_any_other():
    """BalEntAcq is +∞ at BalEnt = 0: only its order counts here."""

    def jumping(m):
        return torch.where(m.mean[:, 0] > 0.5, torch.inf, m.mean[:, 0])

    picks = pick(probabilities(50, 4, 2), normal(50, 3), 5, measure=jumping)
    assert len(set(picks.indices.tolist())) == 5


def test_its_name_has_the_measure():
    assert strategy("diverse:balentacq") == Diverse(balentacq)


@pytest.mark.parametrize("settings", [{"times": 0}, {"near": -0.1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="times must be 1 or more and near 0 or more"):
        Diverse(bald, **settings)


def test_errors_and_files_of_scores_are_those_of_the_measure(tmp_path):
    """An engine sees the measure's scores pass, whatever is picked by them."""
    p, h = probabilities(40, 20, 3), normal(40, 5)
    picks = acquire(Draws(p, features=h), np.arange(40), 6, "diverse:bald", with_error=True, scores=tmp_path / "s.npy")
    assert len(picks.errors) == len(picks.covers) == 6
    assert np.load(tmp_path / "s.npy")[:, 0].tolist() == bald(Moments.of(p)).tolist()


def test_progress_ends_at_the_whole_pool():
    seen = []
    sampled = Draws(probabilities(300, 20, 3), features=normal(300, 5))
    acquire(sampled, np.arange(300), 6, "diverse:bald", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (300, 300)
