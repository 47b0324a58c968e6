"""Leases: items of a tab are its own while somebody is there, and go to others after that."""

from helpers.labelling_page import Clock

from balent.apps.label.leases import Leases
from balent.project.questions import Proposal


def lent(leases, name, who, *numbers):
    leases.renew(name, who).items |= {number: Proposal(number) for number in numbers}


def test_items_are_held_until_nobody_has_done_anything_for_the_length_of_a_lease():
    leases = Leases(120.0, clock := Clock())
    lent(leases, "one", "ann", 1, 2)
    clock.wait(120)
    assert leases.expired() == []
    assert leases.held() == {1, 2}
    clock.wait(0.1)
    assert [proposal.number for proposal in leases.expired()] == [1, 2]
    assert leases.held() == set()
    assert leases.expired() == []


def test_doing_something_begins_the_lease_anew():
    leases = Leases(120.0, clock := Clock())
    lent(leases, "one", "ann", 1)
    clock.wait(100)
    leases.renew("one", "ann")
    clock.wait(100)
    assert leases.expired() == []


def test_leases_are_per_tab_because_a_person_may_have_two():
    leases = Leases(120.0, clock := Clock())
    lent(leases, "one", "ann", 1)
    clock.wait(100)
    lent(leases, "two", "ann", 2)
    clock.wait(50)
    assert [proposal.number for proposal in leases.expired()] == [1]
    assert leases.held() == {2}


def test_items_are_dropped_from_one_tab_or_from_all():
    leases = Leases(120.0, Clock())
    lent(leases, "one", "ann", 1, 2)
    lent(leases, "two", "bob", 2, 3)
    leases.drop([2], "one")
    assert leases.holders(2) == {"bob"}
    leases.drop([2, 3])
    assert leases.held() == {1}
    leases.drop([1], "unknown")
    assert leases.held() == {1}


def test_a_tab_that_is_closed_gives_its_items_back_at_once():
    leases = Leases(60.0, Clock())
    leases.renew("one", None, 1000).items = {3: Proposal(3)}
    assert leases.left("one", 1000) == [Proposal(3)]
    assert leases.held() == set()
    assert leases.left("one", 1000) == leases.left("never seen", 1000) == []


def test_the_farewell_of_a_page_that_was_loaded_again_changes_nothing():
    """It may arrive after the first request of the page that follows it in the same tab."""
    leases = Leases(60.0, Clock())
    leases.renew("one", None, 1000)
    leases.renew("one", None, 2000).items = {3: Proposal(3)}
    assert leases.left("one", 1000) == []
    assert leases.held() == {3}


def test_others_are_people_at_other_tabs():
    """A second tab of the same person is nobody else; without names nobody can tell."""
    leases = Leases(120.0, clock := Clock())
    for name, who in (("one", "ann"), ("two", "ann"), ("three", "bob"), ("four", None)):
        leases.renew(name, who)
    clock.wait(3)
    assert leases.others("one", "ann") == [("bob", 3.0), (None, 3.0)]
    assert leases.others("four", None) == [("ann", 3.0), ("bob", 3.0)]


def test_of_a_person_with_two_tabs_the_last_thing_done_counts():
    """Bob labels in one tab while another one lies open: he is there now."""
    leases = Leases(120.0, clock := Clock())
    leases.renew("busy", "bob")
    leases.renew("idle", "bob")
    clock.wait(100)
    leases.renew("busy", "bob")
    assert leases.others("ann's", "ann") == [("bob", 0.0)]
