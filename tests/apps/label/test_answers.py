"""Answers: on disk before they are acknowledged, once each; and who may answer what."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.labelling_page import (
    event,
    journal,
    label,
    named,
    open_again,
    pool,
    propose,
    reserve,
    say,
    shown,
)

from balent import Project
from balent.apps.label.leases import SECONDS
from balent.apps.label.said import Refused, said


def ids(desk, numbers):
    return [desk.project.items[number].id for number in numbers]


def classes(desk):
    """Labels by number, as any other process reads them."""
    state = Project(desk.project.path).state
    return {number: state.classes.name(label) for number, label in state.labels().items()}


@pytest.fixture
def items(desk):
    """Items of the desk that are proposed with a guess; the first tab looks at eight of them."""
    propose(desk, numbers := pool(desk)[:20], guess="dog", round=3)
    shown(desk)
    return numbers


# ── the journal ──────────────────────────────────────────────────────────────────────────────────────


def test_a_question_and_its_answer_are_written_together_and_the_question_once(desk, items):
    """So items that were only shown leave no trace."""
    before = len(journal(desk.project))
    label(desk, items[0], "cat", who="ann", seconds=1.25)
    ask, answer = journal(desk.project)[before:]
    assert (ask["event"], ask["ids"], ask["guesses"], ask["round"]) == ("ask", ids(desk, items[:1]), ["dog"], 3)
    assert ask["who"] is None
    assert {name: answer[name] for name in ("event", "ids", "labels", "who", "seconds")} == {
        "event": "label",
        "ids": ids(desk, items[:1]),
        "labels": ["cat"],
        "who": "ann",
        "seconds": 1.25,
    }
    label(desk, items[0], "dog", who="ann")
    assert named(desk.project, "ask") == ids(desk, items[:1])
    assert classes(desk) == {items[0]: "dog"}


def test_several_items_of_the_grid_are_one_event(desk, items):
    label(desk, items[:6], "dog")
    assert [line["ids"] for line in journal(desk.project) if line["event"] == "label"] == [ids(desk, items[:6])]
    assert named(desk.project, "ask") == ids(desk, items[:6])
    assert classes(desk) == dict.fromkeys(items[:6], "dog")


def test_a_repeated_event_is_acknowledged_again_and_is_in_the_journal_once(desk, items):
    """The page sends an answer again when it does not know whether it arrived."""
    body = event("label", items[0], label="cat")
    for _ in range(3):
        desk.answer(said(body), None)
    again = open_again(desk)
    again.answer(said(body), None)
    keys = [line["key"] for line in journal(desk.project)]
    assert keys.count(body["id"]) == 1
    assert len(named(desk.project, "label")) == 1


@pytest.mark.parametrize(("at", "name"), [(1, "label"), (0, "skip")], ids=["another item", "another event"])
def test_an_id_that_was_used_for_something_else_is_refused(desk, items, at, name):
    """A client that counts from 1 again after a restart was told that its label is saved, and it was not."""
    for _ in range(2):
        say(desk, "label", items[0], label="cat", id="1")
    with pytest.raises(Refused, match="used for another event"):
        say(desk, name, items[at], id="1", **({"label": "cat"} if name == "label" else {}))
    assert classes(desk) == {items[0]: "cat"}


def test_requests_that_arrive_together_are_written_one_after_the_other(desk_with):
    """Handlers run in threads. Four people and one of them sends everything twice."""
    desk = desk_with(items=120)
    propose(desk, pool(desk)[:60])

    def work(who):
        for _ in range(8):
            item = shown(desk, f"{who}-1", who, n=3)[0]
            body = said(event("label", item, label="cat", tab=f"{who}-1"))
            for _ in range(2 if who == "ann" else 1):
                desk.answer(body, who)

    with ThreadPoolExecutor() as threads:
        assert [*threads.map(work, ("ann", "bob", "carl", "dora"))] == [None] * 4
    assert len(named(desk.project, "label")) == len({*named(desk.project, "label")}) == 32
    assert sorted(named(desk.project, "ask")) == sorted(named(desk.project, "label"))
    keys = [line["key"] for line in journal(desk.project)]
    assert len(keys) == len({*keys})


def test_a_repeated_event_does_not_undo_what_came_after_it(desk, items):
    body = event("label", items[0], label="cat")
    desk.answer(said(body), None)
    say(desk, "retract", items[0])
    desk.answer(said(body), None)
    assert classes(desk) == {}
    assert items[0] in shown(desk)


def test_an_answer_that_was_cut_off_after_its_question_is_completed_by_sending_it_again(desk, items):
    """A machine that fails in the middle of the append can keep the question only."""
    body = event("label", items[0], label="cat")
    desk.answer(said(body), None)
    path = desk.project.path / "journal.ndjson"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # the last line is torn
    again = open_again(desk)
    assert [*again.project.state.pending] == [items[0]]
    again.answer(said(body), None)
    assert named(again.project, "ask") == named(again.project, "label") == ids(desk, items[:1])


def test_an_answer_is_on_disk_when_it_is_acknowledged(desk, items):
    label(desk, items[0], "cat")
    assert classes(desk) == {items[0]: "cat"}


def test_of_several_items_those_that_somebody_else_has_answered_keep_that_answer(desk, items):
    """Twenty-four items of the grid are not lost because of one."""
    Project(desk.project.path).tell({desk.project.items[items[3]].id: "bird"}, who="by file")
    label(desk, items[:6], "dog", who="ann")
    assert classes(desk) == {**dict.fromkeys(items[:6], "dog"), items[3]: "bird"}
    assert items[3] not in desk.project.state.asked
    with pytest.raises(Refused) as refused:
        label(desk, [items[3]], "dog", who="ann")
    assert refused.value.status == 409


def test_who_answered_an_item_first_may_still_change_it_after_others_tried(desk, items):
    """Two tabs of one person: the answer belongs to the tab that gave it."""
    label(desk, items[0], "bird", who="ann", tab="ann-1")
    label(desk, items[:3], "dog", who="ann", tab="ann-2")
    assert classes(desk) == {items[0]: "bird", items[1]: "dog", items[2]: "dog"}
    with pytest.raises(Refused) as refused:
        label(desk, items[0], "dog", who="ann", tab="ann-2")
    assert refused.value.status == 409
    label(desk, items[0], "cat", who="ann", tab="ann-1")
    assert classes(desk)[items[0]] == "cat"


def test_a_list_with_an_item_that_does_not_exist_is_refused_as_a_whole(desk, items):
    before = (desk.project.path / "journal.ndjson").read_bytes()
    with pytest.raises(Refused) as refused:
        label(desk, [*items[:3], 60], "dog")
    assert refused.value.status == 404
    assert (desk.project.path / "journal.ndjson").read_bytes() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"event": "label", "item": 60, "label": "cat"}, 404),
        ({"event": "label", "item": -1, "label": "cat"}, 404),
        ({"event": "label", "items": [0, 10**30], "label": "cat"}, 404),
        ({"event": "flag", "item": 60}, 404),
        ({"event": "retract", "item": 60}, 404),
        ({"event": "resolve", "item": 60, "label": "cat"}, 404),
        ({"event": "label", "item": 0, "label": "cta"}, 422),
        ({"event": "label", "item": 0, "label": ""}, 422),
        ({"event": "retract", "item": 0}, 422),
    ],
)
def test_what_is_refused_leaves_no_trace(desk, body, status):
    before = (desk.project.path / "journal.ndjson").read_bytes()
    with pytest.raises(Refused) as refused:
        desk.answer(said({"id": "12345678", "tab": "one", **body}), None)
    assert refused.value.status == status
    assert len(refused.value.sentence.split()) > 3
    assert (desk.project.path / "journal.ndjson").read_bytes() == before
    assert not desk.project.state.last


def test_audit_items_are_shown_without_a_guess_even_if_the_worker_sends_one(desk):
    """A guess would change what people say, and with it the accuracy."""
    check = reserve(desk)[0]
    line = {"number": check, "score": None, "audit": True, "guess": "cat", "probability": 0.9, "why": "random check"}
    desk.heard({"said": "proposals", "proposals": [line], "round": 1, "marks": {check: [[0, 2]]}})
    (item,) = desk.next("one", None, 8)["items"]
    assert (item["audit"], item["guess"], item["probability"], item["why"]) == (True, None, None, "random check")
    assert "marks" not in item


def test_the_rate_counts_each_label_once(desk, items, clock):
    """Six labels in a minute are six labels per minute."""
    for item in items[:6]:
        label(desk, item)
        clock.wait(10)
    assert desk.status("one", None)["rate"] == pytest.approx(6.0)


# ── who may answer ───────────────────────────────────────────────────────────────────────────────────


def test_what_another_person_has_answered_is_refused(desk, items):
    label(desk, items[0], "cat", who="ann", tab="a")
    for name, more in (("label", {"label": "dog"}), ("skip", {})):
        with pytest.raises(Refused) as refused:
            say(desk, name, items[0], "bob", tab="b", **more)
        assert refused.value.status == 409
    assert classes(desk) == {items[0]: "cat"}


def test_what_another_tab_of_the_same_person_has_answered_is_refused(desk, items):
    label(desk, items[0], "cat", who="ann", tab="a")
    with pytest.raises(Refused) as refused:
        label(desk, items[0], "dog", who="ann", tab="b")
    assert refused.value.status == 409


def test_what_another_person_has_skipped_is_refused(desk, items):
    say(desk, "skip", items[0], "ann", tab="a")
    with pytest.raises(Refused) as refused:
        label(desk, items[0], "dog", who="bob", tab="b")
    assert refused.value.status == 409


def test_a_correction_on_purpose_is_not_refused(desk, items):
    label(desk, items[0], "cat", who="ann", tab="a")
    label(desk, items[0], "dog", who="bob", tab="b", replace=True)
    assert classes(desk) == {items[0]: "dog"}


def test_the_late_answer_of_an_idle_tab_counts_if_nobody_has_answered(desk, items, clock):
    """Its items were given to somebody else in the meantime."""
    clock.wait(SECONDS + 1)
    assert shown(desk, "bob-1", "bob", n=2) == items[:2]
    label(desk, items[0], "cat", who="ann", tab="one")
    assert classes(desk) == {items[0]: "cat"}
    assert named(desk.project, "ask") == ids(desk, items[:1])
    assert shown(desk, "bob-1", "bob", n=2) == items[1:3]
    with pytest.raises(Refused) as refused:
        label(desk, items[0], "dog", who="bob", tab="bob-1")
    assert refused.value.status == 409


def test_the_late_answer_of_an_idle_tab_is_refused_if_somebody_has_answered(desk, items, clock):
    clock.wait(SECONDS + 1)
    shown(desk, "bob-1", "bob", n=2)
    label(desk, items[0], "dog", who="bob", tab="bob-1")
    with pytest.raises(Refused) as refused:
        label(desk, items[0], "cat", who="ann", tab="one")
    assert refused.value.status == 409
    assert classes(desk) == {items[0]: "dog"}


def test_an_answer_for_an_item_that_was_never_lent_counts(desk):
    """A page that was open while the server was started again: it has items that this server does not know of."""
    label(desk, pool(desk)[30], "cat", tab="old")
    assert classes(desk) == {pool(desk)[30]: "cat"}


# ── undo ─────────────────────────────────────────────────────────────────────────────────────────────


def test_an_undone_item_comes_first_in_its_tab(desk, items):
    label(desk, items[0])
    say(desk, "retract", items[0])
    assert shown(desk) == items[:8]
    assert classes(desk) == {}


def test_undo_goes_back_several_steps(desk, items):
    label(desk, items[0], "cat")
    say(desk, "skip", items[1])
    label(desk, items[2], "bird")
    for item in (items[2], items[1], items[0]):
        say(desk, "retract", item)
        assert shown(desk)[0] == item
    assert shown(desk) == items[:8]
    assert classes(desk) == {}
    assert not desk.project.state.skipped


def test_undo_then_close_the_item_is_pending_again(desk, items):
    label(desk, items[4], "cat")
    say(desk, "retract", items[4])
    assert [item.id for item in Project(desk.project.path).pending()] == ids(desk, [items[4]])
    assert shown(open_again(desk))[0] == items[4]


def test_an_undone_item_is_answered_anew_without_a_second_question(desk, items):
    label(desk, items[0], "cat")
    say(desk, "retract", items[0])
    label(desk, items[0], "dog")
    assert classes(desk) == {items[0]: "dog"}
    assert named(desk.project, "ask") == ids(desk, items[:1])


def test_a_random_check_stays_one_when_it_is_undone(desk):
    check = shown(desk, n=1)[0]
    label(desk, check)
    say(desk, "retract", check)
    assert desk.next("one", None, 1)["items"][0]["audit"]
    label(desk, check, "dog")
    assert desk.project.state.is_audit(check)


def test_several_items_of_the_grid_are_undone_together(desk, items):
    label(desk, items[:6])
    say(desk, "retract", items[:6])
    assert shown(desk, n=8) == items[:8]


def test_a_flag_marks_an_item_which_stays_where_it_is(desk, items):
    say(desk, "flag", items[0], "ann", note="odd")
    assert shown(desk) == items[:8]
    assert desk.project.state.flagged == {items[0]: "odd"}
    label(desk, items[0])
    assert desk.project.state.flagged == {items[0]: "odd"}


def test_a_flag_can_be_taken_back(desk, items):
    say(desk, "flag", items[0], "ann", note="odd")
    say(desk, "retract", items[0], "ann")
    assert not desk.project.state.flagged
    assert shown(desk) == items[:8]


def test_a_flag_on_somebody_else_s_label_can_be_taken_back_without_the_label(desk, items):
    """Ann looks through the history, flags what bob said, and changes her mind."""
    label(desk, items[0], "cat", who="bob")
    say(desk, "flag", items[0], "ann", note="odd", tab="ann-1")
    say(desk, "retract", items[0], "ann", tab="ann-1")
    assert not desk.project.state.flagged
    assert classes(desk) == {items[0]: "cat"}


def test_nobody_takes_back_the_label_of_somebody_else(desk, items):
    label(desk, items[0], "cat", who="ann")
    with pytest.raises(Refused) as refused:
        say(desk, "retract", items[0], "bob", tab="bob-1")
    assert refused.value.status == 409
    assert classes(desk) == {items[0]: "cat"}


def test_a_skip_has_a_note_and_is_not_asked_again(desk, items):
    say(desk, "skip", items[0], "ann", note="too dark")
    assert desk.project.state.skipped == {items[0]: "too dark"}
    assert items[0] not in shown(desk)
    assert named(desk.project, "ask") == ids(desk, items[:1])
    label(desk, items[0], "cat", who="ann", replace=True)
    assert not desk.project.state.skipped


# ── classes that change ──────────────────────────────────────────────────────────────────────────────


def test_a_class_that_is_renamed_while_items_are_out_is_no_guess_any_more(desk, items):
    assert desk.next("one", None, 1)["items"][0]["guess"] == "dog"
    version = desk.next("one", None, 1)["version"]
    desk.change_classes("rename", "dog", "hound", None, None)
    found = desk.next("one", None, 1)
    assert found["items"][0]["guess"] is None
    assert found["items"][0]["probability"] is None
    assert found["version"] != version
    label(desk, items[0], "hound")
    assert classes(desk) == {items[0]: "hound"}


def test_an_old_name_of_a_class_is_refused_in_words(desk, items):
    """The button was pressed before the page knew."""
    desk.change_classes("rename", "dog", "hound", None, None)
    with pytest.raises(Refused, match="'dog' is not known") as refused:
        label(desk, items[0], "dog")
    assert refused.value.status == 422


def test_labels_follow_a_class_that_is_renamed_or_merged(desk, items):
    label(desk, items[0], "cat")
    label(desk, items[1], "dog")
    label(desk, items[2], "bird")
    desk.change_classes("rename", "cat", "feline", None, None)
    desk.change_classes("merge", "dog", "feline", None, None)
    assert classes(desk) == {items[0]: "feline", items[1]: "feline", items[2]: "bird"}
    label(desk, items[3], "feline")
    assert desk.status("one", None)["classes"] == {"feline": 3, "bird": 1}


def test_the_worker_is_asked_at_once_when_the_classes_change(desk, items):
    """Guesses name classes, and the model has an output for each."""
    asked = []
    desk.trainer.send = asked.append
    for change in (("add", "fish", ""), ("rename", "fish", "trout"), ("merge", "trout", "bird")):
        asked.clear()
        desk.change_classes(*change, None, None)
        assert [request["wanted"] for request in asked] == ["proposals"], change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("add", "cat", "", None, None), "exists already"),
        (("add", "", "", None, None), "1 to 200 characters"),
        (("add", " fish", "", None, None), "1 to 200 characters"),
        (("add", "fi\nsh", "", None, None), "one line"),
        (("add", "x" * 201, "", None, None), "1 to 200 characters"),
        (("add", "fish", "", "1", None), "belongs to another class"),
        (("rename", "cat", "dog", None, None), "exists already"),
        (("rename", "lion", "fish", None, None), "not known"),
        (("merge", "cat", "cat", None, None), "into itself"),
        (("merge", "cat", "lion", None, None), "not known"),
        (("describe", "lion", "", "c", None), "not known"),
        (("describe", "cat", "", "2", None), "belongs to another class"),
    ],
)
def test_a_change_of_classes_that_is_refused_changes_nothing(desk, change, sentence):
    before = [(desk.project.path / name).read_bytes() for name in ("journal.ndjson", "project.toml")]
    with pytest.raises(Refused, match=sentence) as refused:
        desk.change_classes(*change)
    assert refused.value.status == 422
    assert [(desk.project.path / name).read_bytes() for name in ("journal.ndjson", "project.toml")] == before
    assert [look.name for look in desk.looks()] == ["cat", "dog", "bird"]


@pytest.mark.parametrize("text", ["\ud800", "cat \udfff"])
@pytest.mark.parametrize("field", ["name", "key", "note"])
def test_half_a_character_in_a_class_does_not_break_the_project(desk, text, field):
    """A browser sends half an emoji when a text is cut in its middle. TOML cannot hold it."""
    given = {"name": "fish", "key": None, "note": None, field: text}
    with pytest.raises(Refused) as refused:
        desk.change_classes("add", given["name"], "", given["key"], given["note"])
    assert refused.value.status == 422
    assert "cat" in Project(desk.project.path).state.classes
    desk.next("one", None, 1)


# ── overlap ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def check(desk_with):
    """A desk where two people answer each random check, and such a check, which ann has called a cat."""
    desk = desk_with(overlap=2)
    number = reserve(desk)[0]
    propose(desk, [number], checks=[number])
    label(desk, shown(desk, "ann-1", "ann")[0], "cat", who="ann", tab="ann-1")
    return desk, number


def test_a_check_has_two_answers_and_no_more(check):
    desk, number = check
    label(desk, number, "cat", who="bob", tab="bob-1")
    assert {*desk.project.state.answers[number]} == {"ann", "bob"}
    with pytest.raises(Refused) as refused:
        label(desk, number, "cat", who="carl", tab="carl-1")
    assert refused.value.status == 409
    assert named(desk.project, "ask") == ids(desk, [number])


def test_a_person_does_not_answer_a_check_twice_from_another_tab(check):
    desk, number = check
    with pytest.raises(Refused) as refused:
        label(desk, number, "dog", who="ann", tab="ann-2")
    assert refused.value.status == 409


def test_a_disagreement_is_no_label_until_somebody_decides(check):
    desk, number = check
    label(desk, number, "dog", who="bob", tab="bob-1")
    assert classes(desk) == {}
    (found,) = desk.disagreements()["items"]
    assert [(answer["who"], answer["label"]) for answer in found["answers"]] == [("ann", "cat"), ("bob", "dog")]
    assert desk.status("x", None)["disagreements"] == 1
    say(desk, "resolve", number, "carl", label="bird", tab="carl-1")
    assert classes(desk) == {number: "bird"}
    assert desk.disagreements()["items"] == []


def test_the_second_person_s_skip_keeps_the_first_one_s_label(check):
    desk, number = check
    assert number in shown(desk, "bob-1", "bob")
    say(desk, "skip", number, "bob", tab="bob-1")
    assert classes(desk) == {number: "cat"}
    assert not desk.project.state.skipped
    assert number not in shown(desk, "bob-1", "bob", n=24)
    assert number not in shown(desk, "carl-1", "carl", n=24)


def test_the_second_person_s_undo_keeps_the_first_one_s_label(check):
    desk, number = check
    shown(desk, "bob-1", "bob")
    label(desk, number, "dog", who="bob", tab="bob-1")
    say(desk, "retract", number, "bob", tab="bob-1")
    assert classes(desk) == {number: "cat"}
    assert shown(desk, "bob-1", "bob")[0] == number
    label(desk, number, "cat", who="bob", tab="bob-1")
    assert {*desk.project.state.answers[number]} == {"ann", "bob"}


def test_the_second_person_s_undone_skip_can_be_answered(check):
    desk, number = check
    shown(desk, "bob-1", "bob")
    say(desk, "skip", number, "bob", tab="bob-1")
    say(desk, "retract", number, "bob", tab="bob-1")
    assert shown(desk, "bob-1", "bob")[0] == number


def test_the_first_person_s_undo_leaves_the_second_one_s_label(check):
    desk, number = check
    label(desk, number, "dog", who="bob", tab="bob-1")
    say(desk, "retract", number, "ann", tab="ann-1")
    assert classes(desk) == {number: "dog"}
    assert shown(desk, "ann-1", "ann")[0] == number
