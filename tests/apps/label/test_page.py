"""The labelling page in a real browser: what a person does, and what is on disk then."""

import contextlib
import http.server
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
from helpers.browser import NARROW, WIDE, Tab, running
from helpers.labelling import pictures
from helpers.labelling_page import journal, named, of_rows, of_table, of_texts, pool, proposal, propose, reserve

from balent import Project

CLASSES = ["cat", "dog", "bird"]
VIEWS = ("/", "/grid", "/history", "/progress", "/classes", "/resolve")
HOSTILE = "<img src=x onerror=document.title='owned'>"
TURNED = r"""(() => {
    const open = (text) => /^[^\u2068]*\u202e/.test(text);
    const shown = [...document.querySelectorAll("body *")].filter((node) => !node.closest("bdi, [dir=auto], .unseen"));
    const texts = shown.flatMap(({ childNodes }) => [...childNodes])
        .filter((node) => node instanceof Text && open(node.data));
    const named = [...document.querySelectorAll("[title], [aria-label], [alt]")]
        .filter((node) => ["title", "aria-label", "alt"].some((name) => open(node.getAttribute(name) ?? "")));
    return [...texts.map((node) => node.parentElement), ...named].map((node) => node.outerHTML) })()"""


# ── one key per label ────────────────────────────────────────────────────────────────────────────


def test_one_key_labels_and_shows_the_next_item(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        first = tab.press("2")
        assert tab.item() != first
        tab.sent()
    assert Project(photos.path).state.labels() == {first: 1}


def test_every_item_is_shown_once_however_fast_one_types(photos, opened):
    """An answer in flight was served again in the prototype."""
    with running(photos) as server:
        tab = opened(server)
        tab.page.route("**/api/event", lambda route: (time.sleep(0.15), route.continue_()))
        seen = [tab.press("1") for _ in range(6)]
        tab.sent()
    assert len(set(seen)) == len(seen)
    assert sorted(named(photos, "label")) == sorted(photos.items[n].id for n in seen)


def test_space_accepts_the_guess(photos, opened):
    with running(photos) as server:
        propose(server.desk, pool(server.desk), guess="dog")
        tab = opened(server)
        item = tab.press("Space")
        tab.sent()
    assert Project(photos.path).state.labels() == {item: 1}


def test_a_random_check_shows_no_guess_and_space_does_nothing(photos, opened):
    with running(photos) as server:
        propose(server.desk, reserve(server.desk)[:3], checks=reserve(server.desk), guess="dog")
        tab = opened(server)
        item = tab.press("Space")
        tab.page.wait_for_timeout(200)
        assert tab.item() == item
        assert "%" not in tab.page.inner_text("main")
    assert named(photos, "label") == []


def test_undo_over_several_steps_shows_the_items_again_in_reverse_order(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        answered = [tab.press("1"), tab.press("2"), tab.press("s")]
        undone = []
        for key in ("u", "Backspace", "u"):
            tab.page.keyboard.press(key)
            tab.until(f"document.querySelector('#item').dataset.item === '{answered[2 - len(undone)]}'")
            undone.append(tab.item())
        tab.sent()
    assert undone == answered[::-1]
    found = Project(photos.path)
    assert found.state.labels() == {}
    assert {*found.state.pending} == {*answered}, "undo, then close: the items are pending again"


def test_undo_works_after_a_reload(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        item = tab.press("1")
        tab.sent()
        tab.page.reload()
        tab.item()
        tab.page.keyboard.press("u")
        tab.until(f"document.querySelector('#item').dataset.item === '{item}'")
        tab.sent()
    assert Project(photos.path).state.labels() == {}


def test_an_item_that_is_undone_before_the_page_is_closed_is_pending_and_comes_first_next_time(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.press("1")
        second = tab.press("2")
        tab.page.keyboard.press("u")
        tab.sent()
        tab.page.close()
        state = Project(photos.path).state
        assert [*state.pending] == [second]
        assert second not in state.labels()
        end = time.monotonic() + 60
        while server.desk.leases.tabs and time.monotonic() < end:  # the page says goodbye when it is closed
            time.sleep(0.02)
        opened(server).item()  # the image that is decoded first is shown first
        (tab,) = server.desk.leases.tabs.values()
        assert next(iter(tab.items)) == second


def test_skip_and_flag(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        flagged = tab.press("f")
        assert tab.item() == flagged, "a flagged item still needs its label"
        skipped = tab.press("s")
        tab.sent()
    found = Project(photos.path)
    assert [*found.state.flagged] == [flagged]
    assert [*found.state.skipped] == [skipped] == [flagged]


def test_a_new_class_is_added_without_the_mouse(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.item()
        tab.page.keyboard.press("n")
        tab.page.keyboard.type("fish")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("button.class[data-class=fish]")
        item = tab.press("4")
        tab.sent()
    found = Project(photos.path)
    assert found.state.classes.name(found.state.last[item].label) == "fish"


def test_without_classes_the_page_asks_for_them_first(tmp_path, opened):
    """`balent label tickets.csv --text body` is all that a newcomer types."""
    project = of_texts(tmp_path, [f"text {i}" for i in range(20)], classes=[])
    with running(project) as server:
        tab = opened(server)
        tab.item()
        assert "Name at least two classes" in tab.page.inner_text("main")
        tab.page.keyboard.type("billing, delivery,billing")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector(".problem:has-text('exists already')")
        assert tab.page.input_value("input[name=name]") == "billing", "what was refused stays"
        tab.page.keyboard.press("Escape")
        item = tab.press("2")
        tab.sent()
    found = Project(project.path)
    assert [*found.state.classes.names()] == ["billing", "delivery"]
    assert found.state.labels() == {item: 1}


def test_one_class_is_said_to_be_too_few(tmp_path, opened):
    pictures(tmp_path / "photos", [f"{i}.png" for i in range(10)])
    with running(Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=["cat"])) as server:
        tab = opened(server)
        tab.page.wait_for_selector("text=A model needs at least two classes")
        tab.page.keyboard.press("n")
        tab.page.keyboard.type("dog")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("button.class[data-class=dog]")
        assert not tab.page.is_visible("#no-classes")


def test_a_class_without_a_key_is_found_by_its_name(tmp_path, opened):
    """There are 31 keys: more classes than that were out of reach without a mouse."""
    names = [f"class {i}" for i in range(40)] + ["lost card", "lost phone"]
    project = of_texts(tmp_path, [f"text {i}" for i in range(20)], classes=names)
    with running(project) as server:
        tab = opened(server)
        item = tab.item()
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("PHO los")
        assert [node.inner_text() for node in tab.page.query_selector_all("button.class:visible")] == ["lost phone"]
        tab.page.keyboard.press("Enter")
        tab.sent()
        assert tab.item() != item
        assert len(tab.page.query_selector_all("button.class:visible")) == len(names)
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("no such class")
        tab.page.keyboard.press("Enter")
        tab.page.keyboard.press("Escape")
        second = tab.press("2")
        tab.sent()
    assert Project(project.path).state.labels() == {item: names.index("lost phone"), second: 1}


def test_held_keys_and_keys_with_control_do_not_label(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        item = tab.item()
        tab.page.keyboard.press("Control+1")
        tab.page.keyboard.down("1")
        for _ in range(5):
            tab.page.keyboard.down("1")  # repeats
        tab.page.keyboard.up("1")
        tab.sent()
    assert [*Project(photos.path).state.last] == [item]


# ── nothing is lost ──────────────────────────────────────────────────────────────────────────────


def test_answers_are_kept_while_the_server_is_away(photos, opened):
    """The page goes on without a reload; every answer is in the journal exactly once."""
    with running(photos) as server:
        tab = opened(server)
        seen = [tab.press("1")]
        tab.sent()
        server.stop()
        seen += [tab.press("2") for _ in range(3)]
        tab.until("document.body.dataset.unsent === '3'")
        server.start()
        tab.sent()
        tab.until("document.body.dataset.state === 'ready'")
        seen.append(tab.press("3"))
        tab.sent()
    assert named(photos, "label") == [photos.items[n].id for n in seen]
    keys = [line["key"] for line in journal(photos)]
    assert len(set(keys)) == len(keys)


def test_unsent_answers_survive_a_reload(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.page.route("**/api/event", lambda route: route.abort())
        seen = [tab.press("1"), tab.press("2")]
        tab.page.unroute("**/api/event")
        tab.page.reload()
        tab.item()
        tab.sent()
    assert named(photos, "label") == [photos.items[n].id for n in seen]


@pytest.mark.slow
def test_a_closed_lid_loses_nothing(photos, opened):
    """The connection is gone for a minute: leases run out, the answers of before still count."""
    with running(photos, clock=time.monotonic, lease=30.0) as server:
        tab = opened(server)
        tab.item()
        tab.page.context.set_offline(True)
        seen = [tab.press("1") for _ in range(4)]
        tab.page.wait_for_timeout(60_000)
        tab.page.context.set_offline(False)
        tab.sent()
        seen.append(tab.press("2"))
        tab.sent()
    assert named(photos, "label") == [photos.items[n].id for n in seen]


def test_an_answer_of_somebody_else_is_reported_and_the_page_goes_on(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        item = tab.item()
        Project(photos.path).tell({photos.items[item].id: "bird"}, who="bob")
        tab.press("1")
        tab.page.wait_for_selector("#toast:has-text('answered')")
        assert tab.item() != item
    assert Project(photos.path).state.labels() == {item: 2}


def test_two_tabs_of_one_person_never_show_the_same_item(photos, opened):
    with running(photos) as server:
        propose(server.desk, pool(server.desk), guess="dog")
        one = opened(server)
        other = opened(server, context=one.page.context)
        seen = [tab.press("1") for _ in range(4) for tab in (one, other)]
        one.sent()
        other.sent()
    assert len(set(seen)) == 8
    assert len(named(photos, "label")) == 8


def test_without_its_cookie_the_page_says_what_to_do(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.item()
        tab.page.context.clear_cookies()
        tab.page.keyboard.press("1")
        tab.until("document.body.dataset.state === 'locked'")
        assert "link" in tab.page.inner_text("body")
        tab.page.goto(server.links[None])
        tab.item()
        tab.sent()
    assert len(named(photos, "label")) == 1, "the answer was kept"


# ── other views ──────────────────────────────────────────────────────────────────────────────────


def test_the_grid_confirms_all_but_the_wrong_ones(photos, opened, monkeypatch):
    with running(photos) as server:
        some = pool(server.desk)[:6]
        server.desk.trainer.model["state"] = "ready"
        lines = [
            {"number": n, "score": None, "audit": False, "guess": "cat", "probability": 0.9, "why": "it is"}
            for n in some
        ]
        monkeypatch.setattr(server.desk.trainer, "ask", lambda _: {"proposals": lines, "more": 0, "trained": True})
        tab = opened(server, "/grid")
        tab.page.wait_for_selector("#chips button")
        tab.page.keyboard.press("1")
        tab.page.wait_for_selector(f"button.tile[data-item='{some[5]}']")
        tab.page.click(f"button.tile[data-item='{some[2]}']")
        tab.page.keyboard.press("Enter")
        tab.until("document.body.dataset.unsent === '0' && !document.querySelector('button.tile[aria-pressed=true]')")
        tab.sent()
    assert Project(photos.path).state.labels() == {n: 0 for n in some if n != some[2]}


def test_the_grid_confirms_nothing_that_was_not_on_the_screen(photos, opened, monkeypatch):
    """The first press of enter scrolls on, the last one confirms."""
    with running(photos) as server:
        some = pool(server.desk)[:20]
        server.desk.trainer.model["state"] = "ready"
        lines = [proposal(number, guess="cat") for number in some]
        monkeypatch.setattr(server.desk.trainer, "ask", lambda _: {"proposals": lines, "more": 0, "trained": True})
        tab = opened(server, "/grid", viewport={"width": 390, "height": 500}, reduced_motion="reduce")
        tab.page.wait_for_selector("button.tile")
        presses = 0
        while not named(photos, "label") and presses < 1000:  # one before the page has scrolled does nothing
            tab.page.keyboard.press("Enter")
            tab.page.wait_for_timeout(50)
            tab.sent()
            presses += 1
    assert presses > 1
    assert {*Project(photos.path).state.labels()} == {*some}


def test_the_grid_comes_by_itself_when_the_model_is_ready(photos, opened, monkeypatch):
    with running(photos) as server:
        tab = opened(server, "/grid")
        tab.page.wait_for_selector(".sentence:has-text('The model is not ready yet')")
        lines = [proposal(number, guess="cat") for number in pool(server.desk)[:4]]
        monkeypatch.setattr(server.desk.trainer, "ask", lambda _: {"proposals": lines, "more": 0, "trained": True})
        server.desk.trainer.model["state"] = "ready"
        tab.page.wait_for_selector("button.tile")


def test_history_changes_a_label(photos, opened):
    photos.tell({"03.png": "cat"}, who="ann")
    number = photos.id_number("03.png")
    with running(photos) as server:
        tab = opened(server, "/history")
        row = tab.page.wait_for_selector(f"#history [data-item='{number}']")
        assert "cat" in row.inner_text()
        assert "ann" in row.inner_text()
        chooser = row.query_selector("select")
        chooser.select_option("dog")
        tab.sent()
    found = Project(photos.path)
    assert found.state.labels() == {number: 1}
    assert not found.state.asked, "a correction answers no question"


def test_classes_are_renamed(photos, opened):
    with running(photos) as server:
        tab = opened(server, "/classes")
        box = tab.page.wait_for_selector("input[value=cat], input >> nth=0")
        names = [e for e in tab.page.query_selector_all("input") if e.input_value() == "cat"]
        assert box is not None
        assert names
        names[0].fill("tiger")
        names[0].press("Enter")
        tab.page.wait_for_function("fetch('/api/status').then((r) => r.json()).then((s) => 'tiger' in s.classes)")
    assert "tiger" in Project(photos.path).state.classes


def test_criteria_are_written_in_the_view_of_classes_and_seen_while_labelling(photos, opened):
    with running(photos) as server:
        tab = opened(server, "/classes")
        tab.page.fill("li:nth-child(2) textarea", "barks,\n  and wags")
        tab.page.press("li:nth-child(2) textarea", "Enter")
        tab.page.wait_for_function("fetch('/api/status').then((r) => r.json()).then((s) => s.looks[1].note)")
        tab.page.goto(server.home)
        tab.item()
        assert tab.page.inner_text("button.class[data-class=dog] small") == "barks, and wags"


def test_disagreements_are_resolved(photos, opened):
    photos.change(overlap=2)
    with running(photos, ["ann", "bob"]) as server:
        first = opened(server, who="ann")
        item = first.press("1")
        first.sent()
        second = opened(server, who="bob")
        while second.item() != item:  # of the images that wait, the one that is decoded first is shown first
            second.press("2")
        second.press("2")
        second.sent()
        assert [*Project(photos.path).state.disagreements()] == [item]
        third = opened(server, "/resolve", context=first.page.context, who="ann")
        third.item()
        third.page.keyboard.press("1")
        third.page.wait_for_selector("text=There are no disagreements")
        third.page.keyboard.press("u")
        assert third.item() == item
        assert "ann said cat" in third.page.inner_text("#why")
        third.page.keyboard.press("2")
        third.sent()
    found = Project(photos.path)
    assert found.state.disagreements() == {}
    assert found.state.labels()[item] == 1


def test_texts_mark_the_words_that_weigh_most(tmp_path, opened):
    texts = ["one 😀 refund please", *(f"text {i}" for i in range(20))]
    project = of_texts(tmp_path, texts)
    with running(project) as server:
        number = next(n for n in project.items.present() if project.kind.content(project.items[n].id) == texts[0])
        propose(server.desk, [number], guess="cat")
        server.desk.queue.marks[number] = [[6, 12]]
        tab = opened(server)
        tab.item()
        assert tab.page.inner_text("mark") == "refund", "positions count characters, not halves of them"


def test_rows_of_a_table_are_shown(tmp_path, opened):
    project = of_table(tmp_path, [{"age": i, "city": f"town {i}"} for i in range(20)])
    with running(project) as server:
        tab = opened(server)
        item = tab.item()
        row = project.kind.content(project.items[item].id)
        assert row["city"] in tab.page.inner_text("#item")
        assert "age" in tab.page.inner_text("#item")


def test_features_that_cannot_be_shown_are_named(tmp_path, opened):
    project = of_rows(tmp_path)
    with running(project) as server:
        tab = opened(server)
        assert project.items[tab.item()].id in tab.page.inner_text("main")


# ── wide and narrow, light and dark, seen and heard ──────────────────────────────────────────────


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_view_fits_its_window_without_errors_and_without_requests_elsewhere(photos, browser, size):
    """With the page's own policy in force: anything that it forbids would be an error on the console."""
    photos.tell({f"{i:02d}.png": CLASSES[i % 3] for i in range(6)})
    with running(photos) as server:
        context = browser.new_context(viewport=size)
        tab = Tab(context.new_page())
        tab.page.goto(server.links[None])
        for view in VIEWS:
            tab.view(view)
            tab.page.wait_for_load_state("networkidle")
            assert tab.problems == [], view
            assert [url for url in tab.requests if not url.startswith(server.home)] == [], view
            assert tab.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
        context.close()


def test_on_a_phone_classes_can_be_touched_and_stay_on_the_screen(tmp_path, opened):
    pictures(tmp_path / "photos", [f"{i:02d}.png" for i in range(10)])
    project = Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=[f"class {i}" for i in range(10)])
    with running(project) as server:
        tab = opened(server, viewport=NARROW, has_touch=True)
        tab.item()
        for button in tab.page.query_selector_all("button.class"):
            box = button.bounding_box()
            assert box["height"] >= 44
            assert box["y"] + box["height"] <= NARROW["height"]


def test_names_cannot_inject_markup(tmp_path, opened):
    pictures(tmp_path / "photos", [f"{HOSTILE.replace('/', '')}{i}.png" for i in range(6)])
    project = Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=[HOSTILE, "a\u202eb"])
    with running(project, [HOSTILE]) as server:
        tab = opened(server, who=HOSTILE)
        tab.press("1")
        tab.sent()
        for view in VIEWS:
            tab.view(view)
            tab.page.wait_for_load_state("networkidle")
            assert tab.page.title() != "owned"
            assert tab.page.query_selector("img[src=x]") is None


def test_names_cannot_turn_the_direction_of_what_surrounds_them(tmp_path, opened, monkeypatch):
    """Each name with a bidi mark is isolated; sentences of the server show the mark."""
    pictures(tmp_path / "photos", [f"\u202egnp{i}.png" for i in range(12)])
    project = Project.create(tmp_path / "p\u202e.balent", tmp_path / "photos", classes=["a\u202eb", "dog"], overlap=2)
    with running(project, ["ann", "bob"]) as server:
        server.desk.trainer.model |= {"note": "\u202e is new"}
        lines = [proposal(number, guess="a\u202eb") for number in pool(server.desk)[:3]]
        monkeypatch.setattr(server.desk.trainer, "ask", lambda _: {"proposals": lines, "more": 0, "trained": True})
        ann, bob = opened(server, who="ann"), opened(server, who="bob")
        check = ann.press("1")
        ann.sent()
        while bob.item() != check:
            bob.press("2")
        bob.press("2")
        bob.sent()
        propose(server.desk, pool(server.desk)[3:], guess="a\u202eb")
        server.desk.trainer.model |= {"state": "ready"}
        assert [*Project(project.path).state.disagreements()] == [check]
        for view in VIEWS:
            ann.view(view)
            ann.page.wait_for_load_state("networkidle")
            assert "\u202e" in ann.page.inner_html("main"), view
            assert ann.page.evaluate(TURNED) == [], view
        ann.page.goto(server.home)
        item = ann.item()
        Project(project.path).tell({project.items[item].id: "dog"}, who="bob", resolve=True)
        ann.press("1")
        ann.page.wait_for_selector("#toast:has-text('\ufffdgnp')")


def test_a_screen_reader_finds_names_for_everything(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.item()
        for button in tab.page.query_selector_all("button"):
            if button.is_visible():
                assert (button.get_attribute("aria-label") or button.inner_text()).strip()
        assert tab.page.query_selector("main")
        assert tab.page.query_selector("nav")
        assert tab.page.query_selector("[aria-live]") is not None
        assert tab.page.get_attribute("#item img", "alt") is not None
        assert tab.page.get_attribute("html", "lang") == "en"


def test_a_file_that_was_removed_meanwhile_is_said_to_be_gone_and_can_be_skipped(photos, opened):
    with running(photos) as server:
        gone = reserve(server.desk)[0]
        for number in reserve(server.desk):
            (photos.path.parent / "photos" / photos.items[number].id).unlink()
        propose(server.desk, [gone])
        tab = opened(server)
        tab.page.wait_for_selector("#item:has-text('This image cannot be read: it is not there any more; skip it')")
        skipped = tab.press("s")
        tab.sent()
    assert skipped in Project(photos.path).state.skipped


def test_small_pictures_are_enlarged_without_blur(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.item()
        look = tab.page.evaluate("getComputedStyle(document.querySelector('#item img')).imageRendering")
        assert look == "pixelated"
        assert tab.page.query_selector("#item img").bounding_box()["width"] > 200


SCALE = "new DOMMatrix(getComputedStyle(document.querySelector('#item img')).transform).a"


def test_z_and_a_double_click_zoom_the_image_in_full_and_esc_or_the_next_item_ends_it(tmp_path, opened):
    pictures(tmp_path / "photos", [f"{i}.png" for i in range(12)], size=1500)
    project = Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=CLASSES)
    with running(project) as server:
        propose(server.desk, pool(server.desk))
        tab = opened(server)
        tab.item()
        tab.page.keyboard.press("z")
        assert tab.page.evaluate(SCALE) > 1
        tab.until("document.querySelector('#item img').naturalWidth === 1500")
        assert [url for url in tab.requests if "size=full" in url]
        tab.page.keyboard.press("Escape")
        assert tab.page.evaluate(SCALE) == 1
        tab.page.dblclick("#item")
        assert tab.page.evaluate(SCALE) > 1
        tab.press("1")
        tab.item()
        assert tab.page.evaluate(SCALE) == 1


def test_a_pinch_zooms_the_image_and_labels_nothing(photos, opened):
    with running(photos) as server:
        propose(server.desk, pool(server.desk))
        tab = opened(server, viewport=NARROW, has_touch=True, is_mobile=True)
        item = tab.item()
        fingers = tab.page.context.new_cdp_session(tab.page)
        for spread in (40, 60, 90, 120):
            points = [{"x": 195 - spread, "y": 300, "id": 0}, {"x": 195 + spread, "y": 300, "id": 1}]
            kind = "touchStart" if spread == 40 else "touchMove"
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        assert tab.page.evaluate(SCALE) == pytest.approx(3, rel=0.1), "fingers three times as far apart"
        assert tab.page.evaluate("visualViewport.scale") == 1, "the classes stay where they are"
        assert tab.item() == item
    assert named(photos, "label") == []


def test_a_model_that_has_stopped_is_said_in_every_view_and_labelling_goes_on(photos, opened):
    with running(photos) as server:
        tab = opened(server)
        tab.item()
        server.desk.worker_stopped("the model file is broken. Labelling goes on with random checks")
        tab.press("1")
        for view in VIEWS:
            tab.page.goto(server.home + view)
            tab.page.wait_for_selector("#banner:has-text('the model file is broken')")
        tab.page.goto(server.home)
        tab.press("2")
        tab.sent()
    assert len(named(photos, "label")) == 2


def test_a_link_from_another_site_opens_the_page(photos, browser):
    """A cookie for this site only is not sent when a mail or another site links here: the page loads itself again."""
    with running(photos) as server:
        link = server.links[None]

        class Mail(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(f'<a href="{link}">label</a>'.encode())

            def log_message(self, *_):
                pass

        mail = http.server.HTTPServer(("127.0.0.1", 0), Mail)
        threading.Thread(target=mail.serve_forever, daemon=True).start()
        tab = Tab(browser.new_page())
        tab.page.goto(f"http://localhost:{mail.server_port}/")
        tab.page.click("a")
        tab.item()
        assert tab.page.url == f"{server.home}/", "neither the token nor the second try is left in the address"
        mail.shutdown()
        mail.server_close()
        tab.page.close()


# ── kill -9 ──────────────────────────────────────────────────────────────────────────────────────


def started(project, port):
    """`balent label` in a process of its own."""
    command = [sys.executable, "-c", "from balent.apps.cli import app; app()", "label", str(project.path)]
    words = ["--no-browser", "--port", str(port)]
    server = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return server, re.search(r"http\S+", server.stdout.readline())[0]


def worker_of(server):
    """The process id of the worker."""
    children = Path(f"/proc/{server.pid}/task").glob("*/children")
    return int(" ".join(path.read_text() for path in children).split()[0])


def test_kill_9_of_server_and_worker_loses_nothing_and_the_page_goes_on(tmp_path, opened):
    """Every acknowledged label is in the journal exactly once; the page is never loaded again."""
    project = of_texts(tmp_path, [f"{CLASSES[i % 3]} says {i} words of {i % 7}" for i in range(90)])
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server, link = started(project, port)
    try:
        tab = opened(types.SimpleNamespace(links={None: link}))
        tab.until("fetch('/api/status').then((r) => r.json()).then((s) => s.model.state === 'ready')")
        seen = [tab.press("1") for _ in range(5)]
        server.kill()
        server.wait()
        server.stdout.close()
        seen += [tab.press("2") for _ in range(2)]
        server, _ = started(project, port)
        tab.sent()
        os.kill(worker_of(server), signal.SIGKILL)
        for _ in range(13):
            tab.until("document.body.dataset.state === 'ready'")
            seen.append(tab.press("3"))
        tab.sent()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)
        server.stdout.close()
    assert len(set(seen)) == 20
    assert named(project, "label") == [project.items[n].id for n in seen]
