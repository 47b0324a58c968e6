"""How the labelling page looks and sounds: colours, sizes, places, names for those who hear it."""

import re
from pathlib import Path

import pytest
from helpers.browser import NARROW, WIDE, running
from helpers.labelling import pictures
from helpers.labelling_page import of_table, of_texts, pool, propose, reserve

from balent import Project
from balent.apps import label

STYLE = (Path(label.__file__).parent / "static/style.css").read_text(encoding="utf-8")
PHONE = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
VIEWS = ("/", "/grid", "/history", "/progress", "/classes", "/resolve")
TOUCHED = """[...document.querySelectorAll("button, a[href]:not(.jump), input, select, textarea")]
    .filter((node) => node.checkVisibility()).map((node) => [node, node.getBoundingClientRect()])
    .map(([node, { width, height }]) => [node.outerHTML, width, height])"""
NAMES = """[...document.querySelectorAll("button, a, input, select, textarea")].map((node) =>
    [node.outerHTML, node.getAttribute("aria-label"), node.innerText || node.textContent, node.tagName === "SELECT"])"""
FOCUS = """(({ dataset, id }, { outlineStyle }) => [dataset.class ?? id, outlineStyle])(
    document.activeElement, getComputedStyle(document.activeElement))"""
RIGHTMOST = """(what) => Math.max(0, ...[...document.querySelectorAll(what)].filter((node) => node.checkVisibility())
    .map((node) => node.getBoundingClientRect().right))"""
GUESS = """(name) => { for (const node of document.querySelectorAll(".class")) {
    node.classList.toggle("guess", node.dataset.class === name);
    node.querySelector(".share").textContent = node.dataset.class === name ? "> 99 %" : "" } }"""
LINES = """(() => { const range = document.createRange();
    range.selectNodeContents(document.querySelector(".guess bdi"));
    return [document.querySelector(".guess .share").getBoundingClientRect(), ...range.getClientRects()]
        .map(({ left, right, top, bottom }) => ({ left, right, top, bottom })) })()"""
MANY = [f"class number {i}" for i in range(45)]


# ── colours ──────────────────────────────────────────────────────────────────────────────────────────


def colours(dark):
    """Colours by name, of the light or of the dark theme."""
    light, dark_ones = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", light + (dark_ones if dark else "")))


def luminance(colour):
    """WCAG 2.1, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *(("ink", ground) for ground in ("paper", "card", "tint", "pressed", "mark")),
        *(("soft", ground) for ground in ("paper", "card", "sunken", "warn-tint")),
        *(("colour", ground) for ground in ("paper", "card", "tint")),
        *(("warn", ground) for ground in ("paper", "card", "warn-tint")),
        ("on-colour", "colour"),
    ],
)
def test_text_can_be_read(dark, text, ground):
    """WCAG asks for a contrast of 4.5."""
    found = colours(dark)
    bright, deep = sorted((luminance(found[text]), luminance(found[ground])), reverse=True)
    assert (bright + 0.05) / (deep + 0.05) >= 4.5


# ── places ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [{"viewport": WIDE}, PHONE], ids=["wide", "phone"])
def test_nothing_moves_from_one_item_to_the_next(photos, opened, options):
    """Whatever is guessed, and while the model starts or the connection is lost: fingers and eyes find their place."""
    photos.describe_class("cat", note="whiskers, and a rather long list of criteria that goes on for a while")
    with running(photos) as server:
        checks, others = reserve(server.desk)[:2], pool(server.desk)[:6]
        propose(server.desk, [checks[0], *others[:3], checks[1], *others[3:]], checks=checks, guess="cat")
        server.desk.trainer.model |= {"state": "starting"}
        tab = opened(server, **options)
        places = []
        for step in range(7):
            tab.item()
            tab.page.wait_for_timeout(50)
            places.append([node.bounding_box() for node in tab.page.query_selector_all("#item, button.class, #skip")])
            if step == 2:
                server.desk.trainer.model |= {"state": "ready"}
            if step == 4:
                tab.page.wait_for_load_state("networkidle")  # the images of the next steps are here
                tab.page.context.set_offline(True)
            tab.page.keyboard.press("2")
        tab.page.context.set_offline(False)
    assert all(place == places[0] for place in places)


@pytest.mark.parametrize("width", [390, 320])
def test_on_a_phone_everything_can_be_touched_and_nothing_is_cut_off(photos, opened, width):
    photos.change(overlap=2)
    photos.tell({f"{i:02d}.png": ("cat", "dog", "bird")[i % 3] for i in range(30)}, who="ann")
    photos.flag(["03.png"], "ann")
    photos.describe_class("cat", note="purrs")
    for name in MANY:  # some have no key: there is a button to find them
        photos.add_class(name)
    with running(photos, ["ann", "bob"]) as server:
        tab = opened(server, who="ann", **PHONE | {"viewport": {"width": width, "height": 640}})
        for view in VIEWS:
            tab.view(view)
            assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert tab.page.evaluate(RIGHTMOST, "#actions > *") <= width, view
            for what, wide, high in tab.page.evaluate(TOUCHED):
                assert high >= 44, (view, what)
                assert wide >= (44 if width == NARROW["width"] else 28), (view, what)


@pytest.mark.parametrize("state", ["features", "ready"])
@pytest.mark.parametrize("width", [390, 641, 761, 901, 1101])
def test_nothing_of_the_header_is_cut_off(photos, opened, width, state):
    with running(photos, ["ann", "bob"]) as server:
        propose(server.desk, pool(server.desk))
        server.desk.trainer.model |= {"state": state, "done": 1234, "of": 12345}
        opened(server, who="bob").item()
        tab = opened(server, who="ann", viewport={"width": width, "height": 800})
        tab.item()
        tab.page.evaluate("document.querySelector('[data-link=resolve]').hidden = false")
        assert tab.page.evaluate(RIGHTMOST, "header > *") <= width


def test_on_a_phone_the_probability_does_not_lie_over_the_name(photos, opened):
    with running(photos) as server:
        propose(server.desk, pool(server.desk), guess="dog")
        tab = opened(server, **PHONE)
        tab.item()
        name, share = (tab.page.query_selector(f".guess {part}").bounding_box() for part in ("bdi", ".share"))
        assert share["y"] + share["height"] <= name["y"] + 4 or share["x"] >= name["x"] + name["width"]


def test_on_a_phone_a_long_name_leaves_room_for_the_probability(tmp_path, opened):
    """The name "class 0 long words" ran into "59 %"."""
    names = ["class 0 long words here", "two lines of a name that go on", "Donaudampfschifffahrt", "b"]
    pictures(tmp_path / "photos", [f"{i}.png" for i in range(30)])
    project = Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=names)
    with running(project) as server:
        propose(server.desk, pool(server.desk), guess=names[0])
        tab = opened(server, **PHONE)
        tab.item()
        for name in names:
            tab.page.evaluate(GUESS, name)
            share, *lines = tab.page.evaluate(LINES)
            apart = [line["right"] <= share["left"] or line["top"] >= share["bottom"] - 4 for line in lines]
            assert all(apart), (name, share, lines)


def test_criteria_are_not_cut_where_there_is_room(tmp_path, opened):
    note = "money went wrong, or a question about an invoice, a refund, a card or a receipt"
    project = of_texts(tmp_path, [f"text {i}" for i in range(30)], classes=["billing", "delivery", "login"])
    project.describe_class("billing", note=note)
    with running(project) as server:
        wide, phone = opened(server), opened(server, **PHONE)
        phone.item()
        phone.page.tap("#criteria")
        for tab in (wide, phone):
            tab.item()
            small = tab.page.query_selector("button.class small")
            assert small.is_visible()
            assert small.evaluate("node => node.scrollHeight <= node.clientHeight + 1")


def test_a_guess_is_seen_also_among_many_classes(tmp_path, opened):
    project = of_texts(tmp_path, [f"text {i}" for i in range(30)], classes=MANY)
    with running(project) as server:
        propose(server.desk, pool(server.desk), guess=MANY[-1])
        tab = opened(server)
        tab.item()
        bar, guess = (tab.page.query_selector(what).bounding_box() for what in ("#classes", ".guess"))
        assert bar["y"] <= guess["y"]
        assert guess["y"] + guess["height"] <= bar["y"] + bar["height"] + 1
        assert MANY[-1] in tab.page.inner_text("#accept"), "what space would accept is named"


def test_help_names_what_a_finger_can_do(photos, opened):
    with running(photos) as server:
        tab = opened(server, **PHONE)
        tab.item()
        tab.page.tap("#keys")
        said = tab.page.inner_text("#help")
        assert "pinch" in said
        assert "space" not in said
        assert tab.page.query_selector("#help kbd:visible") is None


# ── seen and heard ───────────────────────────────────────────────────────────────────────────────────


def test_who_hears_the_page_is_told_what_was_done_and_what_comes_next(tmp_path, opened):
    project = of_texts(tmp_path, [f"the words of text {i}" for i in range(20)])
    with running(project) as server:
        propose(server.desk, pool(server.desk), guess="dog")
        tab = opened(server)
        tab.press("1")
        said = tab.page.inner_text("#announce")
        assert said.startswith("labelled cat; next: the words of text")
        assert said.endswith("guess: dog, 50 %")
        tab.press("u")
        assert tab.page.inner_text("#announce").startswith("undone: cat; next: the words of text")


def test_a_random_check_is_announced_without_a_guess(photos, opened):
    with running(photos) as server:
        checks = reserve(server.desk)[:4]
        propose(server.desk, checks, checks=checks, guess="dog")
        tab = opened(server)
        tab.press("1")
        assert "dog" not in tab.page.inner_text("#announce")


def test_every_view_has_one_title_and_its_buttons_are_called_what_they_show(photos, opened):
    """Who speaks to the computer says what is written on a button."""
    photos.tell({f"{i:02d}.png": ("cat", "dog", "bird")[i % 3] for i in range(6)})
    with running(photos) as server:
        tab = opened(server)
        for view in VIEWS:
            tab.view(view)
            assert len(tab.page.query_selector_all("h1")) == 1, view
            for what, called, written, chooser in tab.page.evaluate(NAMES):
                assert (called or written).strip(), (view, what)
                assert called is None or chooser or written.strip() in called, (view, what)


def test_the_tab_key_goes_from_the_classes_to_the_actions_and_what_has_the_focus_is_seen(photos, opened):
    with running(photos) as server:
        propose(server.desk, pool(server.desk), guess="dog")
        tab = opened(server)
        tab.item()
        reached = []
        for _ in range(30):
            tab.page.keyboard.press("Tab")
            reached.append(tab.page.evaluate(FOCUS))
        names = [name for name, _ in reached]
        assert all(outline == "solid" for name, outline in reached if name)
        assert (
            names.index("cat") < names.index("dog") < names.index("bird") < names.index("accept") < names.index("skip")
        )


def test_who_wants_no_motion_gets_none(photos, opened):
    with running(photos) as server:
        tab = opened(server, reduced_motion="reduce")
        tab.press("1")
        assert tab.page.evaluate("document.getAnimations().length") == 0


def test_empty_cells_of_a_table_are_shown_as_such(tmp_path, opened):
    project = of_table(tmp_path, [{"age": i, "city": "" if i % 2 else None} for i in range(20)])
    with running(project) as server:
        tab = opened(server)
        tab.item()
        assert tab.page.inner_text(".row div:nth-child(2) dd") == "–"


def test_the_page_without_its_link_looks_like_the_others(photos, browser):
    """With the policy in force: a style that it forbids would be missing, and named on the console."""
    with running(photos) as server:
        page = browser.new_page(color_scheme="dark")
        problems = []
        page.on("console", lambda said: problems.append(said.text) if "policy" in said.text.lower() else None)
        page.goto(server.home)
        page.wait_for_selector("h1:has-text('needs its link')")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 22)"
        assert problems == []
        page.close()


def test_long_names_and_many_classes_stay_on_the_screen(tmp_path, opened):
    pictures(tmp_path / "photos", [f"{'a very long name ' * 10}{i}.png" for i in range(30)])
    names = [*MANY, "Donaudampfschifffahrtsgesellschaftskapitän", "قطة", "x" * 150]
    project = Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=names)
    with running(project) as server:
        propose(server.desk, pool(server.desk), guess="x" * 150)
        for options in ({"viewport": WIDE}, PHONE, {"viewport": {"width": 844, "height": 390}}):
            tab = opened(server, **options)
            tab.item()
            assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            undo = tab.page.query_selector("#undo").bounding_box()
            assert undo["y"] + undo["height"] <= options["viewport"]["height"]
            assert tab.page.query_selector("#item").bounding_box()["height"] > 150
