"""balent doctor by commands: projects of every kind, models with their pools, what it prints, what it refuses."""

import csv
import json
import os
import sys

import numpy as np
import pytest
from helpers.labelling import CLASSES, clusters, of_pictures
from typer.testing import CliRunner

from balent import Project
from balent.apps import cli
from balent.apps.doctor.examination import CHECKS

MODELS = """
import torch
from torch import nn
from balent import Logistic


def network(dropout=0.5):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 3))


def for_project(rows, classes):
    return network()


def without_dropout(rows, classes):
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def stream():
    return iter(torch.randn(300, 8, generator=torch.Generator().manual_seed(0)).split(100))


def truth():
    return torch.randn(60, 8), torch.arange(60) % 3


def no_pair():
    return torch.randn(60, 8)


def untrained():
    return Logistic(3)
"""


@pytest.fixture
def truth(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    return clusters(tmp_path)


@pytest.fixture
def doctor(tmp_path, truth, monkeypatch):
    """What balent doctor prints, in a directory with rows.npy, ids.txt and models.py in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", 200)

    def invoke(*words, code=0):
        result = CliRunner().invoke(cli.app, ["doctor", *map(str, words)], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output

    return invoke


@pytest.fixture
def project(tmp_path, truth):
    """Its 60 items, all labelled."""
    made = Project.create(tmp_path / "rows.balent", tmp_path / "rows.npy", ids=tmp_path / "ids.txt", classes=CLASSES)
    made.compute_features()
    made.tell(truth)
    return made


def levels(output):
    """The level of each check, of output as JSON."""
    return {finding["about"]: finding["level"] for finding in json.loads(output)["findings"]}


def everything(folder):
    """All files of a folder, with their content and times: also locks, which a reader has no need of."""
    return {
        path.relative_to(folder): (path.is_file() and path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }


# ── projects ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_good_project_has_no_alarm(doctor, project):
    said = doctor("rows.npy")
    assert "failure" not in said
    assert "warning" not in said
    assert said.startswith("rows.npy\n\nok       draws            100 draws; ")
    assert "κ 1.00" in said


def test_every_check_has_a_finding_with_its_number(doctor, project):
    found = json.loads(doctor("rows.balent", "--json"))
    assert {finding["about"] for finding in found["findings"]} == set(CHECKS)
    assert found["worst"] in ("note", "open")
    ok = [finding for finding in found["findings"] if finding["level"] == "ok" and finding["about"] != "strategy"]
    assert all(finding["figure"]["value"] is not None for finding in ok)


def test_a_project_without_labels_is_looked_at_as_far_as_it_can_be(doctor, tmp_path, truth):
    made = Project.create(tmp_path / "rows.balent", tmp_path / "rows.npy", classes=CLASSES)
    made.compute_features()
    found = levels(doctor("rows.balent", "--json"))
    assert {found[name] for name in ("draws", "calibration", "meaning", "classes", "label noise")} == {"open"}
    assert {found[name] for name in ("features", "duplicates", "near-duplicates", "strategy")} == {"ok"}


def test_features_that_are_not_computed_yet_are_named_once(doctor, tmp_path, truth):
    Project.create(tmp_path / "rows.balent", tmp_path / "rows.npy", classes=CLASSES)
    said = doctor("rows.balent")
    assert said.count("features are not computed yet for 60 of 60 items; balent ask computes them") == 1
    assert "auto stands for herding:margin" in said


def test_pictures_without_features_are_no_error(doctor, tmp_path):
    pytest.importorskip("PIL", reason="pictures are made with pillow")
    of_pictures(tmp_path, [f"{i}.png" for i in range(6)], features="random:efficientnet-lite0")
    assert "features are not computed yet for 6 of 6 items" in doctor("photos")


@pytest.mark.parametrize("kind", ["text", "table"])
def test_texts_and_tables_work(doctor, tmp_path, kind):
    if kind == "text":
        pytest.importorskip("sklearn", reason="TF-IDF needs scikit-learn")
    rng = np.random.default_rng(0)
    words = [["invoice", "refund", "bank"], ["parcel", "courier", "late"]]
    with (tmp_path / "data.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "body", "kind"])
        for i in range(80):
            text = " ".join(rng.choice([*words[i % 2], "the", "my", "please", "when"], size=8))
            number = round(40 + 20 * (i % 2) + rng.normal(), 2)
            lines.writerow([f"n{i}", text if kind == "text" else number, "ab"[i % 2] if i < 60 else ""])
    settings = {"text": "body"} if kind == "text" else {}
    made = Project.create(tmp_path / "data.balent", tmp_path / "data.csv", id="id", target="kind", **settings)
    made.compute_features()
    found = levels(doctor("data.csv", "--json"))
    assert not {"warning", "failure"} & set(found.values())
    assert found["meaning"] == "ok"


def test_nothing_is_written(doctor, project, tmp_path):
    project.retract(["item 1", "item 2"])
    project.ask(2)
    before = everything(tmp_path)
    doctor("rows.npy")
    assert everything(tmp_path) == before


def test_a_folder_that_is_read_only_is_enough(doctor, project, tmp_path, monkeypatch):
    """Root may write anywhere, so the test watches system calls: none opens a file to write, or makes a folder."""

    def refuse(event, arguments):
        wanted = {"os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate"}
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if watched and (event in wanted or writes) and str(tmp_path / "rows.balent") in str(arguments[0]):
            raise PermissionError(f"{event} {arguments}")

    watched = True
    sys.addaudithook(refuse)
    try:
        assert "κ 1.00" in doctor("rows.npy")
    finally:
        watched = False  # a hook stays as long as the process


def test_a_network_of_ones_own_without_dropout_is_found_before_anybody_labels(doctor, tmp_path, truth):
    made = Project.create(
        tmp_path / "rows.balent",
        tmp_path / "rows.npy",
        classes=CLASSES,
        model=str(tmp_path / "models.py:without_dropout"),
    )
    made.compute_features()
    said = doctor("rows.balent", code=1)
    assert "failure  draws            the model gives no draws: the model has no dropout" in said
    assert "→ add nn.Dropout" in said


def test_a_network_without_dropout_is_a_finding_where_random_checks_wait_for_a_model(doctor, tmp_path):
    """Bug: the accuracy of a model that gives no draws ended in an error."""
    known = clusters(tmp_path, items=150)
    model = str(tmp_path / "models.py:without_dropout")
    made = Project.create(
        tmp_path / "rows.balent", tmp_path / "rows.npy", ids=tmp_path / "ids.txt", classes=CLASSES, model=model, audit=1
    )
    asked = made.ask(24)
    made.tell({item.id: known[item.id] for item in asked})
    found = levels(doctor("rows.balent", "--json", code=1))
    assert found["draws"] == "failure"
    assert found["classes"] == "ok"


def test_a_network_with_dropout_passes_before_anybody_labels(doctor, tmp_path, truth):
    made = Project.create(
        tmp_path / "rows.balent", tmp_path / "rows.npy", classes=CLASSES, model=str(tmp_path / "models.py:for_project")
    )
    made.compute_features()
    assert levels(doctor("rows.balent", "--json"))["draws"] == "ok"


def test_one_class_only_spoils_a_run(doctor, tmp_path, truth):
    made = Project.create(tmp_path / "rows.balent", tmp_path / "rows.npy", classes=CLASSES)
    made.compute_features()
    made.tell({str(i): "cat" for i in range(29)})
    assert levels(doctor("rows.balent", "--json"))["classes"] == "open"
    made.tell({"29": "cat"})
    assert levels(doctor("rows.balent", "--json", code=1))["classes"] == "failure"


# ── models with their pools ──────────────────────────────────────────────────────────────────────────


def test_a_model_and_its_pool(doctor):
    found = levels(doctor("models.py:network", "rows.npy", "--json"))
    assert found["draws"] == found["duplicates"] == found["near-duplicates"] == found["features"] == "ok"
    assert found["calibration"] == found["classes"] == "open"


def test_a_model_whose_dropout_is_dead(doctor):
    said = doctor("models.py:network(dropout=0.0)", "rows.npy", code=1)
    assert "dropout never drops: p = 0" in said


def test_one_draw_is_a_warning(doctor):
    assert levels(doctor("models.py:network", "rows.npy", "--draws", 1, "--json"))["draws"] == "warning"


def test_labelled_points_that_the_model_has_not_seen(doctor, truth, tmp_path):
    y = np.array([CLASSES.index(name) for name in truth.values()])
    np.savez(tmp_path / "known.npz", x=np.load("rows.npy"), y=y)
    found = levels(doctor("models.py:network", "rows.npy", "--labelled", "known.npz", "--json"))
    assert found["meaning"] == found["classes"] == "ok"  # by its neighbours: the network is not trained


def test_a_stream_is_read_once_and_extrapolated(doctor):
    said = doctor("models.py:network", "models.py:stream")
    assert "300 of a stream of points compared" in said
    assert "one pass over each million points of the stream" in said


def test_a_pool_of_shards(doctor, tmp_path, truth):
    (tmp_path / "shards").mkdir()
    rows = np.load(tmp_path / "rows.npy")
    np.save(tmp_path / "shards" / "0.npy", rows)
    np.save(tmp_path / "shards" / "1.npy", rows[:30])
    said = doctor("models.py:network", "shards")
    assert "warning  duplicates       33.3% are exact duplicates of others (90 points compared)" in said


def test_numbers_that_are_none_are_found(doctor, tmp_path):
    rows = np.load(tmp_path / "rows.npy")
    rows[7, 3] = np.nan
    np.save(tmp_path / "bad.npy", rows)
    found = levels(doctor("models.py:network", "bad.npy", "--json", code=1))
    assert found["features"] == "failure"


# ── what it refuses ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing"], "is neither data nor a project"),
        (["rows.npy"], "has no project yet"),
        (["models.py:network"], "a model needs a pool: balent doctor models.py:network POOL"),
        (["rows.npy", "--draws", "5"], "--draws belongs to a model and its pool"),
        (["models.py:network", "rows.npy", "--project", "x"], "--project belongs to a project"),
        (["models.py:network", "rows.npy", "--draws", "many"], '--draws must be a number, "auto" or "analytic"'),
        (["models.py:network", "rows.npy", "--strategy", "bal"], "did you mean bald"),
        (
            ["models.py:network", "rows.npy", "--labelled", "models.py:no_pair"],
            "must make a pair (x, y), but made Tensor",
        ),
        (["models.py:untrained", "rows.npy"], "Logistic has learnt nothing yet"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(doctor, words, reason):
    assert reason in doctor(*words, code=2)
