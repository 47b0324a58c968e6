"""Classes by name: a str is a name, an int a number, and numbers follow the order in which classes were made."""

import json

import numpy as np
import pytest
import torch
from helpers.disk import room_up_to
from helpers.driven import learner
from helpers.labelled import blobs, network

import balent
from balent.loop import class_names, given

POOL, LABELS = blobs(60, seed=5)  # three classes
NAMES = ["cat", "dog", "bird"]


def logistic(directory=None, classes=NAMES, outputs=None, **settings):
    made = balent.Logistic(len(classes) if outputs is None else outputs)
    return balent.Learner(made, POOL, directory=directory, classes=classes, draws=20, **settings)


def dropout(directory=None, classes=NAMES, outputs=3, seed=0, warm_start=False, **settings):
    made = balent.MCDropout(network(classes=outputs, seed=seed), epochs=3, warm_start=warm_start)
    return balent.Learner(made, POOL, directory=directory, classes=classes, draws=8, **settings)


def lines(directory):
    return [json.loads(line) for line in (directory / "journal.ndjson").read_text().splitlines()]


# ── names and numbers ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "labels",
    [
        ["bird", "cat"],
        ("bird", 0),
        [2, "cat"],
        np.array(["bird", "cat"]),
        np.array(["bird", 0], dtype=object),
        [2, np.str_("cat")],
        torch.tensor([2, 0]),
    ],
)
def test_labels_are_names_or_numbers(labels):
    driven = logistic()
    driven.tell([1, 2], labels)
    assert driven.told == {1: 2, 2: 0}


def test_one_point_may_be_told_by_its_name_alone():
    driven = logistic()
    driven.tell([4], "dog")
    assert driven.told == {4: 1}


def test_a_text_of_digits_is_a_name():
    driven = logistic(classes=["1", "0"])
    driven.tell([1, 2], ["1", 1])
    assert driven.told == {1: 0, 2: 1}


@pytest.mark.parametrize(
    ("labels", "kind", "said"),
    [
        (["cat", "dgo"], ValueError, "there is no class 'dgo'; did you mean dog"),
        (["cat", "zebra"], ValueError, "there is no class 'zebra'; choose from bird, cat, dog; nothing was recorded"),
        (["cat", 3], ValueError, r"labels must be class numbers 0\.\.2"),
        (["cat", True], TypeError, "one is True or False"),
        ([True, 1], TypeError, "one is True or False"),
        ([np.True_, 1], TypeError, "one is True or False"),
        ([torch.tensor(True), 1], TypeError, "one is True or False"),
        (np.array([True, False]), TypeError, "but are bool"),
        (torch.tensor([True, False]), TypeError, "but are bool"),
        (["cat", None], TypeError, "whole numbers"),
        (["cat", 0.5], TypeError, "whole numbers"),
        (["cat", [0, 1]], TypeError, "whole numbers"),
    ],
)
def test_what_is_no_class_is_refused(labels, kind, said):
    with pytest.raises(kind, match=said):
        given.labels(labels, NAMES, 3)


def test_of_a_call_with_an_unknown_name_nothing_is_recorded():
    driven = logistic()
    with pytest.raises(ValueError, match="there is no class 'dgo'; did you mean dog"):
        driven.tell([1, 2], ["cat", "dgo"])
    assert driven.told == {}


def test_positions_are_not_true_or_false():
    with pytest.raises(TypeError, match="positions must be whole numbers, but one is True or False"):
        logistic().tell([True, 2], [0, 1])


def test_names_need_classes():
    with pytest.raises(ValueError, match=r"the label 'cat' is a name, .* make it with classes="):
        learner().tell([1], ["cat"])
    assert learner().classes is None


def test_names_and_numbers_lead_to_the_same_picks():
    one, other = logistic(), logistic(classes=None, outputs=3)
    for driven in (one, other):
        first = driven.ask(8).indices
        driven.tell(first, [NAMES[i] for i in LABELS[first]] if driven is one else LABELS[first])
    assert one.ask(8).indices.tolist() == other.ask(8).indices.tolist()
    assert one.classes == NAMES


@pytest.mark.parametrize(
    ("classes", "kind", "said"),
    [
        ("cat", TypeError, "must be a list of names, but is the text 'cat'"),
        (["cat", "cat"], ValueError, "must differ, but 'cat' is given more than once"),
        (["cat", ""], TypeError, "a name that can be read"),
        (["cat", 1], TypeError, "a name that can be read"),
    ],
)
def test_names_are_texts_and_differ(classes, kind, said):
    with pytest.raises(kind, match=said):
        class_names.checked(classes)


@pytest.mark.parametrize("make", [logistic, dropout])
def test_the_width_of_the_model_is_checked_when_the_learner_is_made(tmp_path, make):
    with pytest.raises(ValueError, match="it has 4 outputs and there are 3 classes"):
        make(tmp_path, outputs=4)
    assert not (tmp_path / "journal.ndjson").exists()


# ── a directory ──────────────────────────────────────────────────────────────────────────────────


def test_classes_of_the_journal_win(tmp_path):
    with logistic(tmp_path) as driven:
        driven.tell([1], ["bird"])
    with logistic(tmp_path, classes=None, outputs=3) as driven:
        assert driven.classes == NAMES
        driven.tell([2], ["dog"])
        assert driven.told == {1: 2, 2: 1}
    with pytest.raises(ValueError, match="the classes so far are cat, dog, bird, in this order, but dog, cat, bird"):
        logistic(tmp_path, classes=["dog", "cat", "bird"])


def test_a_directory_begun_with_numbers_can_be_given_names(tmp_path):
    with dropout(tmp_path, classes=None) as driven:
        driven.tell([1], [2])
        first = driven.predictor.state()
    with dropout(tmp_path, seed=1) as driven:
        assert driven.classes == NAMES
        assert all(torch.equal(first[name], value) for name, value in driven.predictor.state().items())


def test_names_must_reach_to_the_labels_that_there_are(tmp_path):
    class Any(balent.Logistic):
        width = None  # does not tell how many classes it has

    with balent.Learner(Any(3), POOL, directory=tmp_path) as driven:
        driven.tell([1], [2])
    with pytest.raises(ValueError, match=r"2 classes were named, but .* has labels of class number 2"):
        balent.Learner(Any(3), POOL, directory=tmp_path, classes=["cat", "dog"])


# ── more classes ─────────────────────────────────────────────────────────────────────────────────


def labelled(driven, found):
    """Answers by number, with as many classes as are known."""
    driven.tell(found.indices, LABELS[found.indices].clamp(max=len(driven.classes) - 1))


@pytest.mark.parametrize("reopened", [False, True])
def test_a_learner_that_grew_picks_like_one_that_had_all_classes(tmp_path, reopened):
    """The same labels and pending points: whether the third class was there from the start does not matter."""
    whole = logistic()
    grown = logistic(tmp_path if reopened else None, classes=NAMES[:2])
    for driven in (whole, grown):
        first = driven.ask(10).indices
        driven.tell(first, LABELS[first].clamp(max=1))
    grown.propose(3)  # trained with two classes
    assert grown.add_class("bird") == 2
    if reopened:
        grown.close()
        grown = logistic(tmp_path, classes=NAMES[:2])  # the same call as before
    assert grown.classes == NAMES
    for driven in (whole, grown):
        driven.tell([3, 5], ["bird", 2])
    for _ in range(3):
        one, other = whole.ask(6), grown.ask(6)
        assert one.indices.tolist() == other.indices.tolist()
        assert one.scores.tolist() == other.scores.tolist()
        for driven in (whole, grown):
            driven.tell(one.indices, LABELS[one.indices])
    assert torch.equal(whole.predict(POOL), grown.predict(POOL))


def test_a_predictor_that_does_not_tell_its_width_grows_too(tmp_path):
    class Quiet(balent.Logistic):
        width = None

    with balent.Learner(Quiet(2), POOL, directory=tmp_path, classes=NAMES[:2], draws=8) as driven:
        driven.tell([0, 1], ["cat", "dog"])
        driven.add_class("bird")
    with balent.Learner(Quiet(2), POOL, directory=tmp_path, classes=[*NAMES, "fish"], draws=8) as driven:
        assert driven.predict(POOL).shape == (60, 4)


def test_adding_a_class_is_an_event(tmp_path):
    with logistic(tmp_path, classes=NAMES[:2]) as driven:
        driven.add_class("bird")
        driven.tell([1], ["bird"])
    assert [event["names"] for event in lines(tmp_path) if event["event"] == "classes"] == [["cat", "dog"], ["bird"]]


def test_a_class_is_added_once_and_to_names_only():
    driven = logistic()
    with pytest.raises(ValueError, match="must differ, but 'dog' is given more than once"):
        driven.add_class("dog")
    with pytest.raises(ValueError, match=r"classes have no names here, so 'dog' cannot be added"):
        logistic(classes=None, outputs=3).add_class("dog")
    assert driven.width == 3


def test_a_predictor_that_cannot_grow_says_how_to_go_on(tmp_path):
    with dropout(tmp_path) as driven:
        with pytest.raises(ValueError, match=r"again with a predictor of 4 classes and classes=\['cat', .*'fish'\]"):
            driven.add_class("fish")
        assert driven.classes == NAMES


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_wider_model_takes_over_a_directory_and_keeps_its_labels(tmp_path, warm_start):
    """Its first weights are kept: made again with others, it goes on as before."""
    with dropout(tmp_path, warm_start=warm_start) as driven:
        for _ in range(2):
            labelled(driven, driven.ask(8))
        driven.fit()
        told = driven.told
    wide = {"classes": [*NAMES, "fish"], "outputs": 4, "warm_start": warm_start}
    with dropout(tmp_path, seed=1, **wide) as driven:
        assert driven.told == told
        driven.tell([0], ["fish"])
        expected = driven.propose(5)
    with dropout(tmp_path, seed=2, **wide | {"classes": None}) as driven:
        assert driven.classes == [*NAMES, "fish"]
        assert driven.propose(5).indices.tolist() == expected.indices.tolist()
        assert torch.equal(driven.propose(5).scores, expected.scores)
    with pytest.raises(ValueError, match="it has 3 outputs and there are 4 classes"):
        dropout(tmp_path)


def test_a_class_that_could_not_be_written_is_not_there(tmp_path):
    with logistic(tmp_path, classes=NAMES[:2]) as driven:
        driven.tell([1, 2], ["cat", "dog"])
        with room_up_to((tmp_path / "journal.ndjson").stat().st_size + 5), pytest.raises(OSError, match="is intact"):
            driven.add_class("bird")
        assert driven.classes == NAMES[:2]
        assert driven.predict(POOL).shape == (60, 2)
        driven.add_class("bird")
        assert driven.predict(POOL).shape == (60, 3)


def test_no_class_is_added_to_a_learner_that_is_closed():
    driven = logistic()
    driven.close()
    with pytest.raises(ValueError, match="this Learner is closed"):
        driven.add_class("fish")
    assert driven.predictor.classes == 3


def test_numbers_without_names_or_width_may_be_any():
    assert given.labels([7], [], None) == [7]
