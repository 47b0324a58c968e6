"""A labelling project by commands alone: every command, every road to a project, and what is refused."""

import csv
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers.labelling import CLASSES, clusters, pictures
from typer.testing import CliRunner

from balent import Project
from balent.apps import cli

MAKE = ("--classes", ",".join(CLASSES), "--ids", "ids.txt")


@pytest.fixture
def truth(tmp_path):
    return clusters(tmp_path)


@pytest.fixture
def run(tmp_path, truth, monkeypatch):
    """Runs `balent …` in a directory with rows.npy and ids.txt in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", 200)

    def invoke(*words, code=0):
        result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return invoke


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def answer(asked, answers, truth):
    """What a person does: adds a column of labels to a file of questions."""
    rows = table(asked)
    with open(answers, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "label"])
        writer.writeheader()
        writer.writerows({**row, "label": truth[row["id"]]} for row in rows)


def rounds(run, truth, number, k=10):
    for i in range(number):
        run("ask", "rows.npy", *(MAKE if i == 0 else ()), "-k", k, "-o", "ask.csv")
        answer("ask.csv", "answers.csv", truth)
        run("tell", "rows.npy", "answers.csv", "--who", "ann")


# ── every command ────────────────────────────────────────────────────────────────────────────────


def test_from_data_to_predictions_by_commands(run, truth):
    rounds(run, truth, 3)
    said = run("predict", "rows.balent", "-o", "p.csv").stderr
    assert "wrote p.csv\n60 predictions; how good they are: balent status rows.balent\n" in said
    lines = table("p.csv")
    assert list(lines[0]) == ["id", "label", "probability", "uncertainty", "given", "fingerprint"]
    assert sum(line["label"] == truth[line["id"]] for line in lines) >= 57
    assert sum(bool(line["given"]) for line in lines) == 30


def test_status_has_what_scripts_read(run, truth):
    rounds(run, truth, 1)
    found = json.loads(run("status", "rows.npy", "--json").stdout)
    assert (found["items"], found["labelled"], found["skipped"], found["accuracy"]) == (60, 10, 0, None)
    assert list(found["classes"]) == CLASSES
    assert sum(found["classes"].values()) == 10
    assert isinstance(found["advice"], list)


def test_status_is_readable(run, truth):
    rounds(run, truth, 1)
    run("ask", "rows.npy", "-k", 2)
    lines = run("status", "rows.npy").stdout.splitlines()
    assert lines[0].startswith("rows.balent: 60 items of ")
    assert lines[1] == "labels      10 labelled, 2 pending"
    assert lines[2] == "accuracy    too few yet: 2 of 20 random checks answered"
    assert lines[3].startswith("classes     cat ")
    assert "people      ann 10" in lines
    assert lines[-1] == "advice      accuracy is shown from 20 random checks on; 2 are answered"


def test_asking_again_gives_new_items_and_pending_repeats_the_unanswered_ones(run, truth):
    run("ask", "rows.npy", *MAKE, "-k", 6, "-o", "one.csv")
    run("ask", "rows.npy", "-k", 6, "-o", "two.csv")
    one, two = ([row["id"] for row in table(name)] for name in ("one.csv", "two.csv"))
    assert len({*one, *two}) == 12
    answer("one.csv", "answers.csv", truth)
    assert run("tell", "rows.npy", "answers.csv").stdout == "6 labelled, 0 skipped, 0 unanswered\n"
    run("ask", "rows.npy", "--pending", "-o", "three.csv")
    assert table("three.csv") == table("two.csv")


def test_questions_are_a_table_without_a_file_and_json_lines_by_their_ending(run):
    lines = run("ask", "rows.npy", *MAKE, "-k", 3).stdout.splitlines()
    assert lines[0].split() == ["rank", "id", "guess", "probability", "why"]
    assert len(lines) == 4
    run("ask", "rows.npy", "--pending", "-o", "ask.jsonl")
    with open("ask.jsonl", encoding="utf-8") as file:
        assert [json.loads(line)["rank"] for line in file] == [1, 2, 3]


def test_random_checks_are_asked_before_there_are_features(run):
    run("ask", "rows.npy", *MAKE, "-k", 4, "--no-wait", "-o", "ask.csv")
    assert {row["why"] for row in table("ask.csv")} == {"random check"}
    assert not os.path.exists("rows.balent/features")


def test_labels_need_no_question(run, truth):
    run("ask", "rows.npy", *MAKE, "-k", 1)
    with open("free.csv", "w") as file:
        file.write("id,label\nitem 7,dog\n")
    assert "1 labelled" in run("tell", "rows.npy", "free.csv").stdout


def test_other_data_are_predicted_into_a_file(run, truth):
    """The ids of other rows of numbers are their row numbers."""
    rounds(run, truth, 2)
    np.save("new.npy", np.load("rows.npy")[:9] + np.float32(0.01))
    assert "name the file to write" in run("predict", "rows.balent", "new.npy", code=2).stderr
    run("predict", "rows.balent", "new.npy", "-o", "p.csv")
    found = {row["id"]: row["label"] for row in table("p.csv")}
    assert found == {str(i): truth[f"item {i}"] for i in range(9)}


def test_classes_are_listed_added_renamed_and_merged(run, truth):
    rounds(run, truth, 1)
    run("classes", "rows.npy", "--add", "cow", "--add", "a=b", "--rename", "cat=cats", "--note", "a=b=c=d")
    run("classes", "rows.npy", "--merge", "cow=dog", "--key", "dog=x")
    lines = [line.split() for line in run("classes", "rows.npy").stdout.splitlines()]
    assert lines[0] == ["class", "labels", "key", "note"]
    assert [line[0] for line in lines[1:]] == ["cats", "dog", "bird", "a=b"]
    assert lines[2][2] == "x"
    assert lines[4][3] == "c=d"
    assert "NAME=TEXT was expected, but 'cow' has no =" in run("classes", "rows.npy", "--rename", "cow", code=2).stderr
    assert "the class 'cow' is not known" in run("classes", "rows.npy", "--rename", "cow=x", code=2).stderr


def test_labels_are_exported(run, truth, tmp_path):
    rounds(run, truth, 1)
    said = run("export", "rows.npy", "-o", "labels.csv").stderr
    assert said == "wrote labels.csv\n10 items\n"
    assert {row["id"]: row["label"] for row in table("labels.csv")}.items() <= truth.items()
    assert "the format must be one of" in run("export", "rows.npy", "--format", "x", "-o", "y", code=2).stderr
    run("export", "rows.npy", "--format", "jsonl")
    assert len((tmp_path / "rows.balent" / "exports" / "labels.jsonl").read_text().splitlines()) == 10


def test_a_file_of_answers_that_is_refused_changes_nothing(run, truth):
    rounds(run, truth, 1)
    with open("bad.csv", "w") as file:
        file.write("id,label\nitem 7,dog\nitem 8,cow\n")
    said = run("tell", "rows.npy", "bad.csv", code=2).stderr
    assert said.startswith("error: bad.csv, line 3: the class 'cow' is not known")
    assert json.loads(run("status", "rows.npy", "--json").stdout)["labelled"] == 10
    assert "new classes: cow" in run("tell", "rows.npy", "bad.csv", "--add-classes").stdout


# ── roads to a project ───────────────────────────────────────────────────────────────────────────


def test_a_project_lies_beside_its_data_and_is_found_by_either(run, tmp_path):
    pictures(tmp_path / "photos.2024", ["a.png", "b/c.png"])
    run("ask", "photos.2024/", "--classes", "cat,dog", "-k", 1, "--no-wait", code=2)  # no random check among two
    assert os.path.exists("photos.2024.balent/project.toml")
    for words in (["photos.2024"], ["photos.2024.balent"], [tmp_path / "photos.2024" / "b" / ".."]):
        assert "2 items of" in run("status", *words).stdout


def test_the_current_folder_can_be_the_data(run, tmp_path, monkeypatch):
    pictures(tmp_path / "photos", ["a.png"])
    monkeypatch.chdir(tmp_path / "photos")
    run("ask", ".", "--classes", "cat,dog", "--no-wait", code=2)
    assert (tmp_path / "photos.balent" / "project.toml").exists()


def test_a_project_can_be_elsewhere(run, truth):
    run("ask", "rows.npy", *MAKE, "-k", 2, "--project", "deep/down/p")
    assert not os.path.exists("rows.balent")
    assert "60 items" in run("status", "rows.npy", "--project", "deep/down/p").stdout
    assert "60 items" in run("status", "deep/down/p").stdout


def test_a_place_that_cannot_be_written_to_is_named_with_the_way_out(run, tmp_path):
    """As root, nothing is write-protected except what the kernel makes."""
    where = ["--project", "/proc/p.balent"]
    if os.geteuid():
        os.mkdir("locked")
        shutil.copy("rows.npy", "locked/rows.npy")
        os.chmod("locked", 0o500)
        where = []
    data = "rows.npy" if where else "locked/rows.npy"
    said = run("ask", data, "--classes", "cat,dog", *where, code=2).stderr
    assert "cannot be made" in said
    assert "put the project elsewhere: --project DIR" in said


def test_data_that_have_moved_are_named_once(run, truth):
    rounds(run, truth, 1)
    os.mkdir("new")
    for name in ("rows.npy", "ids.txt"):
        shutil.move(name, f"new/{name}")
    assert "name their place: --data" in run("ask", "rows.balent", code=2).stderr
    run("ask", "rows.balent", "-k", 2, "--data", "new/rows.npy")
    run("ask", "rows.balent", "-k", 2)
    found = json.loads(run("status", "rows.balent", "--json").stdout)
    assert (found["items"], found["labelled"], found["removed"]) == (60, 10, 0)


def test_a_project_of_other_data_is_not_taken(run, truth, tmp_path):
    run("ask", "rows.npy", *MAKE, "-k", 1)
    pictures(tmp_path / "rows", ["a.png"])
    said = run("ask", "rows", "--classes", "cat,dog", code=2).stderr
    assert "rows.balent is the project of" in said
    assert "give --project DIR" in said


@pytest.mark.parametrize("command", [["status"], ["predict"], ["classes"], ["export", "-o", "x"], ["tell"]])
def test_other_commands_say_how_a_project_is_made(run, command):
    words = [command[0], "rows.npy", *(["x"] if command == ["tell"] else []), *command[1:]]
    assert "make one: balent ask rows.npy --classes NAME,NAME" in run(*words, code=2).stderr


def test_a_path_that_leads_nowhere_is_named(run):
    assert "nowhere is neither data nor a project" in run("status", "nowhere", code=2).stderr
    assert "nowhere does not exist" in run("ask", "nowhere", code=2).stderr


# ── options of creation ──────────────────────────────────────────────────────────────────────────

OPTIONS = [
    ("--text", "body"),
    ("--id", "number"),
    ("--target", "kind"),
    ("--features", "tfidf"),
    ("--ids", "others.txt"),
    ("--model", "mine.py:factory"),
    ("--strategy", "random"),
    ("--seed", "3"),
    ("--audit", "4"),
    ("--overlap", "2"),
    ("--duplicates", "keep"),
    ("--follow-links",),
    ("--goal", "0.9"),
]


@pytest.mark.parametrize("option", OPTIONS, ids=[option[0] for option in OPTIONS])
def test_another_value_for_a_project_that_exists_is_refused_with_where_to_change_it(run, option):
    run("ask", "rows.npy", *MAKE, "-k", 1)
    before = (Project("rows.balent").settings, os.path.getsize("rows.balent/journal.ndjson"))
    said = run("ask", "rows.npy", *option, code=2).stderr
    name = option[0][2:].replace("-", "_")
    assert f"rows.balent has {name} = " in said
    assert f"edit {name} in rows.balent/project.toml" in said
    assert before == (Project("rows.balent").settings, os.path.getsize("rows.balent/journal.ndjson"))


def test_equal_values_may_be_repeated(run, tmp_path):
    (tmp_path / "mine.py").write_text("def factory(inputs, classes): ...\n")
    same = [*MAKE, "--seed", 3, "--goal", 0.9, "--audit", 4, "--strategy", "random", "--model", "mine.py:factory"]
    run("ask", "rows.npy", *same, "-k", 1, "--no-wait")
    run("ask", "rows.npy", *same, "--pending")
    run("ask", "rows.npy", "--classes", "dog", "--pending")
    said = run("ask", "rows.npy", "--classes", "dog,cow", code=2).stderr
    assert "has no class 'cow'; its classes are cat, dog, bird; add it: balent classes rows.balent --add cow" in said


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (("--strategy", "nonsense"), "there is no strategy 'nonsense'"),
        (("--model", "nowhere.py:forest"), "there is no file nowhere.py"),
        (("--features", "nowhere"), "nowhere is not a folder with an ONNX model"),
        (("--ids", "ids.txt"), "have no use for ids"),
    ],
)
def test_an_option_that_leads_nowhere_leaves_no_project(run, option, complaint):
    """It was a setting of the project then, and giving another one was refused."""
    with open("tickets.csv", "w") as file:
        file.write("body\nmy card is lost\nwhere is my card\n")
    assert complaint in run("ask", "tickets.csv", "--text", "body", "--classes", "a,b", *option, code=2).stderr
    assert not os.path.exists("tickets.balent")


def test_a_backbone_that_leads_nowhere_leaves_no_project(run, tmp_path):
    pictures(tmp_path / "photos", ["a.png", "b.png"])
    said = run("ask", "photos", "--classes", "cat,dog", "--features", "./nowhere.pth", code=2).stderr
    assert "nowhere.pth" in said
    assert not os.path.exists("photos.balent")


def test_users_files_are_found_from_any_folder(run, truth, tmp_path, monkeypatch):
    """A strategy of one's own was looked for in the current folder at each command."""
    (tmp_path / "mine.py").write_text("def first(moments):\n    return moments.mean[:, 0]\n")
    same = (*MAKE, "--strategy", "mine.py:first")
    run("ask", "rows.npy", *same, "-k", 10, "-o", "ask.csv")
    run("ask", "rows.npy", *same, "--pending")
    answer("ask.csv", "answers.csv", truth)
    run("tell", "rows.npy", "answers.csv")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run("ask", "../rows.npy", "-k", 5, "-o", "ask.csv")
    assert len(table("ask.csv")) == 5


def test_what_cannot_be_read_leaves_no_project(run):
    with open("table.npy", "w") as file:
        file.write("no array")
    run("ask", "table.npy", code=2)
    assert not os.path.exists("table.balent")


def test_data_without_items_leave_no_project_and_it_is_said_what_is_expected(run):
    """The folder of a project was left behind, and the next try complained about its classes."""
    os.makedirs("notes/sub")
    with open("notes/sub/readme.txt", "w") as file:
        file.write("hello")
    with open("empty.csv", "w") as file:
        file.write("id,body\n")
    assert "notes has no images; name a folder with files that end in .jpg" in run("label", "notes", code=2).stderr
    assert "empty.csv has no rows; each item is a row" in run("label", "empty.csv", code=2).stderr
    assert not os.path.exists("notes.balent")
    assert not os.path.exists("empty.balent")


def test_classes_may_be_given_later_to_a_project_that_has_none(run):
    run("ask", "rows.npy", "--ids", "ids.txt", "-k", 1)
    run("ask", "rows.npy", "--classes", "cat,dog", "--pending")
    assert [*Project("rows.balent").state.classes.names()] == ["cat", "dog"]


def test_who_forgets_the_column_with_the_texts_is_told(run):
    rows = [f"{i},the courier lost my parcel {i} again" for i in range(30)]
    with open("tickets.csv", "w") as file:
        file.write("\n".join(["number,body", *rows]))
    said = run("ask", "tickets.csv", "--classes", "a,b", "-k", 1, "--no-wait").stderr
    assert "if the column 'body' has texts to label, remove tickets.balent and give --text body" in said
    shutil.rmtree("tickets.balent")
    assert "whole rows" not in run("ask", "tickets.csv", "--text", "body", "--classes", "a,b", "--no-wait").stderr


def test_features_that_were_computed_elsewhere_belong_to_ids(run, tmp_path):
    """Rows are in another order than the files, and one picture has none."""
    truth = {f"{i:02d}.png": ("cat", "dog")[i % 2] for i in range(30)}
    pictures(tmp_path / "photos", truth)
    ids = [*truth][:0:-1]
    np.save("mine.npy", np.array([[1.0, truth[id] == "dog", i / 100] for i, id in enumerate(ids)]))
    (tmp_path / "mine.txt").write_text("\n".join(ids))
    make = ("--classes", "cat,dog", "--features", "mine.npy", "--ids", "mine.txt")
    said = run("ask", "photos", *make, "-k", 8, "-o", "ask.csv").stderr
    assert "00.png is left out: it has no row in mine.npy" in said
    assert table("ask.csv")[0]["image"].endswith(".png")
    answer("ask.csv", "answers.csv", truth)
    run("tell", "photos", "answers.csv")
    os.rename("photos/07.png", "photos/seven.png")
    run("ask", "photos", *make, "-k", 4)
    run("predict", "photos", "-o", "p.csv")
    found = {row["id"]: row["label"] for row in table("p.csv")}
    expected = {("seven.png" if id == "07.png" else id): truth[id] for id in ids}
    assert found == expected
    np.save("other.npy", np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
    run("predict", "photos", "other.npy", "-o", "other.csv")
    assert [row["label"] for row in table("other.csv")] == ["cat", "dog"]
    assert "compute those of photos there too" in run("predict", "photos", "photos", "-o", "x.csv", code=2).stderr


def test_features_in_a_file_need_ids(run, tmp_path):
    pictures(tmp_path / "photos", ["a.png"])
    assert "need ids" in run("ask", "photos", "--features", "rows.npy", code=2).stderr
    assert "without --features" in run("ask", "rows.npy", "--features", "rows.npy", code=2).stderr
    assert not os.path.exists("photos.balent")


def test_files_that_cannot_be_read_are_named(run, tmp_path):
    pictures(tmp_path / "photos", ["a.png", "b.png", "c.png"])
    (tmp_path / "photos" / "broken.png").write_bytes(b"no image")
    said = run(
        "ask", "photos", "--classes", "cat,dog", "--features", "random:resnet18", "-k", 2, "-o", "ask.csv"
    ).stderr
    assert "broken.png is left out: not an image" in said


def test_a_folder_with_damaged_files_alone_says_so(run, tmp_path):
    """Nothing was said of files that cannot be read, as long as none could."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "broken.png").write_bytes(b"no image")
    (tmp_path / "photos" / "phone.HEIC").write_bytes(b"....ftypheic")
    said = run("ask", "photos", "--classes", "cat,dog", "--features", "random:resnet18", code=2).stderr
    assert "broken.png is left out: not an image" in said
    assert "phone.HEIC is left out: in a format of Apple's that Pillow does not read; convert it to JPEG" in said
    assert "no item is left to ask" in said
    assert "2 cannot be read" in said


def test_links_are_listed_by_status(run, tmp_path):
    """Of more than three files that are left out, status was said to list all, but did not."""
    pictures(tmp_path / "photos", ["a.png", "b.png"])
    for i in range(4):
        (tmp_path / "photos" / f"link {i}.png").symlink_to("/nowhere")
    run("ask", "photos", "--classes", "cat,dog", "--no-wait", "--audit", 1, "--features", "random:resnet18", code=2)
    left_out = json.loads(run("status", "photos", "--json").stdout)["left_out"]
    assert left_out == {f"link {i}.png": "a link; --follow-links includes it" for i in range(4)}
    assert "left out    link 0.png: a link" in run("status", "photos").stdout


def test_predictions_that_cannot_be_written_say_where(run, truth):
    rounds(run, truth, 1)
    said = run("predict", "rows.npy", "-o", "nowhere/p.csv", code=2).stderr
    assert "nowhere/p.csv: No such file or directory" in said
    assert "free space" not in said


# ── speed, interruption ──────────────────────────────────────────────────────────────────────────


def test_help_does_not_wait_for_torch():
    program = (
        "import sys; from balent.apps.cli import projects, opened; import balent.project.exchange, "
        "balent.project.telling, balent.project.exports, balent.project.project; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_ctrl_c_ends_in_a_sentence(run, monkeypatch):
    from balent.project.features import AsTheyAre

    def stops(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(AsTheyAre, "__call__", stops)
    said = run("ask", "rows.npy", *MAKE, code=130).stderr
    assert "everything done so far is kept. Run the same command again to continue" in said
    monkeypatch.undo()


def test_questions_that_cannot_be_written_are_kept(run, tmp_path):
    said = run("ask", "rows.npy", *MAKE, "-k", 3, "-o", "nowhere/ask.csv", code=2).stderr
    assert "the questions are kept; write them to another file: balent ask rows.balent --pending -o FILE" in said
    run("ask", "rows.npy", "--pending", "-o", "ask.csv")
    assert len(table("ask.csv")) == 3


def test_progress_ends_with_a_line_that_says_so(monkeypatch):
    """The last line was "0 of 60 features", if the rest took less time than lines are apart."""
    from io import StringIO

    from rich.console import Console

    from balent.apps.cli import screen

    monkeypatch.setattr(screen, "QUIET", 0.0)
    console = Console(file=StringIO(), width=100)
    with screen.pace("features", console) as show:
        show(0, 60, "")
        monkeypatch.setattr(screen, "QUIET", 10.0)
        show(30, 60, "")
        show(60, 60, "")
    lines = console.file.getvalue().splitlines()
    assert [line.split(" features")[0] for line in lines] == ["0 of 60", "60 of 60"]
