"""Exports: the labels in the forms of other tools, complete or not at all, the same every time."""

import csv
import json
import os

import pytest
from helpers.labelling import of_pictures, of_rows, pictures

from balent.project import exports
from balent.project.class_folders import name

NAMES = ["a/1.png", "b/1.png", "100%.png", "c.png", ".d/x.png", "e.png"]


@pytest.fixture
def project(tmp_path):
    found = of_pictures(tmp_path, [n for n in NAMES if not n.startswith(".")], classes=["cat", "dog/wolf"])
    found.tell({"a/1.png": "cat", "b/1.png": "cat"}, "ann")
    found.tell({"100%.png": "dog/wolf", "c.png": "cat"})
    return found


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_csv_has_the_labelled_items_in_their_order(project, tmp_path):
    exports.export(project, "csv", tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert list(rows[0]) == ["id", "label", "who", "when", "probability", "guess", "fingerprint"]
    assert [(row["id"], row["label"], row["who"]) for row in rows] == [
        ("100%.png", "dog/wolf", ""),
        ("a/1.png", "cat", "ann"),
        ("b/1.png", "cat", "ann"),
        ("c.png", "cat", ""),
    ]


def test_all_items_are_exported_if_one_asks_for_it(project, tmp_path):
    found = exports.export(project, "jsonl", tmp_path / "all.jsonl", everything=True)
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(found) == 5
    assert lines[-1]["id"] == "e.png"
    assert lines[-1]["label"] is None
    assert lines[-1]["image"] == str(tmp_path / "photos" / "e.png")


def test_an_export_has_the_guess_from_before_the_label_was_known(tmp_path):
    project = of_rows(tmp_path)
    asked = project.ask(2, wait=False)
    project.tell({asked[0].id: "cat"})
    assert exports.export(project, "csv", tmp_path / "a.csv")[0].guess is None  # random checks have none


def test_equal_items_have_one_label_and_items_that_people_disagree_on_none(tmp_path):
    project = of_pictures(tmp_path, ["a.png"])
    (tmp_path / "photos" / "b.png").write_bytes((tmp_path / "photos" / "a.png").read_bytes())
    project.refresh()
    project.tell({"b.png": "dog"})
    assert [item.label for item in exports.labelled(project)] == ["dog", "dog"]


def test_items_that_are_gone_and_disagreements_are_left_out_and_this_is_said(tmp_path):
    project = of_rows(tmp_path, overlap=2)
    check = project.ask(1, wait=False)[0].id
    project.tell({check: "cat"}, "ann")
    project.tell({check: "dog"}, "bob")
    assert exports.labelled(project) == []
    assert "people disagree on 1 items" in next(exports.left_out(project))
    photos = of_pictures(tmp_path, ["a.png", "b.png"])
    photos.tell({"a.png": "cat"})
    (tmp_path / "photos" / "a.png").unlink()
    photos.refresh()
    assert exports.labelled(photos) == []
    assert "1 labelled items are not among the data" in next(exports.left_out(photos))


def test_label_studio_gets_tasks_with_annotations(project, tmp_path):
    exports.export(project, "labelstudio", tmp_path / "tasks.json")
    task = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))[1]
    assert task["data"]["id"] == "a/1.png"
    assert task["data"]["image"] == "/data/local-files/?d=photos/a/1.png"
    assert task["annotations"] == [
        {"result": [{"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": ["cat"]}}]}
    ]
    assert task["predictions"] == []


def test_doccano_gets_lines_with_labels(project, tmp_path):
    exports.export(project, "doccano", tmp_path / "d.jsonl")
    line = json.loads((tmp_path / "d.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert line == {"id": "a/1.png", "filename": "a/1.png", "label": ["cat"]}
    with pytest.raises(ValueError, match="doccano has texts and images, but this project has features"):
        exports.export(of_rows(tmp_path), "doccano", tmp_path / "e.jsonl")


def test_an_unknown_format_is_refused_with_those_there_are(project, tmp_path):
    with pytest.raises(
        ValueError, match="must be one of csv, jsonl, labelstudio, doccano, argilla, cvat, folders, imagenet"
    ):
        exports.export(project, "xml", tmp_path / "x")


@pytest.mark.parametrize("format", ["csv", "jsonl", "labelstudio", "doccano", "argilla", "cvat"])
def test_a_second_export_is_the_same_file(project, tmp_path, format):
    project.export(format, tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    project.export(format, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == before


# ── folders ──────────────────────────────────────────────────────────────────────────────────────


def test_images_are_copied_below_their_classes(project, tmp_path):
    exports.export(project, "folders", tmp_path / "out")
    found = files(tmp_path / "out")
    assert set(found) == {
        "labels.csv", "cat/a%2F1.png", "cat/b%2F1.png", "cat/c.png", "dog%2Fwolf/100%25.png"
    }  # fmt: skip
    assert found["cat/a%2F1.png"] == (tmp_path / "photos/a/1.png").read_bytes()
    assert found["labels.csv"].decode().splitlines()[:2] == ["file,id,label", "dog%2Fwolf/100%25.png,100%.png,dog/wolf"]


def test_imagenet_has_a_train_folder_and_its_classes(project, tmp_path):
    project.add_class("empty")
    exports.export(project, "imagenet", tmp_path / "out")
    assert (tmp_path / "out" / "classes.txt").read_text() == "cat\ndog/wolf\nempty\n"
    assert (tmp_path / "out" / "train" / "cat" / "c.png").is_file()


def test_links_lead_to_the_images(project, tmp_path):
    exports.export(project, "folders", tmp_path / "out", links=True)
    assert os.readlink(tmp_path / "out" / "cat" / "c.png") == str(tmp_path / "photos" / "c.png")
    with pytest.raises(ValueError, match="links are for folders and imagenet"):
        exports.export(project, "csv", tmp_path / "x", links=True)


def test_a_second_export_replaces_the_first_and_nothing_else(project, tmp_path):
    exports.export(project, "imagenet", tmp_path / "out")
    before = files(tmp_path / "out")
    exports.export(project, "imagenet", tmp_path / "out")
    assert files(tmp_path / "out") == before
    project.tell({"a/1.png": "dog/wolf"})
    exports.export(project, "imagenet", tmp_path / "out")
    assert "train/cat/a%2F1.png" not in files(tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_folder_with_other_files_is_refused_and_stays(project, tmp_path):
    pictures(tmp_path / "mine", ["x.png"])
    with pytest.raises(FileExistsError, match="mine is not empty, and not an export"):
        exports.export(project, "folders", tmp_path / "mine")
    exports.export(project, "folders", tmp_path / "out")
    pictures(tmp_path / "out", ["cat/mine.png"])
    before = files(tmp_path / "out")
    with pytest.raises(FileExistsError, match=r"files that are not of the last export, such as cat/mine\.png"):
        exports.export(project, "folders", tmp_path / "out")
    assert files(tmp_path / "out") == before


def test_an_export_that_fails_leaves_nothing_behind(project, tmp_path, monkeypatch):
    from balent.project import class_folders

    def fails(*_):
        raise OSError("full")

    monkeypatch.setattr(class_folders, "_put", fails)
    with pytest.raises(OSError, match="full"):
        exports.export(project, "folders", tmp_path / "out")
    assert {p.name for p in tmp_path.iterdir()} == {"photos", "photos.balent"}


def test_folders_are_for_images(tmp_path):
    with pytest.raises(ValueError, match="folders are for images, but this project has features"):
        exports.export(of_rows(tmp_path), "folders", tmp_path / "out")


@pytest.mark.parametrize("text", ["..", ".", "../../etc/passwd", "/etc/passwd", "a\\b", "x" * 300, "é" * 200, "a\0b"])
def test_no_name_leads_out_of_its_folder_or_is_too_long(text):
    found = name(text)
    assert "/" not in found
    assert "\0" not in found
    assert found not in ("", ".", "..")
    assert len(os.fsencode(found)) <= 255


def test_different_names_stay_different():
    names = ["a/b", "a%2Fb", "a%252Fb", ".x", "%2Ex", "x" * 300 + "1", "x" * 300 + "2"]
    assert len({name(text) for text in names}) == len(names)
