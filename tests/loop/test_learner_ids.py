"""A label belongs to its id: pools come in another order, grow and shrink, and no label moves to another point."""

import json

import numpy as np
import pytest
import torch
from helpers.driven import X, Y, learner
from helpers.labelled import blobs

import balent
from balent.types import Picks

POOL, LABELS = blobs(60, seed=5)
IDS = [f"photos/{i:02}.jpg" for i in range(60)]
QUIET = {"draws": 20, "say": lambda word: None}


def driven(directory=None, order=None, predictor=None, **settings):
    """A Learner over the points of `order`, each with its id."""
    at = list(range(60)) if order is None else list(order)
    made = balent.Logistic(3) if predictor is None else predictor
    return balent.Learner(made, POOL[at], directory=directory, ids=[IDS[i] for i in at], **QUIET | settings)


def ids(one, positions):
    return [one.ids[i] for i in positions]


def by_id(one):
    return {one.ids[i]: label for i, label in one.told.items()}


def rounds(one, n, k=5):
    """Picks of n rounds, by id; answers are those of the ids."""
    found = []
    for _ in range(n):
        picks = ids(one, one.ask(k).indices.tolist())
        one.tell([one.ids.index(name) for name in picks], [int(LABELS[IDS.index(name)]) for name in picks])
        found.append(picks)
    return found


def events(directory):
    return [json.loads(line) for line in (directory / "journal.ndjson").read_text().splitlines()]


SHUFFLED = np.random.default_rng(3).permutation(60)


def test_the_journal_names_points_by_id(tmp_path):
    with driven(tmp_path, start=[5, 7, 9, 11], reserve=[4]) as one:
        rounds(one, 1, k=4)
        one.skip([1])
        one.retract([1, 5])
    assert not any("indices" in event for event in events(tmp_path))
    assert events(tmp_path)[0]["start"] == ["photos/05.jpg", "photos/07.jpg", "photos/09.jpg", "photos/11.jpg"]
    named = {event["event"]: event["ids"] for event in events(tmp_path) if "ids" in event}
    assert named["retract"] == ["photos/01.jpg", "photos/05.jpg"]
    assert named["reserve"] == ["photos/04.jpg"]


@pytest.mark.parametrize("strategy", ["auto", "bald"])
@pytest.mark.parametrize("start", ["auto", "random"])
def test_the_order_of_the_pool_does_not_matter(tmp_path, strategy, start):
    """The directory is opened with the points in another order before each round."""
    with driven(tmp_path / "one", strategy=strategy, start=start) as one:
        expected = rounds(one, 4)
    found = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(60)
        with driven(tmp_path / "other", order, strategy=strategy, start=start) as other:
            found += rounds(other, 1)
    assert found == expected


def test_everything_known_of_a_point_moves_with_it(tmp_path):
    with driven(tmp_path, reserve=[50, 51], start=[2, 3, 4]) as one:
        one.commit(Picks(np.array([6, 7, 8]), np.array([0.25, 0.5, 0.75])))
        one.tell([6, 20], [1, 2], who="ann")
        one.skip([7, 21])
        one.tell([22], [0])
        one.retract([22])
    with driven(tmp_path, SHUFFLED) as one:
        assert by_id(one) == {"photos/06.jpg": 1, "photos/20.jpg": 2}
        assert ids(one, sorted(one.labels.skipped, key=one.ids.__getitem__)) == ["photos/07.jpg", "photos/21.jpg"]
        assert ids(one, one.pending.indices) == ["photos/08.jpg"]
        assert one.pending.scores.tolist() == [0.75]
        assert {*ids(one, one.labels.reserve)} == {"photos/50.jpg", "photos/51.jpg"}
        assert one.history(one.ids.index("photos/20.jpg")) == [("ann", 2)]
        assert ids(one, one.start) == ["photos/02.jpg", "photos/03.jpg", "photos/04.jpg"]
        assert ids(one, one.ask(3).indices) == ["photos/02.jpg", "photos/03.jpg", "photos/04.jpg"]
        assert next(ids(one, asked) for asked in one.asked) == ["photos/06.jpg", "photos/07.jpg", "photos/08.jpg"]


def test_points_that_come_later_are_asked_and_labels_stay(tmp_path):
    with driven(tmp_path, range(40)) as one:
        rounds(one, 2)
        told = by_id(one)
    grown = [*range(59, 39, -1), *range(40)]  # new points come first
    with driven(tmp_path, grown) as one:
        assert by_id(one) == told
        assert {*range(60)} == {*(IDS.index(name) for name in ids(one, one.ask(50).indices))} | {
            IDS.index(name) for name in told
        }


def test_removed_points_keep_their_labels_in_the_journal(tmp_path):
    with driven(tmp_path) as one:
        rounds(one, 2)
        one.ask(2)
        told, first = by_id(one), next(iter(by_id(one)))
    said, left = [], [i for i in SHUFFLED if IDS[i] != first]
    with driven(tmp_path, left, say=said.append) as one:
        assert by_id(one) == {name: label for name, label in told.items() if name != first}
        assert len(said) == 1
        assert f"1 labelled points of {tmp_path} are not in this pool, the first is '{first}'" in said[0]
        rounds(one, 1)
        assert all(i < 59 for asked in one.asked for i in asked)
        told |= by_id(one)
    with driven(tmp_path, say=pytest.fail) as one:  # it is back
        assert by_id(one) == told


def test_labels_are_trained_on_without_those_that_are_gone(tmp_path):
    keep = range(1, 60)
    with driven(tmp_path) as one:
        one.tell(range(10), LABELS[:10])
    with driven(tmp_path, keep) as one:
        found = one.predict(POOL)
    alone = driven(None, keep)
    alone.tell(range(9), LABELS[1:10])
    alone.predictor.load_state(one.predictor.state())  # anchors are those of the first pool
    assert torch.equal(alone.predict(POOL), found)


def test_duplicates_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ids must differ, but 'photos/01\.jpg' is given more than once"):
        driven(tmp_path, [0, 1, 1])


# ── directories that were begun before events held ids ───────────────────────────────────────────


def of_format_2(directory, names):
    """As the version before left a directory that was begun with ids: pinned by them, with events by position."""
    first, *others = events(directory)
    at = {name: i for i, name in enumerate(names)}
    old = [first | {"format": 2}, *others]
    for event in old:
        if "ids" in event:
            event["indices"] = [at[name] for name in event.pop("ids")]
        if event["event"] == "start" and not isinstance(event["start"], str):
            event["start"] = [at[name] for name in event["start"]]
    path = directory / "journal.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in old))


def test_a_directory_of_format_2_with_ids_goes_on_and_may_change_order_from_then_on(tmp_path):
    with driven(tmp_path, start=[30, 31, 32, 33, 34, 35]) as one:
        rounds(one, 2, k=3)
        told = by_id(one)
        expected = ids(one, one.propose(5).indices)
    of_format_2(tmp_path, IDS)
    with pytest.raises(ValueError, match="belong to another pool: its ids differ"):
        driven(tmp_path, SHUFFLED)  # positions mean the order of that time
    with driven(tmp_path) as one:
        assert by_id(one) == told
        one.tell([50], [2])
        one.retract([50])
    with driven(tmp_path, SHUFFLED, say=pytest.fail) as one:
        assert by_id(one) == told
        assert ids(one, one.start) == IDS[30:36]
        assert ids(one, one.propose(5).indices) == expected
    assert len([event for event in events(tmp_path) if event["event"] == "pin"]) == 1


def test_a_directory_begun_without_ids_can_be_given_ids(tmp_path):
    names = [f"row {i}" for i in range(40)]
    with learner(tmp_path) as one:
        one.tell([1, 2, 30], Y[[1, 2, 30]])
    with learner(tmp_path, ids=names) as one:
        one.tell([3], [0])
    with pytest.raises(ValueError, match="belong to another pool"):
        learner(tmp_path)
    order = torch.arange(39, -1, -1)
    predictor = balent.MCDropout(one.predictor.trained.module, epochs=3)
    with balent.Learner(predictor, X[order], directory=tmp_path, ids=names[::-1], draws=8) as one:
        assert by_id(one) == {"row 1": int(Y[1]), "row 2": int(Y[2]), "row 3": 0, "row 30": int(Y[30])}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "tell", "ids": ["photos/01.jpg"], "labels": []}, "line 2: the event 'tell' is damaged"),
        ({"event": "skip", "ids": [1]}, "line 2: ids must be texts, but one is 1"),
        ({"event": "skip", "ids": 3}, "line 2: ids must be a list"),
    ],
)
def test_a_damaged_event_with_ids_is_named_with_its_line(tmp_path, event, said):
    driven(tmp_path).close()
    with (tmp_path / "journal.ndjson").open("a") as file:
        file.write(json.dumps(event) + "\n")
    with pytest.raises(ValueError, match=said):
        driven(tmp_path)
