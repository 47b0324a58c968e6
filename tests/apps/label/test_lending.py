"""Lending: what a tab gets next; never what somebody else has, and nothing is lost on the way."""

import json

import pytest
from helpers.labelling import pictures
from helpers.labelling_page import (
    asked_elsewhere,
    desk_of,
    label,
    named,
    of_rows,
    open_again,
    pool,
    proposal,
    propose,
    reserve,
    say,
    shown,
)

from balent import Project
from balent.apps.label.leases import SECONDS


def nothing_left(desk):
    """The worker has looked, and found no item more."""
    propose(desk, [], enough=False)


# ── one tab ──────────────────────────────────────────────────────────────────────────────────────────


def test_asking_again_gives_the_same_items(desk):
    propose(desk, pool(desk)[:20])
    first = desk.next("one", None, 8)["items"]
    assert [item["item"] for item in first] == pool(desk)[:8]
    assert desk.next("one", None, 8)["items"] == first


def test_an_answered_item_is_replaced_by_a_new_one_at_the_end(desk):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk)
    label(desk, numbers[2])
    assert shown(desk) == [*numbers[:2], *numbers[3:9]]


def test_fewer_items_may_be_asked_for_than_the_tab_has(desk):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, n=8)
    assert shown(desk, n=3) == numbers[:3]
    assert shown(desk, n=8) == numbers[:8]


def test_a_tab_gets_at_most_24_items(desk):
    """However many it asks for: the others should get some, too."""
    propose(desk, pool(desk)[:40])
    assert len(shown(desk, n=500)) == 24


def test_new_proposals_change_the_queue_but_not_what_people_look_at(desk):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, n=4)
    propose(desk, newer := pool(desk)[20:40])
    assert shown(desk, n=6) == [*numbers[:4], *newer[:2]]


def test_proposals_that_were_computed_before_an_item_was_lent_do_not_lend_it_twice(desk):
    """The worker does not know what was lent or answered while it was busy."""
    propose(desk, numbers := pool(desk)[:20])
    mine = shown(desk, "one", n=4)
    label(desk, mine[0])
    propose(desk, numbers)
    assert shown(desk, "two", n=8) == numbers[4:12]
    assert shown(desk, "one", n=3) == numbers[1:4]


# ── several tabs and people ──────────────────────────────────────────────────────────────────────────


def test_people_and_tabs_that_label_at_the_same_time_never_get_the_same_item(desk_with):
    """50 labels each. Two tabs of one person labelled 40 items twice in the prototype."""
    desk = desk_with(items=240)
    propose(desk, pool(desk)[:160])
    said = []
    for _ in range(50):
        for tab, who in (("ann-1", "ann"), ("ann-2", "ann"), ("bob-1", "bob")):
            item = shown(desk, tab, who)[0]
            label(desk, item, who=who, tab=tab)
            said.append(item)
    assert len(said) == len(set(said)) == 150
    assert sorted(named(desk.project, "label")) == sorted(desk.project.items[n].id for n in said)
    assert sorted(named(desk.project, "ask")) == sorted(named(desk.project, "label"))


def test_the_items_of_an_idle_tab_go_to_others_and_come_first(desk, clock):
    propose(desk, numbers := pool(desk)[:20])
    assert shown(desk, "ann-1", "ann", n=4) == numbers[:4]
    clock.wait(SECONDS - 1)
    assert shown(desk, "bob-1", "bob", n=4) == numbers[4:8]
    clock.wait(2)
    assert shown(desk, "bob-1", "bob", n=8) == [*numbers[4:8], *numbers[:4]]


def test_a_tab_that_comes_back_gets_what_is_free(desk, clock):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, "ann-1", "ann", n=4)
    clock.wait(SECONDS + 1)
    shown(desk, "bob-1", "bob", n=2)
    assert shown(desk, "ann-1", "ann", n=3) == numbers[2:5]


def test_people_who_are_there_are_named(desk, clock):
    shown(desk, "ann-1", "ann")
    shown(desk, "tab", None)
    clock.wait(12)
    assert desk.next("bob-1", "bob", 1)["now"] == ["ann", ""]
    assert desk.status("bob-1", "bob")["now"] == [{"who": "ann", "seconds": 12}, {"who": "", "seconds": 12}]
    clock.wait(SECONDS)
    assert desk.next("bob-1", "bob", 1)["now"] == []


# ── other processes ──────────────────────────────────────────────────────────────────────────────────


def test_items_that_another_process_asks_are_left_to_it(desk):
    """A file of questions may lie in somebody's mail."""
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, n=2)
    asked_elsewhere(desk, [numbers[1], *numbers[4:10]])  # one of them is on the screen of somebody
    assert shown(desk, n=8) == [numbers[0], *numbers[2:4], *numbers[10:15]]


def test_an_item_that_another_process_labels_or_skips_disappears_from_a_tab(desk):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, n=4)
    other = Project(desk.project.path)
    other.tell({other.items[numbers[1]].id: "dog"}, who="by file")
    other.skip([other.items[numbers[2]].id])
    assert shown(desk, n=2) == [numbers[0], numbers[3]]


def test_items_that_were_pending_when_the_page_was_opened_come_first(desk):
    propose(desk, numbers := pool(desk)[:20])
    asked_elsewhere(desk, asked := pool(desk)[30:35])
    assert shown(open_again(desk), n=8) == [*asked, *numbers[:3]]


def test_pending_items_are_not_lost_when_the_worker_proposes(desk):
    """The worker proposes nothing that is pending, so its proposals must not take their place."""
    asked_elsewhere(desk, asked := pool(desk)[30:42])
    again = open_again(desk)
    propose(again, new := pool(desk)[:20])
    assert shown(again, n=14) == [*asked, *new[:2]]


def test_an_undone_item_of_an_idle_tab_is_not_lost_when_the_worker_proposes(desk, clock):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, "ann-1", "ann", n=2)
    label(desk, numbers[0], who="ann", tab="ann-1")
    say(desk, "retract", numbers[0], "ann", tab="ann-1")
    clock.wait(SECONDS + 1)
    desk.status("carl-1", "carl")  # somebody is there: the idle tab's items are free now
    propose(desk, numbers[10:])
    assert numbers[0] in shown(desk, "bob-1", "bob", n=4)


def test_an_undone_item_is_not_lost_when_the_same_tab_opens_the_grid(desk):
    propose(desk, numbers := pool(desk)[:20])
    shown(desk, n=2)
    label(desk, numbers[0])
    say(desk, "retract", numbers[0])
    desk.trainer.send = lambda message: (
        desk.heard(
            {"said": "reply", "to": message["number"], "proposals": [proposal(numbers[15])], "more": 0, "trained": True}
        )
        if message["wanted"] == "grid"
        else None
    )
    assert [item["item"] for item in desk.grid("one", None, "cat", 24, [])["items"]] == [numbers[15]]
    assert numbers[0] in shown(desk, n=8)


# ── items that are gone, or there twice ──────────────────────────────────────────────────────────────


def test_removed_files_are_not_lent(tmp_path):
    pictures(tmp_path / "photos", [f"{i}.png" for i in range(8)])
    desk = desk_of(Project.create(tmp_path / "photos.balent", tmp_path / "photos", classes=["cat", "dog"]))
    propose(desk, range(8))
    assert shown(desk, n=3) == [0, 1, 2]
    for name in ("1.png", "4.png"):
        (tmp_path / "photos" / name).unlink()
    Project(desk.project.path).refresh()
    assert shown(desk, n=24) == [0, 2, 3, 5, 6, 7]


def doubled(folder, **settings):
    """40 rows, each there twice."""
    import numpy as np

    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.save(folder / "twice.npy", np.concatenate([rows, rows]))
    return Project.create(folder / "twice.balent", folder / "twice.npy", classes=["cat", "dog"], **settings)


def test_of_two_equal_items_one_is_asked(tmp_path):
    """While there is no model only the reserve is asked: it has each content once."""
    desk = desk_of(doubled(tmp_path))
    asked = shown(desk, n=24)
    assert asked
    assert all(number < 40 for number in asked)
    assert len(reserve(desk_of(doubled_apart(tmp_path)))) == 2 * len(reserve(desk))


def doubled_apart(folder):
    (folder / "apart").mkdir()
    return doubled(folder / "apart", duplicates="keep")


def test_an_item_whose_double_has_a_label_is_not_asked(tmp_path):
    """Equal items are labelled once, whichever of them somebody labels in a file."""
    project = doubled(tmp_path)
    desk = desk_of(project)
    first, *others = reserve(desk)
    Project(project.path).tell({project.items[first + 40].id: "cat"})
    assert shown(desk, n=3) == others[:3]


def test_an_item_whose_double_gets_a_label_while_it_waits_is_not_asked(tmp_path):
    project = doubled(tmp_path)
    desk = desk_of(project)
    propose(desk, numbers := pool(desk)[:6])
    Project(project.path).tell({project.items[numbers[0] + 40].id: "cat"})
    assert shown(desk, n=2) == numbers[1:3]


# ── without a model ──────────────────────────────────────────────────────────────────────────────────


def test_labelling_starts_at_once_with_random_checks(desk):
    """While features are computed for the first time."""
    found = desk.next("one", None, 8)
    assert [item["item"] for item in found["items"]] == reserve(desk)[:8]
    assert all(item["audit"] and item["why"] == "random check" for item in found["items"])
    desk.heard({"said": "features", "done": 3, "of": 60})
    assert shown(desk, "two", n=2) == reserve(desk)[8:10]
    assert desk.next("one", None, 1)["model"] == {"state": "features", "done": 3, "of": 60, "rounds": 0, "note": ""}


def test_without_audit_labelling_starts_at_once_too(desk_with):
    """Then they are ordinary questions: no accuracy is shown, so nothing is a random check."""
    desk = desk_with(audit=0)
    found = desk.next("one", None, 4)["items"]
    assert [item["item"] for item in found] == reserve(desk)[:4]
    assert not any(item["audit"] for item in found)
    label(desk, found[0]["item"])
    assert not desk.project.state.is_audit(found[0]["item"])


def test_checks_that_were_answered_are_not_asked_again(desk):
    for expected in reserve(desk)[:5]:
        assert shown(desk, n=1) == [expected]
        label(desk, expected)
    assert shown(desk, n=24) == reserve(desk)[5:]


def test_without_a_model_the_reserve_is_all_that_is_lent(desk):
    assert shown(desk, n=24) == reserve(desk)
    found = desk.next("two", None, 8)
    assert (found["items"], found["message"], found["done"]) == ([], "", False)


def test_with_a_model_the_reserve_is_not_asked_beyond_every_fifth_question(desk):
    """Else the estimate of the accuracy would be used up, and training would get what no strategy chose."""
    propose(desk, numbers := pool(desk)[:3])
    assert shown(desk, n=8) == numbers


def test_features_that_are_there_from_an_earlier_time_make_no_difference_to_the_queue(desk):
    """A server that is started again has its queue; it does not fall back to the reserve."""
    desk.project.compute_features()
    propose(desk, numbers := pool(desk)[:6])
    again = open_again(desk)
    assert again.trainer.model["state"] == "starting"
    assert shown(again, n=8) == numbers


def test_when_the_worker_has_stopped_random_checks_go_on(desk):
    propose(desk, numbers := pool(desk)[:2])
    desk.worker_stopped("no memory. Labelling goes on with random checks")
    assert shown(desk, n=4) == [*numbers, *reserve(desk)[:2]]
    assert desk.next("one", None, 4)["model"]["note"].startswith("no memory")


def test_nothing_is_called_finished_while_another_process_has_asked_items(desk):
    asked_elsewhere(desk, range(60))
    shown(desk)
    nothing_left(desk)
    found = desk.next("one", None, 8)
    assert found["items"] == []
    assert not found["done"]
    assert "every item" not in found["message"]


def test_nothing_is_called_finished_while_the_very_first_item_is_unlabelled(desk):
    """Item 0 is an item."""
    Project(desk.project.path).tell({item.id: "cat" for item in desk.project.items.all[1:]})
    asked_elsewhere(desk, [0])
    nothing_left(desk)
    shown(desk)
    nothing_left(desk)
    found = desk.next("one", None, 8)
    assert (found["items"], found["done"]) == ([], False)


def test_when_the_worker_has_stopped_every_item_can_be_labelled(desk):
    desk.worker_stopped("no memory")
    while items := shown(desk, n=24):
        label(desk, items)
    assert len(desk.project.state.last) == 60
    assert desk.next("one", None, 8)["done"]


def test_when_the_worker_has_stopped_equal_items_are_asked_once(tmp_path):
    desk = desk_of(doubled(tmp_path))
    desk.worker_stopped("no memory")
    asked = []
    while items := shown(desk, n=24):
        asked += items
        label(desk, items)
    assert sorted(asked) == [*range(40)]


def test_when_everything_is_labelled_it_is_said(desk):
    Project(desk.project.path).tell({item.id: "cat" for item in desk.project.items.all[:-1]})
    propose(desk, [59], enough=False)
    assert shown(desk, "one") == [59]
    nothing_left(desk)
    waiting = desk.next("two", None, 8)
    assert (waiting["items"], waiting["done"]) == ([], False)
    assert waiting["message"] == "other people look at the last items"
    say(desk, "skip", 59)
    nothing_left(desk)
    found = desk.next("two", None, 8)
    assert (found["message"], found["done"]) == ("every item is labelled or skipped", True)


def test_files_that_cannot_be_read_do_not_keep_the_page_from_being_finished(desk):
    """They have no features, so that no strategy asks them: "the last 1 were asked elsewhere" was said for ever."""
    broken = desk.project.items[5].id
    Project(desk.project.path).tell({item.id: "cat" for item in desk.project.items.all if item.id != broken})
    desk.heard({"said": "standing", "standing": {"bad": {broken: "not an image"}}, "rounds": 1})
    assert shown(desk) == []
    nothing_left(desk)
    found = desk.next("one", None, 8)
    assert (found["message"], found["done"]) == ("every item is labelled or skipped; 1 cannot be read", True)


def test_audit_1_asks_random_checks_only(desk_with):
    from balent.project.asking import View

    desk = desk_with(audit=1)
    desk.project.compute_features()
    checks = View(desk.project).proposals(8)
    assert [p.number for p in checks] == reserve(desk)[:8]
    propose(desk, [p.number for p in checks], checks=[p.number for p in checks])
    assert all(item["audit"] and item["guess"] is None for item in desk.next("one", None, 8)["items"])


# ── overlap ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def two(desk_with):
    """Random checks are answered by two people; the first check has been answered by ann."""
    desk = desk_with(overlap=2)
    propose(desk, [*pool(desk)[:4], reserve(desk)[0], *pool(desk)[4:8], reserve(desk)[1]], checks=reserve(desk)[:2])
    label(desk, shown(desk, "ann-1", "ann", n=5), who="ann", tab="ann-1")
    return desk


def test_a_second_person_gets_a_check_that_the_first_has_answered_in_place_of_a_new_one(two):
    """Overlap asks nobody more checks than before."""
    check = reserve(two)[0]
    assert shown(two, "bob-1", "bob", n=5) == [*pool(two)[4:8], check]
    found = two.next("bob-1", "bob", 5)["items"][-1]
    assert (found["audit"], found["guess"], found["why"]) == (True, None, "random check")
    label(two, check, "dog", who="bob", tab="bob-1")
    assert shown(two, "carl-1", "carl", n=24) == [reserve(two)[1]]


def test_the_same_person_is_never_asked_the_same_check_twice(two):
    for tab in ("ann-1", "ann-2"):
        assert reserve(two)[0] not in shown(two, tab, "ann", n=24)


def test_a_check_that_a_second_person_looks_at_is_not_lent_to_a_third(two):
    assert reserve(two)[0] in shown(two, "bob-1", "bob", n=5)
    assert reserve(two)[0] not in shown(two, "carl-1", "carl", n=24)


def test_somebody_without_a_name_is_nobody_s_second(two):
    assert reserve(two)[0] not in shown(two, "tab", None, n=24)


def test_without_overlap_a_check_is_answered_once(desk):
    propose(desk, [reserve(desk)[0]], checks=reserve(desk))
    label(desk, shown(desk, "ann-1", "ann")[0], who="ann", tab="ann-1")
    assert reserve(desk)[0] not in shown(desk, "bob-1", "bob", n=24)


# ── the queue on disk ────────────────────────────────────────────────────────────────────────────────


def test_the_queue_survives_a_restart_without_what_was_answered(desk):
    propose(desk, numbers := pool(desk)[:6], guess="cat", round=3)
    label(desk, shown(desk)[0])
    again = open_again(desk)
    assert shown(again, n=8)[:5] == numbers[1:]
    assert again.next("one", None, 1)["items"][0]["guess"] == "cat"


@pytest.mark.parametrize("number", [60, 10**12, -1])
def test_a_queue_that_names_items_that_are_not_there_does_no_harm(desk, number):
    """The folder may have been restored from a backup, or made anew with other data."""
    path = desk.project.path / "queue.json"
    path.write_text(json.dumps({"round": 1, "proposals": [proposal(number), proposal(3)], "marks": {}}))
    assert shown(open_again(desk), n=1) == [3]


def test_an_item_that_was_shown_before_a_restart_is_asked_when_it_is_answered(desk):
    """The server may be killed between showing and answering: the answer is one to a question all the same."""
    propose(desk, numbers := pool(desk)[:6], guess="cat")
    shown(desk, n=4)
    propose(desk, numbers[4:], guess="dog", round=2)  # the file of the queue does not have the first four any more
    again = open_again(desk)
    label(again, numbers[0])
    assert named(again.project, "ask") == [again.project.items[numbers[0]].id]


def test_a_random_check_that_was_shown_before_a_restart_stays_one(desk):
    check = shown(desk, n=1)[0]
    desk.project.compute_features()
    again = open_again(desk)
    label(again, check)
    assert again.project.state.is_audit(check)


def test_two_projects_have_queues_of_their_own(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = desk_of(of_rows(tmp_path / "a")), desk_of(of_rows(tmp_path / "b"))
    propose(one, [3])
    assert len(open_again(other).queue) == 0
