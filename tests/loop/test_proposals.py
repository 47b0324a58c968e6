"""Proposing, committing and taking back: picks depend on the labels and the seed, not on the road to them."""

import numpy as np
import pytest
import torch
from helpers.driven import X, Y, answer, learner, network, rounds
from torch.testing import assert_close

import balent
from balent.types import Picks


def same(one, other):
    return one.indices.tolist() == other.indices.tolist() and one.scores.tolist() == other.scores.tolist()


def picked(indices, scores):
    return Picks(np.array(indices), np.array(scores))


# ── propose and commit ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", ["auto", "bald", "power_bald", "random", "badge"])
@pytest.mark.parametrize("told", [0, 2])
def test_a_proposal_is_what_would_be_asked_and_changes_nothing(tmp_path, strategy, told):
    with learner(tmp_path, strategy=strategy) as driven:
        rounds(driven, told)
        before = (tmp_path / "journal.ndjson").read_bytes()
        first, second = driven.propose(4), driven.propose(4)
        assert (tmp_path / "journal.ndjson").read_bytes() == before
        assert len(driven.pending.indices) == 0
        assert same(first, second)
        assert same(driven.ask(4), first)
        assert driven.pending.indices.tolist() == first.indices.tolist()


def test_a_learner_that_proposes_first_asks_what_any_other_asks():
    """Warm starts included: a proposal trains as `ask` would have, and once."""
    one, other = learner(warm_start=True), learner(warm_start=True)
    for _ in range(3):
        answer(one, one.ask(4))
        other.propose(7)
        answer(other, other.ask(4))
    assert one.asked == other.asked


def test_part_of_a_proposal_can_be_committed():
    driven = learner()
    picks = driven.propose(5)
    part = Picks(picks.indices[1:3], picks.scores[1:3])
    assert driven.commit(part) is part
    assert same(driven.pending, part)


@pytest.mark.parametrize(
    ("picks", "said"),
    [
        (picked([3], [0.0]), "only open points can be asked, but point 3 is labelled"),
        (picked([4], [0.0]), "but point 4 is skipped"),
        (picked([5], [0.0]), "but point 5 is pending"),
        (picked([40], [0.0]), r"positions must be 0\.\.39"),
        (picked([7, 7], [0.0, 0.0]), "a point can be asked once"),
        (picked([7, 8], [0.0]), "2 picks and 1 scores"),
        (picked([7], [float("nan")]), "one is NaN"),
    ],
)
def test_what_cannot_be_asked_is_not_committed(picks, said):
    driven = learner()
    driven.tell([3], [0])
    driven.skip([4])
    driven.commit(picked([5], [0.5]))
    with pytest.raises(ValueError, match=said):
        driven.commit(picks)
    assert driven.pending.indices.tolist() == [5]


def test_infinite_scores_survive_the_journal(tmp_path):
    with learner(tmp_path) as driven:
        driven.commit(Picks(np.array([7, 8]), np.array([np.inf, -np.inf])))
    with learner(tmp_path) as driven:
        assert driven.pending.scores.tolist() == [np.inf, -np.inf]


# ── retract ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reopened", [False, True])
def test_what_is_taken_back_was_never_said(tmp_path, reopened):
    """A point that was asked is pending again, at its place; one that was not is open; the next picks are the same."""
    directory = tmp_path if reopened else None
    plain, driven = learner(), learner(directory)
    for one in (plain, driven):
        rounds(one, 2)
        one.ask(4)
    first, *others = plain.pending.indices.tolist()
    other = next(i for i in range(40) if i not in plain.labels.closed())
    driven.tell([first, other, *others], Y[[first, other, *others]], who="ann")
    driven.retract([first, other, *others], who="ann")
    if reopened:
        driven.close()
        driven = learner(directory, weights=1)
    assert same(driven.pending, plain.pending)
    assert driven.told == plain.told
    assert driven.labels.state_of(other) == "open"
    assert driven.history(other) == [("ann", int(Y[other]))]
    assert same(driven.ask(5), plain.ask(5))


def test_a_skip_can_be_taken_back():
    driven = learner()
    asked = int(driven.ask(3).indices[0])
    driven.skip([asked, 39])
    driven.retract([asked, 39])
    assert driven.labels.skipped == set()
    assert asked in driven.pending.indices.tolist()
    assert driven.labels.state_of(39) == "open"


def test_only_labels_and_skips_can_be_taken_back():
    driven = learner()
    driven.tell([1], [0])
    driven.commit(picked([2], [0.0]))
    for point, state in ((2, "pending"), (3, "open")):
        with pytest.raises(ValueError, match=f"but point {point} is {state}; nothing was recorded"):
            driven.retract([1, point])
    assert driven.told == {1: 0}


# ── reserve ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", ["auto", "bald", "random"])
def test_the_reserve_is_never_picked_but_trained_on_once_labelled(strategy):
    driven = learner(strategy=strategy, reserve=np.arange(30))
    assert {i for picks in rounds(driven, 2, k=5) for i in picks} == set(range(30, 40))
    with pytest.raises(ValueError, match="no point is left to ask but the 30 of the reserve"):
        driven.ask(1)
    before = driven.predict(X)
    driven.tell(range(30), Y[:30])
    assert not torch.equal(driven.predict(X), before)
    with pytest.raises(ValueError, match="every point is labelled, pending or skipped"):
        driven.ask(1)


def test_points_of_the_reserve_can_be_committed():
    driven = learner(reserve=[7])
    driven.commit(picked([7], [0.0]))
    assert driven.pending.indices.tolist() == [7]


def test_a_directory_keeps_its_reserve_until_another_is_given(tmp_path):
    learner(tmp_path, reserve=[1, 2]).close()
    with learner(tmp_path) as driven:
        assert driven.labels.reserve == {1, 2}
    lines = len((tmp_path / "journal.ndjson").read_text().splitlines())
    learner(tmp_path, reserve=[2, 1]).close()
    assert len((tmp_path / "journal.ndjson").read_text().splitlines()) == lines
    learner(tmp_path, reserve=[3]).close()
    with learner(tmp_path) as driven:
        assert driven.labels.reserve == {3}


def test_a_point_is_not_both_to_start_with_and_in_reserve(tmp_path):
    with pytest.raises(ValueError, match="point 5 stands in start and in reserve"):
        learner(tmp_path, start=[4, 5], reserve=[5, 6])
    assert not (tmp_path / "journal.ndjson").exists()


# ── predict ──────────────────────────────────────────────────────────────────────────────────────


def test_predictions_are_the_means_of_the_draws():
    driven = learner()
    rounds(driven, 2)
    other = torch.randn(17, 3, generator=torch.Generator().manual_seed(1))
    for pool in (X, other):
        assert_close(driven.predict(pool).float(), driven.sampled()(pool).mean(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.numpy(),
        lambda x: torch.utils.data.TensorDataset(x),
        lambda x: torch.utils.data.DataLoader(x, 7),
        lambda x: iter(x.split(7)),
    ],
    ids=["array", "dataset", "loader", "stream"],
)
def test_every_kind_of_pool_is_predicted(form):
    driven = learner()
    rounds(driven, 1)
    assert_close(driven.predict(form(X)), driven.predict(X))


def test_predictions_keep_their_rows_and_nothing_else(monkeypatch):
    """Blocks are of the size that scoring takes, never the whole pool."""
    driven = learner()
    rounds(driven, 1)
    sampled, seen = driven.sampled(), []
    whole = type(sampled).moments
    monkeypatch.setattr(type(sampled), "moments", lambda self, x, at=None: seen.append(len(x)) or whole(self, x, at))
    assert driven.predict(np.zeros((5000, 3), np.float32)).shape == (5000, 2)
    assert max(seen) <= 1024


def test_nothing_is_predicted_of_no_points_or_without_labels():
    driven = learner()
    with pytest.raises(ValueError, match="a fit needs labels"):
        driven.predict(X)
    rounds(driven, 1)
    with pytest.raises(ValueError, match="but there is none"):
        driven.predict(X[:0])


def test_a_wrong_setting_leaves_no_directory_behind(tmp_path):
    for settings in ({"strategy": "balentaqc"}, {"masks": "own"}, {"start": [99]}, {"classes": "cat"}):
        with pytest.raises((ValueError, TypeError)):
            balent.Learner(balent.MCDropout(network()), X, directory=tmp_path / "new", **settings)
    assert not (tmp_path / "new").exists()
