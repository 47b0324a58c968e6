"""Files of other tools: exports that they read by their own descriptions, and their exports as answers of ours.

The readers here follow the descriptions and the importers of the projects: datumaro's `imagenet_txt` (which CVAT uses
for ImageNet 1.0 if an archive has a .txt), doccano's JSONL of text and image classification, Argilla's
`Record.from_dict`.
"""

import io
import json
import zipfile
from pathlib import PurePosixPath

import pyarrow
import pyarrow.parquet
import pytest
from helpers.labelling import of_pictures, of_rows

from balent import Project
from balent.project import exports, tool_files
from balent.project.telling import apply

NAMES = ["a/1.png", "a/two words.png", "b/1.png", "c.png", "d.png"]


@pytest.fixture
def photos(tmp_path):
    found = of_pictures(tmp_path, NAMES, classes=["cat", "dog/wolf", "big bird"])
    found.tell({"a/1.png": "cat", "a/two words.png": "dog/wolf"}, "ann")
    found.tell({"c.png": "big bird"})
    return found


@pytest.fixture
def tickets(tmp_path):
    lines = [{"n": f"T{i}", "body": f"text {i}"} for i in range(5)]
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Project.create(
        tmp_path / "tickets.balent", tmp_path / "tickets.jsonl", text="body", id="n", classes=["billing", "login"]
    )


def archive(path, files):
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(
                name, content if isinstance(content, bytes | str) else "".join(json.dumps(x) + "\n" for x in content)
            )
    return path


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def told(project, path):
    """What a file says, recorded: (label, who) by id, and the skipped ones."""
    apply(project, tool_files.read(path, project), source=str(path))
    state = Project(project.path).state
    found = {project.items[n].id: (state.classes.name(a.label), a.who) for n, a in state.last.items()}
    return found | {project.items[n].id: "skip" for n in state.skipped}


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────


def imagenet_txt(path):
    """Names and classes, as datumaro parses the lists in an archive."""
    with zipfile.ZipFile(path) as opened:
        texts = {name: opened.read(name).decode() for name in opened.namelist()}
    classes = [line.strip() for line in io.StringIO(texts.pop("synsets.txt"))]
    found = {}
    for line in (line for text in texts.values() for line in io.StringIO(text)):
        parts = line.split('"')
        if len(parts) > 1:
            _, stem, rest = parts
            ending, *numbers = rest.split()
            name = stem + ending
        else:
            name, *numbers = line.split()
        found[name] = [classes[int(number)] for number in numbers]
    return found


def test_cvat_reads_names_and_classes(photos, tmp_path):
    exports.export(photos, "cvat", tmp_path / "cvat.zip", everything=True)
    assert imagenet_txt(tmp_path / "cvat.zip") == {
        "a/1.png": ["cat"], "a/two words.png": ["dog/wolf"], "b/1.png": [], "c.png": ["big bird"], "d.png": []
    }  # fmt: skip


@pytest.mark.parametrize("name", ['a"b.png', "a\nb.png"])
def test_names_that_a_list_of_cvat_cannot_hold_are_refused(tmp_path, name):
    project = of_pictures(tmp_path, [name, "b.png"])
    project.tell({name: "cat"})
    with pytest.raises(ValueError, match="CVAT's lists have no way to write the name"):
        exports.export(project, "cvat", tmp_path / "cvat.zip")
    assert not (tmp_path / "cvat.zip").exists()


def test_cvat_is_for_images_and_argilla_for_what_can_be_shown(tmp_path):
    with pytest.raises(ValueError, match="cvat is for images, but this project has features"):
        exports.export(of_rows(tmp_path), "cvat", tmp_path / "x.zip")
    with pytest.raises(ValueError, match="Argilla shows texts, images and rows"):
        exports.export(Project(tmp_path / "rows.balent"), "argilla", tmp_path / "x.json")


def test_argilla_reads_records(tickets, tmp_path):
    """What `Record.from_dict` takes: suggestions by question, with value, score and agent; lists of responses."""
    tickets.tell({"T1": "login"}, "ann")
    exports.export(tickets, "argilla", tmp_path / "records.json", everything=True)
    records = json.loads((tmp_path / "records.json").read_text(encoding="utf-8"))
    assert [record["id"] for record in records] == ["T0", "T1", "T2", "T3", "T4"]
    assert records[1]["fields"] == {"text": "text 1"}
    assert records[1]["suggestions"] == {"label": {"value": "login", "score": None, "agent": "ann"}}
    assert records[1]["metadata"].keys() == {"who", "when"}
    assert all(record["responses"] == {} and record["vectors"] == {} for record in records)
    assert records[0]["suggestions"] == {}


# ── there and back ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("format", "file"), [("cvat", "x.zip"), ("doccano", "x.jsonl"), ("labelstudio", "x.json")])
def test_an_export_is_read_back_as_answers(photos, tmp_path, format, file):
    exports.export(photos, format, tmp_path / file, everything=True)
    fresh = Project.create(tmp_path / "2.balent", tmp_path / "photos", classes=["cat", "dog/wolf", "big bird"])
    found = {id: label for id, (label, _) in told(fresh, tmp_path / file).items()}
    assert found == {"a/1.png": "cat", "a/two words.png": "dog/wolf", "c.png": "big bird"}


def test_folders_by_class_in_an_archive_are_read(photos, tmp_path):
    """As CVAT writes them with images, and as a zip of our own folders."""
    exports.export(photos, "folders", tmp_path / "out")
    files = {path.relative_to(tmp_path / "out").as_posix(): b"" for path in (tmp_path / "out").rglob("*.png")}
    fresh = Project.create(tmp_path / "2.balent", tmp_path / "photos", classes=["cat", "dog%2Fwolf", "big bird"])
    found = told(fresh, archive(tmp_path / "ours.zip", files))
    assert found == {
        "a/1.png": ("cat", None), "a/two words.png": ("dog%2Fwolf", None), "c.png": ("big bird", None)
    }  # fmt: skip
    theirs = archive(tmp_path / "theirs.zip", {"big bird/a/1.png": b"", "cat/d.png": b"", "no_label/b/1.png": b""})
    assert told(fresh, theirs)["a/1.png"] == ("big bird", None)
    assert "b/1.png" not in told(fresh, theirs)


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────


def choice(label):
    return [{"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [label]}}]


def test_the_export_of_label_studio_has_people_skips_and_last_words(tickets, tmp_path):
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    bob = {"id": 4, "email": "bob@x"}
    twice = [{"result": choice("login"), "updated_at": late}, {"result": choice("billing"), "updated_at": early}]
    annotations = {
        "T0": [{"completed_by": 3, "result": choice("login"), "was_cancelled": False}],
        "T1": [{"completed_by": bob, "result": [], "was_cancelled": True}],
        "T2": [{"completed_by": 3, **one} for one in twice],
        "T3": [],
    }
    tasks = [{"data": {"id": id}, "annotations": given} for id, given in annotations.items()]
    found = told(tickets, written(tmp_path / "x.json", tasks))
    assert found == {"T0": ("login", "user 3"), "T1": "skip", "T2": ("login", "user 3")}


def test_tasks_without_our_ids_are_found_by_their_images(photos, tmp_path):
    tasks = [
        {"data": {"image": "/data/local-files/?d=photos/b/1.png"}, "annotations": [{"result": choice("cat")}]},
        {"data": {"image": "http://host/media/d.png"}, "annotations": [{"result": choice("cat")}]},
    ]
    with pytest.raises(ValueError, match=r"x\.json, line 1: the item 'photos/b/1\.png' is not known"):
        told(photos, written(tmp_path / "x.json", tasks))  # two images are called 1.png
    assert told(photos, written(tmp_path / "x.json", tasks[1:]))["d.png"] == ("cat", None)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([{"id": 1, "annotation_id": 2, "label": "cat"}], "JSON-MIN, which has lost our ids"),
        ([], "must be a list of tasks"),
        ({"a": 1}, "must be a list of tasks"),
        ([1, 2], "must be a list of tasks"),
        ("{", "is not JSON that can be read"),
        ("[" * 100_000, "is not JSON that can be read"),
        ([{"data": {"text": "x"}, "annotations": []}], "neither our id nor an image"),
        (
            [{"data": {"id": "T0"}, "annotations": [{"result": choice("a") + choice("b")}]}],
            "2 labels, but an item has one",
        ),
        ([{"data": {"id": "T0"}, "annotations": [{"result": choice(7)}]}], "must be the name of a class, but is 7"),
        ([{"fields": {}, "responses": {}}], "it has no id"),
        ([{"id": "T0", "fields": {}, "responses": {"other": []}}], "but the question must be 'label'"),
    ],
)
def test_bad_json_is_refused_in_a_sentence(tickets, tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        told(tickets, written(tmp_path / "x.json", content))
    assert Project(tickets.path).state.last == {}


def test_an_unknown_class_refuses_all_of_a_file(tickets, tmp_path):
    lines = [{"id": "T0", "text": "", "label": ["login"]}, {"id": "T1", "text": "", "label": ["spam"]}]
    path = written(tmp_path / "x.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match="line 2: the class 'spam' is not known"):
        told(tickets, path)
    assert Project(tickets.path).state.last == {}


def test_doccano_has_a_list_per_line_and_a_file_per_person(tickets, tmp_path):
    lines = [{"id": "T0", "text": "text 0", "label": ["login"]}, {"id": "T1", "text": "text 1", "label": []}]
    assert told(tickets, written(tmp_path / "x.jsonl", "".join(json.dumps(x) + "\n" for x in lines))) == {
        "T0": ("login", None)
    }
    people = {"ann.jsonl": [lines[1] | {"label": ["billing"]}], "bob.jsonl": [], "eve.jsonl": lines}
    found = told(tickets, archive(tmp_path / "x.zip", people))
    assert found == {"T0": ("login", "eve"), "T1": ("billing", "ann")}


def test_doccano_names_images_by_their_last_part(photos, tmp_path):
    line = {"id": 3, "filename": "d.png", "label": ["cat"]}
    assert told(photos, written(tmp_path / "x.jsonl", json.dumps(line)))["d.png"] == ("cat", None)


def test_two_labels_of_doccano_are_refused(tickets, tmp_path):
    with pytest.raises(ValueError, match="line 1 has 2 labels, but an item has one: 'billing', 'login'"):
        told(tickets, written(tmp_path / "x.jsonl", json.dumps({"id": "T0", "label": ["billing", "login"]})))


ANN, BOB = "8d6a6f3e-0000-4000-8000-000000000001", "8d6a6f3e-0000-4000-8000-000000000002"


def test_records_of_argilla_are_read_nested_and_flat_and_as_parquet(tickets, tmp_path):
    last = {"value": ["login"], "user_id": BOB, "status": "submitted"}
    nested = [
        {"id": "T0", "fields": {"text": ""}, "responses": {"label": [{"value": "login", "user_id": ANN}]}},
        {"id": "T1", "fields": {"text": ""}, "responses": {}},
        {"id": "T2", "fields": {"text": ""}, "responses": {"label": [last]}},
    ]
    expected = {"T0": ("login", ANN), "T2": ("login", BOB)}
    assert told(tickets, written(tmp_path / "x.json", nested)) == expected
    columns = [f"label.responses{part}" for part in ("", ".users", ".status")]
    given = {
        "T3": (["billing"], [ANN], ["submitted"]),
        "T4": (["login"], [BOB], ["discarded"]),
        "T1": (["login"], [BOB], ["draft"]),
        "T0": (None, None, None),
    }
    flat = [{"id": id, **dict(zip(columns, values, strict=True))} for id, values in given.items()]
    expected |= {"T3": ("billing", ANN), "T4": "skip"}
    assert told(tickets, written(tmp_path / "y.json", flat)) == expected
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(flat), tmp_path / "y.parquet")
    assert told(Project(tickets.path), tmp_path / "y.parquet") == expected


def test_a_damaged_parquet_file_is_refused(tickets, tmp_path):
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        told(tickets, written(tmp_path / "x.parquet", "PAR1 nothing"))


# ── archives that mean harm ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["../a.png", "cat/../../a.png", "/etc/cat/a.png", "C:/cat/a.png", "cat\\..\\a.png"])
def test_names_that_lead_out_of_an_archive_are_refused(photos, tmp_path, name):
    with pytest.raises(ValueError, match="leads out of the archive"):
        told(photos, archive(tmp_path / "x.zip", {"cat/d.png": b"", name: b""}))
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".png"] == []


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"default.txt": "d.png 0\n"}, r"no synsets\.txt"),
        ({"default.txt": "d.png 7\n", "synsets.txt": "cat\n"}, "classes are numbers from 0 to 0, but it has '7'"),
        ({"default.txt": "d.png -1\n", "synsets.txt": "cat\n"}, "but it has '-1'"),
        ({"default.txt": "d.png 0 1\n", "synsets.txt": "cat\ndog/wolf\n"}, "line 1 has 2 labels"),
        ({"default.txt": b"\xff\xfe", "synsets.txt": "cat\n"}, "must be UTF-8"),
        ({"a.png": b""}, "must have images in a folder per class"),
        ({"a.exe": b""}, "must have images in a folder per class"),
        ({"ann.jsonl": '{"id": 1}\n'}, "is not a file of doccano"),
    ],
)
def test_archives_of_something_else_are_refused(photos, tmp_path, files, sentence):
    before = Project(photos.path).state.last
    with pytest.raises(ValueError, match=sentence):
        told(photos, archive(tmp_path / "x.zip", files))
    assert Project(photos.path).state.last == before


def test_damaged_archives_and_workbooks_are_refused(photos, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ValueError, match="damaged zip archive"):
        told(photos, tmp_path / "x.zip")
    with pytest.raises(ValueError, match="save the sheet as CSV"):
        told(photos, archive(tmp_path / "x.xlsx", {"[Content_Types].xml": ""}))


def test_a_list_that_grows_beyond_measure_is_refused(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(tool_files, "LARGEST", 1000)
    files = {"default.txt": "d.png 0\n" * 1000, "synsets.txt": "cat\n"}
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    with pytest.raises(ValueError, match="has more than 1,000 bytes"):
        told(photos, tmp_path / "x.zip")


def test_nothing_is_unpacked(photos, tmp_path):
    before = {path for path in tmp_path.rglob("*") if PurePosixPath(path).suffix == ".png"}
    told(photos, archive(tmp_path / "x.zip", {"cat/d.png": b"new"}))
    assert {path for path in tmp_path.rglob("*") if PurePosixPath(path).suffix == ".png"} == before
