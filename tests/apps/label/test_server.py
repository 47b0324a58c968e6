"""The server: each endpoint answers as the page expects it, whatever the names are."""

import csv
import io
import json
import os

import pytest
from helpers.labelling import pictures
from helpers.labelling_page import (
    client_of,
    desk_of,
    event,
    label,
    of_rows,
    of_table,
    of_texts,
    pool,
    proposal,
    propose,
    reserve,
    say,
    shown,
)

from balent import Project

STRANGE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE items; --",
    "\u202egnp.exe",
    "a & b < c",
    "日本語 🙂",
    "=HYPERLINK(1)",
    "%2e%2e%2f",
]


@pytest.fixture
def client(desk):
    return client_of(desk)


def get(client, path, **query):
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def post(client, body, path="/api/event"):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────


def test_next_has_what_the_page_shows(desk, client):
    numbers = pool(desk)[:20]
    propose(desk, [*numbers[:4], reserve(desk)[0], *numbers[4:]], checks=reserve(desk), guess="dog")
    found = get(client, "/api/next", n=6, tab="one")
    assert found.keys() == {
        *("items", "waiting", "labelled", "items_total", "sentence", "now", "model", "message", "done", "version")
    }
    assert found["items"][0] == {
        "item": numbers[0],
        "id": desk.project.items[numbers[0]].id,
        "kind": "features",
        "guess": "dog",
        "probability": 0.5,
        "why": "it is",
        "audit": False,
    }
    assert (found["items"][4]["audit"], found["items"][4]["guess"], found["items"][4]["probability"]) == (
        True,
        None,
        None,
    )
    assert (found["waiting"], found["labelled"], found["items_total"]) == (15, 0, 60)
    assert (found["message"], found["done"], found["now"], found["sentence"]) == ("", False, [], "")
    assert found["model"] == {"state": "ready", "done": 0, "of": 0, "rounds": 0, "note": ""}
    assert get(client, "/api/next", tab="one")["items"][:6] == found["items"]


def test_an_event_is_acknowledged_and_again_if_it_is_repeated(desk, client):
    body = event("label", pool(desk)[0], label="cat", seconds=1.4)
    for _ in range(2):
        assert post(client, body) == {"ok": True, "id": body["id"]}
    assert len(desk.project.state.last) == 1


def test_events_of_every_kind(desk, client):
    one, two, three, *_ = pool(desk)
    post(client, event("label", [one, two], label="cat"))
    post(client, event("skip", three, note="dark"))
    post(client, event("flag", one, note="odd"))
    post(client, event("retract", two))
    post(client, event("label", one, label="dog", replace=True))
    state = desk.project.state
    assert ({*state.last}, {*state.skipped}, {*state.flagged}) == ({one}, {three}, {one})


def test_status_has_what_the_page_shows(desk, client):
    found = get(client, "/api/status")
    assert {
        *(
            "project",
            "kind",
            "who",
            "version",
            "items",
            "labelled",
            "skipped",
            "flagged",
            "pending",
            "classes",
            "looks",
        ),
        *(
            "people",
            "now",
            "accuracy",
            "audit",
            "recall",
            "agreement",
            "disagreements",
            "suspicious",
            "advice",
            "curve",
        ),
        *("rate", "counted", "model", "formats"),
    } <= found.keys()
    assert (found["project"], found["kind"], found["who"], found["items"]) == ("rows", "features", None, 60)
    assert found["looks"] == [
        {"name": name, "key": str(i), "note": ""} for i, name in enumerate(["cat", "dog", "bird"], 1)
    ]
    assert found["audit"] == {"every": 5, "asked": 0, "answered": 0, "skipped": 0, "sentence": ""}
    assert (found["accuracy"], found["rate"], found["counted"]) == (None, None, 0)


def test_counts_are_those_of_this_moment_whoever_labels(desk, client):
    """Accuracy takes a few fits and follows; counts do not wait for it."""
    one, two, three, four, *_ = pool(desk)
    label(desk, [one, two], "cat", who="ann")
    say(desk, "skip", three)
    say(desk, "flag", four, note="odd")
    Project(desk.project.path).tell({desk.project.items[four].id: "dog"}, who="by file")
    found = get(client, "/api/status")
    assert found["classes"] == {"cat": 2, "dog": 1, "bird": 0}
    assert (found["labelled"], found["skipped"], found["flagged"], found["pending"]) == (3, 1, 1, 0)
    assert found["people"] == {"ann": 2, "by file": 1}
    assert get(client, "/api/next", tab="x")["labelled"] == 3


def test_what_the_worker_found_out_is_shown(desk, client):
    accuracy = {"right": 19, "of": 25, "low": 0.57, "high": 0.88}
    audit = {"every": 5, "asked": 25, "answered": 25, "skipped": 0, "sentence": "right on 19 of 25"}
    doubt = {"id": desk.project.items[7].id, "label": "cat", "guess": "dog", "probability": 0.97}
    standing = {"accuracy": accuracy, "audit": audit, "recall": {"cat": accuracy}, "agreement": [], "advice": ["go on"]}
    standing |= {"curve": [{"labels": 100, **accuracy}], "counted": 58, "suspicious": [doubt]}
    desk.heard({"said": "standing", "standing": standing, "rounds": 4})
    label(desk, 7, "cat")
    found = get(client, "/api/status")
    assert {name: found[name] for name in standing if name != "suspicious"} == {
        name: value for name, value in standing.items() if name != "suspicious"
    }
    assert found["suspicious"] == [{"item": 7, **doubt}]
    assert get(client, "/api/history", show="suspicious")["items"][0]["suspicious"] == {
        "guess": "dog",
        "probability": 0.97,
    }
    assert get(client, "/api/next", tab="x")["sentence"] == "right on 19 of 25"
    label(desk, 7, "dog", replace=True)
    assert get(client, "/api/status")["suspicious"] == []


def test_presence_leaves_oneself_out(desk):
    """With the tab, as the page asks, or without it."""
    client = client_of(desk, "ann", ["ann", "bob"])
    shown(desk, "ann-1", "ann")
    shown(desk, "bob-1", "bob")
    assert [other["who"] for other in get(client, "/api/status", tab="ann-1")["now"]] == ["bob"]
    assert [other["who"] for other in get(client, "/api/status")["now"]] == ["bob"]


def test_the_grid_shows_what_the_model_takes_for_a_class(desk, client):
    numbers = pool(desk)[:30]
    propose(desk, numbers[:4])
    asked = []

    def send(message):
        asked.append(message)
        if message["wanted"] == "grid":
            lines = [proposal(n, guess="cat") for n in numbers[10 : 10 + message["n"]]]
            desk.heard({"said": "reply", "to": message["number"], "proposals": lines, "more": 7, "trained": True})

    desk.trainer.send = send
    other = shown(desk, "other", n=2)
    found = get(client, "/api/grid", **{"class": "cat", "n": 6, "tab": "one"})
    assert (found["class"], found["more"], found["message"]) == ("cat", 7, "")
    assert [item["item"] for item in found["items"]] == numbers[10:16]
    assert found["items"][0]["probability"] == 0.5
    assert asked[-1]["shown"] == other
    again = get(client, "/api/grid", **{"class": "cat", "n": 6, "tab": "two"})
    assert again["items"] == []  # another tab looks at these
    more = get(client, "/api/grid", **{"class": "cat", "n": 6, "tab": "one", "without": f"{numbers[10]},{numbers[11]}"})
    assert asked[-1]["shown"] == sorted([*other, *numbers[10:12]])
    assert [item["item"] for item in more["items"]] == numbers[10:16]
    label(desk, numbers[10:16], tab="one")
    assert {*desk.project.state.last} == {*numbers[10:16]}


def test_the_grid_without_a_model_says_so(client):
    found = get(client, "/api/grid", **{"class": "cat", "tab": "one"})
    assert (found["items"], found["message"]) == ([], "the model is not ready yet")


@pytest.mark.parametrize(
    ("trained", "other", "sentence"),
    [
        (False, False, "there is no model yet: label items of two classes first"),
        (True, False, "no item looks like this class now"),
        (True, True, "no item looks like this class now; some may be on other screens"),
    ],
)
def test_an_empty_grid_says_why(desk, client, trained, other, sentence):
    def send(message):
        if message["wanted"] == "grid":
            desk.heard({"said": "reply", "to": message["number"], "proposals": [], "more": 0, "trained": trained})

    propose(desk, pool(desk)[:4])
    desk.trainer.send = send
    if other:
        shown(desk, "other")
    assert get(client, "/api/grid", **{"class": "cat", "tab": "one"})["message"] == sentence


def test_the_grid_of_an_unknown_class_is_not_found(client):
    assert client.get("/api/grid", params={"class": "lion", "tab": "one"}).status_code == 404


def test_classes_are_added_described_renamed_and_merged(client):
    found = post(client, {"action": "add", "name": "fish", "note": "also sharks"}, "/api/classes")
    assert found["looks"][-1] == {"name": "fish", "key": "4", "note": "also sharks"}
    version = found["version"]
    found = post(client, {"action": "describe", "name": "fish", "key": "x", "note": ""}, "/api/classes")
    assert found["looks"][-1] == {"name": "fish", "key": "x", "note": ""}
    assert found["version"] != version
    found = post(client, {"action": "rename", "name": "fish", "to": "trout"}, "/api/classes")
    assert found["looks"][-1] == {"name": "trout", "key": "x", "note": ""}
    found = post(client, {"action": "merge", "name": "trout", "to": "bird"}, "/api/classes")
    assert [look["name"] for look in found["looks"]] == ["cat", "dog", "bird"]


def test_a_class_that_another_process_adds_is_there(desk, client):
    version = get(client, "/api/next", tab="a")["version"]
    Project(desk.project.path).add_class("fish")
    assert get(client, "/api/next", tab="a")["version"] != version
    assert get(client, "/api/status")["looks"][-1]["name"] == "fish"


@pytest.mark.parametrize(
    "path", ["/api", "/api/", "/api/nothing", "/nothing", "/static/nothing.js", "/static/", "/index.html"]
)
def test_what_is_not_there_is_said_in_a_sentence(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["/", "/grid", "/history", "/progress", "/classes", "/resolve"])
def test_every_view_is_the_same_page(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.content == client.get("/").content


def test_scripts_and_styles_have_their_types(client):
    for name, kind in (("main.js", "text/javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml")):
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)


def test_the_guess_of_a_text_marks_words(tmp_path):
    """By code points, so that letters beyond the first plane do not shift them."""
    desk = desk_of(of_texts(tmp_path, [f"🙂 good text {i}" for i in range(20)]))
    line = proposal(3, guess="cat")
    desk.heard({"said": "proposals", "proposals": [line], "round": 1, "marks": {"3": [[2, 6]]}})
    (item,) = get(client_of(desk), "/api/next", tab="a")["items"]
    assert item["marks"] == [[2, 6]]
    assert item["text"][2:6] == "good"


# ── every kind of data ───────────────────────────────────────────────────────────────────────────────


def test_texts_and_rows_come_back_as_they_are(tmp_path):
    texts = [*STRANGE, "a\nb\tc", "\x00\x1b[31m", "x" * 300_000]
    desk = desk_of(of_texts(tmp_path, texts))
    propose(desk, range(len(texts)))
    found = {item["item"]: item["text"] for item in get(client_of(desk), "/api/next", tab="a", n=24)["items"]}
    assert found == dict(enumerate([*texts[:-1], "x" * 200_000]))


def test_rows_of_a_table_have_their_columns(tmp_path):
    rows = [{"age": 41, "city": city, "share": 0.5, "old": True, "none": None} for city in STRANGE]
    desk = desk_of(of_table(tmp_path, rows))
    propose(desk, range(len(rows)))
    items = get(client_of(desk), "/api/next", tab="a", n=24)["items"]
    assert [item["columns"]["city"] for item in items] == STRANGE
    assert {**items[0]["columns"], "city": ""} == {"age": 41, "city": "", "share": 0.5, "old": True, "none": None}


@pytest.mark.parametrize("value", ["1e999", "-1e999", "NaN", "123456789012345678901234567890"])
def test_numbers_that_json_does_not_have_are_shown_too(tmp_path, value):
    (tmp_path / "t.csv").write_text("age,name\n1.5,a\n" + f"{value},b\n2.5,c\n")
    desk = desk_of(Project.create(tmp_path / "t.balent", tmp_path / "t.csv", classes=["x", "y"]))
    propose(desk, range(3))
    assert len(get(client_of(desk), "/api/next", tab="a")["items"]) == 3


def test_half_characters_in_texts_are_shown(tmp_path):
    r"""JSON can name one: "\ud83d" without its other half."""
    desk = desk_of(of_texts(tmp_path, ["half \ud83d", "whole", "\udce9"]))
    propose(desk, range(3))
    client = client_of(desk)
    assert [item["text"] for item in get(client, "/api/next", tab="a")["items"]] == ["half \ud83d", "whole", "\udce9"]
    label(desk, 0)
    assert get(client, "/api/history")["items"][0]["text"] == "half \ud83d"


def test_half_characters_in_notes_do_no_harm(desk, client):
    body = event("flag", pool(desk)[0], note="half \ud83d")
    answer = client.post("/api/event", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code in (200, 422)
    get(client, "/api/history", show="flagged")


def test_names_of_files_that_are_not_utf_8_are_shown_and_labelled(tmp_path):
    """An old camera or a disk from elsewhere: the name is bytes."""
    pictures(tmp_path / "photos", ["a.png"])
    os.rename(tmp_path / "photos" / "a.png", os.fsencode(tmp_path / "photos") + b"/caf\xe9.png")
    desk = desk_of(Project.create(tmp_path / "photos.balent", tmp_path / "photos", classes=["cat", "dog"]))
    propose(desk, [0])
    client = client_of(desk)
    (item,) = get(client, "/api/next", tab="a")["items"]
    assert item["id"] == "caf\udce9.png"
    assert client.get(item["media"]).status_code == 200
    post(client, event("label", 0, label="cat"))
    assert get(client, "/api/history")["items"][0]["id"] == "caf\udce9.png"
    assert client.get("/api/export?format=csv").status_code == 200


def test_names_of_files_classes_and_people_come_back_unchanged(tmp_path):
    """They are JSON strings, and the page shows them as text."""
    names = [name.replace("/", "\u2215") + ".png" for name in STRANGE] + ["control \x1b[31m\x07.png", "new\nline.png"]
    pictures(tmp_path / "photos", names)
    project = Project.create(tmp_path / "photos.balent", tmp_path / "photos", classes=STRANGE)
    desk = desk_of(project)
    who = "<b>ann</b> & 'co'"
    client = client_of(desk, who, [who])
    propose(desk, range(len(names)), guess=STRANGE[0])
    items = get(client, "/api/next", tab="a", n=24)["items"]
    assert sorted(item["id"] for item in items) == sorted(names)
    assert {item["guess"] for item in items} == {STRANGE[0]}
    post(client, event("label", 0, label=STRANGE[1]))
    found = get(client, "/api/status")
    assert [look["name"] for look in found["looks"]] == STRANGE
    assert (found["who"], found["people"]) == (who, {who: 1})
    assert get(client, "/api/history")["items"][0]["label"] == STRANGE[1]
    assert all(client.get(item["media"]).status_code == 200 for item in items)


def test_a_row_that_is_gone_from_the_data_does_no_harm(tmp_path):
    """Somebody edits the table while the page is open."""
    desk = desk_of(of_texts(tmp_path, [f"text {i}" for i in range(10)]))
    client = client_of(desk)
    propose(desk, range(10))
    label(desk, 9)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"body": f"text {i}"}) + "\n" for i in range(8)))
    get(client, "/api/next", tab="a", n=12)
    Project(desk.project.path).refresh()
    assert [item["item"] for item in get(client, "/api/next", tab="a", n=12)["items"]] == [*range(8)]
    get(client, "/api/history")


def test_a_project_file_that_is_being_edited_is_said_in_a_sentence(desk, client):
    """Half of a line in project.toml: the page waits until it is whole again."""
    path = desk.project.path / "project.toml"
    content = path.read_text()
    path.write_text(content + "\naudit = ")
    os.utime(path, ns=(5, 5))
    answer = client.get("/api/next?tab=a")
    assert answer.status_code == 503
    assert "project.toml" in answer.json()["error"]
    path.write_text(content)
    assert get(client, "/api/next", tab="a")["items"]


# ── history ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def past(tmp_path):
    """Texts that two people have labelled, skipped and flagged, in this order: 0, 1, 2, 3, 4."""
    desk = desk_of(
        of_texts(tmp_path, [f"{word} {i}" for i, word in enumerate(["Red", "green", "blue", "grey", "pink", "new"])])
    )
    label(desk, 0, "cat", who="ann")
    label(desk, 1, "dog", who="bob")
    say(desk, "skip", 2, "ann", note="dark")
    say(desk, "flag", 3, "bob", note="odd")
    label(desk, 4, "cat", who="bob")
    return desk


@pytest.mark.parametrize(
    ("query", "items"),
    [
        ({}, [4, 3, 2, 1, 0]),
        ({"show": "all"}, [4, 3, 2, 1, 0]),
        ({"show": "labelled"}, [4, 1, 0]),
        ({"show": "skipped"}, [2]),
        ({"show": "flagged"}, [3]),
        ({"show": "mine"}, [4, 3, 1]),
        ({"show": "changed"}, []),
        ({"show": "suspicious"}, []),
        ({"class": "cat"}, [4, 0]),
        ({"class": "lion"}, []),
        ({"who": "ann"}, [2, 0]),
        ({"class": "cat", "who": "ann"}, [0]),
        ({"q": "RE"}, [3, 1, 0]),
        ({"q": "re", "show": "labelled"}, [1, 0]),
        ({"q": "nothing of this"}, []),
        ({"from": 1, "n": 2}, [3, 2]),
        ({"from": 100}, []),
    ],
    ids=str,
)
def test_history_is_searched_filtered_and_paged_newest_first(past, query, items):
    found = get(client_of(past, "bob", ["ann", "bob"]), "/api/history", **query)
    assert [item["item"] for item in found["items"]] == items
    total = 5 if "from" in query else len(items)
    assert found["total"] == total


def test_a_line_of_the_history_says_what_was_said(past):
    client = client_of(past, "bob", ["ann", "bob"])
    lines = {item["item"]: item for item in get(client, "/api/history")["items"]}
    assert {*lines[0]} == {
        *("item", "id", "kind", "text", "label", "skipped", "flagged", "who", "when", "audit", "changed", "suspicious"),
        "disagree",
    }
    assert (lines[0]["label"], lines[0]["who"], lines[0]["text"]) == ("cat", "ann", "Red 0")
    assert (lines[2]["label"], lines[2]["skipped"], lines[2]["who"]) == (None, True, "ann")
    assert (lines[3]["label"], lines[3]["flagged"], lines[3]["who"]) == (None, "odd", "bob")
    assert lines[0]["when"].endswith("Z")


def test_an_item_is_found_by_its_id(desk, client):
    label(desk, [3, 4])
    assert [item["item"] for item in get(client, "/api/history", q="ITEM 3")["items"]] == [3]


def test_a_changed_image_is_listed_as_changed(tmp_path):
    pictures(tmp_path / "photos", ["a.png", "b.png"])
    desk = desk_of(Project.create(tmp_path / "photos.balent", tmp_path / "photos", classes=["cat", "dog"]))
    label(desk, [0, 1])
    pictures(tmp_path / "photos", ["a.png"], size=9)
    Project(desk.project.path).refresh()
    assert [item["item"] for item in get(client_of(desk), "/api/history", show="changed")["items"]] == [0]


def test_random_checks_are_named_in_the_history(desk, client):
    label(desk, shown(desk, n=1)[0])
    assert get(client, "/api/history")["items"][0]["audit"]


def test_disagreements_are_listed_with_what_each_said(desk_with):
    desk = desk_with(overlap=2)
    client = client_of(desk)
    check = shown(desk, "a", "ann", n=1)[0]
    label(desk, check, "cat", who="ann", tab="a")
    label(desk, check, "dog", who="bob", tab="b")
    (found,) = get(client, "/api/disagreements")["items"]
    assert (found["item"], found["kind"]) == (check, "features")
    assert [(answer["who"], answer["label"]) for answer in found["answers"]] == [("ann", "cat"), ("bob", "dog")]
    assert all(answer["when"].endswith("Z") for answer in found["answers"])
    assert [line["disagree"] for line in get(client, "/api/history")["items"]] == [True]


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────


def made(kind, folder):
    if kind == "rows":
        return of_rows(folder)
    if kind == "texts":
        return of_texts(folder, [f"text {i}" for i in range(12)])
    if kind == "table":
        return of_table(folder, [{"age": i} for i in range(12)])
    pictures(folder / "photos", [f"{i}.png" for i in range(12)])
    return Project.create(folder / "photos.balent", folder / "photos", classes=["cat", "dog"])


@pytest.mark.parametrize("kind", ["rows", "texts", "table", "photos"])
def test_every_format_that_the_page_offers_is_downloaded_as_the_command_writes_it(tmp_path, kind):
    desk = desk_of(made(kind, tmp_path))
    client = client_of(desk)
    label(desk, [0, 1, 2], "cat", who="ann")
    formats = get(client, "/api/status")["formats"]
    assert {"csv", "jsonl"} <= {*formats}
    for format in formats:
        answer = client.get("/api/export", params={"format": format})
        assert answer.status_code == 200, (format, answer.text)
        Project(desk.project.path).export(format, tmp_path / "export")
        assert answer.content == (tmp_path / "export").read_bytes()
        assert answer.headers["content-disposition"].startswith('attachment; filename="labels')
        assert answer.headers["content-type"] == "application/octet-stream"


def test_labels_are_exported_at_once(desk, client):
    label(desk, pool(desk)[:3], "cat", who="ann")
    rows = [*csv.DictReader(io.StringIO(client.get("/api/export").text))]
    assert [row["label"] for row in rows] == ["cat"] * 3
