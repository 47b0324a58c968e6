"""Several people and several tabs, in real browsers: every item is labelled once, by whom the journal says."""

from helpers.browser import running
from helpers.labelling_page import journal, named, of_texts, pool, propose

from balent import Project
from balent.apps.label.leases import SECONDS


def test_two_people_and_two_tabs_of_one_of_them_label_50_each_and_no_item_twice(tmp_path, opened):
    project = of_texts(tmp_path, [f"text number {i}" for i in range(220)])
    with running(project, ["ann", "bob"]) as server:
        propose(server.desk, pool(server.desk), guess="dog")
        one = opened(server, who="ann")
        two = opened(server, who="ann", context=one.page.context)
        bob = opened(server, who="bob")
        keys = {one: "1", two: "2", bob: "3"}
        seen = {tab: [] for tab in keys}
        for _ in range(50):
            for tab, key in keys.items():
                tab.until("document.body.dataset.state === 'ready'")
                seen[tab].append(tab.press(key))
        for tab in keys:
            tab.sent()
    answered = [number for numbers in seen.values() for number in numbers]
    assert len({*answered}) == len(answered) == 150
    assert sorted(named(project, "label")) == sorted(project.items[number].id for number in answered)
    people = {line["ids"][0]: line["who"] for line in journal(project) if line["event"] == "label"}
    assert {people[project.items[number].id] for number in seen[bob]} == {"bob"}
    assert {people[project.items[number].id] for number in seen[one] + seen[two]} == {"ann"}


def test_somebody_who_goes_idle_keeps_no_item_from_others(photos, opened):
    """Ann looks at some items and goes away. Bob labels everything; ann's late key does no harm, and she is told."""
    with running(photos, ["ann", "bob"]) as server:
        ann = opened(server, who="ann")
        left = ann.item()
        ann.stand_still()
        bob = opened(server, who="bob")
        answered = set()
        while left not in answered:
            while bob.page.query_selector("#item[data-item]") is None:
                server.desk.clock.wait(SECONDS + 1)  # ann has done nothing for so long
                bob.page.wait_for_timeout(100)
            answered.add(bob.press("2"))
            bob.sent()
        ann.press("1")
        ann.page.wait_for_selector("#toast:has-text('answered')")
    found = Project(photos.path)
    assert {found.state.last[number].who for number in answered} == {"bob"}


def test_the_items_of_a_closed_tab_are_there_for_the_next_one_at_once(photos, opened):
    """Somebody alone who closed a tab was told that other people look at the last items."""
    with running(photos) as server:
        propose(server.desk, pool(server.desk)[:2])
        server.desk.trainer.model |= {"state": "ready"}
        first = opened(server)
        items = [first.item()]
        first.page.close()
        second = opened(server)
        items.append(second.item())
        second.page.reload()
        items.append(second.item())
        second.page.goto(f"{server.home}/history")
        second.page.goto(server.home)
        items.append(second.item())
    assert {*items} <= {*pool(server.desk)[:2]}


def test_others_who_label_now_are_named(photos, opened):
    with running(photos, ["ann", "bob"]) as server:
        ann = opened(server, who="ann")
        ann.item()
        bob = opened(server, who="bob")
        bob.item()
        bob.page.wait_for_selector("#now:has-text('ann labels now')")
        assert "bob" in bob.page.inner_text("#project"), "a person sees her own name, too"


def test_somebody_alone_with_two_tabs_is_not_told_of_somebody_else(photos, opened):
    """The only person there was read "somebody labels now" and "somebody: 12 labels"."""
    with running(photos) as server:
        one = opened(server)
        one.press("1")
        two = opened(server, context=one.page.context)
        two.item()
        two.page.wait_for_selector("#now:has-text('another tab labels now')")
        for view in ("/progress", "/history"):
            two.view(view)
            assert "somebody" not in two.page.inner_text("main")


def test_who_opens_another_person_s_link_in_the_same_browser_does_not_answer_for_her(photos, opened):
    """The cookie is then bob's: what ann's tab sends is refused, kept, and sent when she opens her link again."""
    with running(photos, ["ann", "bob"]) as server:
        ann = opened(server, who="ann")
        ann.item()
        ann.stand_still()  # her page would notice by itself, and become bob's
        bob = opened(server, who="bob", context=ann.page.context)
        bob.item()
        mine = ann.press("1")
        ann.until("document.body.dataset.state === 'locked'")
        other = bob.press("2")
        bob.sent()
        assert named(photos, "label") == [photos.items[other].id]
        ann.page.goto(server.links["ann"])
        ann.item()
        ann.sent()
    last = Project(photos.path).state.last
    assert {number: last[number].who for number in (mine, other)} == {mine: "ann", other: "bob"}


def test_many_tabs_of_one_person_show_different_items(tmp_path, opened):
    project = of_texts(tmp_path, [f"text number {i}" for i in range(200)])
    with running(project) as server:
        propose(server.desk, pool(server.desk))
        first = opened(server)
        tabs = [first, *(opened(server, context=first.page.context) for _ in range(9))]
        assert len({tab.item() for tab in tabs}) == 10
