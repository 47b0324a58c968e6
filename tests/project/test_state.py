"""What events add up to."""

import pytest

from balent.project.items import Items
from balent.project.state import State


@pytest.fixture
def state():
    items = Items()
    for number, id in enumerate("abcd"):
        items.add({"item": number, "id": id, "fingerprint": f"print of {id}"})
    state = State(items)
    for name in ("cat", "dog"):
        add(state, "class", "", labels=[name])
    return state


def add(state, event, ids, who=None, **fields):
    prints = [
        state.items.all[state.items.number(id)].fingerprint if state.items.number(id) is not None else "?" for id in ids
    ]
    key = f"key {len(state.keys)}"
    state.add({"event": event, "key": key, "ids": [*ids], "prints": prints, "who": who, "when": key, **fields})


def ask(state, ids, audit=False):
    n = len(ids)
    columns = {"scores": [0.5] * n, "audit": [audit] * n, "guesses": [None] * n, "probabilities": [None] * n}
    add(state, "ask", ids, **columns, whys=["because"] * n)


def test_the_last_label_counts_and_all_are_remembered(state):
    add(state, "label", "a", labels=["cat"])
    add(state, "label", "a", labels=["dog"])
    assert state.labels() == {0: 1}
    assert [event["labels"] for event in state.history[0]] == [["cat"], ["dog"]]


def test_an_event_counts_once(state):
    event = {"event": "label", "key": "k", "ids": ["a"], "prints": ["print of a"], "labels": ["cat"], "when": "now"}
    state.add(event)
    state.add({**event, "labels": ["dog"]})
    assert state.labels() == {0: 0}


def test_what_was_asked_is_pending_until_it_is_answered(state):
    ask(state, "abc")
    add(state, "label", "a", labels=["cat"])
    add(state, "skip", "b")
    assert [*state.pending] == [2]
    assert [*state.skipped] == [1]
    assert (state.rounds, state.questions) == (1, 3)


def test_retracting_makes_it_pending_again_or_open_if_it_was_never_asked(state):
    ask(state, "a")
    add(state, "label", "ab", labels=["cat", "dog"])
    add(state, "retract", "ab")
    assert [*state.pending] == [0]
    assert state.labels() == {}


def test_a_renamed_class_keeps_its_labels(state):
    add(state, "label", "a", labels=["cat"])
    add(state, "rename", "", labels=["cat", "feline"])
    add(state, "label", "b", labels=["feline"])
    assert state.labels() == {0: 0, 1: 0}
    assert state.classes.name(0) == "feline"


def test_a_merged_class_gives_its_labels_to_the_other(state):
    add(state, "class", "", labels=["puppy"])
    add(state, "label", "ab", labels=["puppy", "cat"])
    add(state, "merge", "", labels=["puppy", "dog"])
    assert state.labels() == {0: 1, 1: 0}
    assert [*state.classes.names()] == ["cat", "dog"]
    add(state, "class", "", labels=["puppy"])
    assert state.classes.names()["puppy"] == 3, "a number is never given again"


def test_a_label_stays_with_the_content_when_the_name_is_used_again(state):
    add(state, "label", "a", labels=["cat"])
    state.items.add({"item": 0, "id": "moved", "fingerprint": "print of a", "was": "a"})
    state.items.add({"item": 4, "id": "a", "fingerprint": "another content"})
    fresh = State(state.items)
    for name in ("cat", "dog"):
        add(fresh, "class", "", labels=[name])
    event = {"event": "label", "key": "k", "ids": ["a"], "prints": ["print of a"], "labels": ["cat"], "when": ""}
    fresh.add(event)
    assert fresh.labels() == {0: 0}


def test_random_checks_that_people_answer_differently_wait_for_a_decision(state):
    ask(state, "a", audit=True)
    add(state, "label", "a", who="ann", labels=["cat"])
    add(state, "label", "a", who="bob", labels=["dog"])
    assert state.disagreements() == {0: {"ann": 0, "bob": 1}}
    assert state.labels() == {}
    add(state, "label", "a", who="cy", labels=["dog"], resolve=True)
    assert state.labels() == {0: 1}
    assert not state.disagreements()


@pytest.mark.parametrize("who", ["cy", "ann"], ids=["somebody else", "one of them"])
def test_a_decision_is_no_answer_and_can_be_taken_back(state, who):
    """Agreement rose to 1 when the person who disagreed decided."""
    ask(state, "a", audit=True)
    add(state, "label", "a", who="ann", labels=["cat"])
    add(state, "label", "a", who="bob", labels=["dog"])
    add(state, "label", "a", who=who, labels=["dog"], resolve=True)
    assert {name: given.label for name, given in state.answers[0].items()} == {"ann": 0, "bob": 1}
    add(state, "retract", "a", who=who)
    assert state.disagreements() == {0: {"ann": 0, "bob": 1}}
    assert not state.pending


def test_a_decision_stays_when_one_of_those_who_disagreed_takes_back_or_skips(state):
    ask(state, "a", audit=True)
    add(state, "label", "a", who="ann", labels=["cat"])
    add(state, "label", "a", who="bob", labels=["cat"])
    add(state, "label", "a", who="cy", labels=["dog"], resolve=True)
    add(state, "retract", "a", who="ann")
    add(state, "skip", "a", who="bob")
    assert state.labels() == {0: 1}
    add(state, "retract", "a", who="cy")
    assert state.labels() == {}
    assert [*state.pending] == [0]


def test_undoing_the_answer_of_one_person_leaves_that_of_another(state):
    ask(state, "a", audit=True)
    add(state, "label", "a", who="ann", labels=["cat"])
    add(state, "label", "a", who="bob", labels=["dog"])
    add(state, "retract", "a", who="bob")
    assert state.labels() == {0: 0}


def test_an_event_of_an_item_that_is_lost_is_reported_not_guessed(state):
    event = {"event": "label", "key": "k", "ids": ["gone"], "prints": ["?"], "labels": ["cat"], "when": ""}
    state.add(event)
    assert state.labels() == {}
    assert state.unknown == ["gone"]


@pytest.mark.parametrize("event", [{"event": "other", "key": "k"}, {"event": "label", "key": "k", "ids": ["a"]}])
def test_damaged_events_are_refused(state, event):
    with pytest.raises(ValueError, match=r"not known to this version|is damaged"):
        state.add(event)


def test_each_person_has_the_items_that_they_labelled(state):
    """Of two people who answer a random check, the first was not counted."""
    ask(state, "ab", audit=True)
    add(state, "label", "ab", who="ann", labels=["cat", "cat"])
    add(state, "label", "b", who="bob", labels=["dog"])
    add(state, "label", "b", who="ann", labels=["dog"], resolve=True)
    add(state, "label", "c", labels=["dog"], imported=True)
    add(state, "label", "d", who="cy", labels=["dog"], resolve=True)
    assert state.people() == {"ann": 2, "bob": 1, "cy": 1}
    add(state, "retract", "d", who="cy")
    assert state.people() == {"ann": 2, "bob": 1}
