"""balent connect as a command: what it says, what it refuses, and what it never shows."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from helpers.label_studio import LEGACY, PERSONAL
from helpers.labelling import of_pictures
from typer.testing import CliRunner

from balent import Project
from balent.apps import cli
from balent.project.log import held


@pytest.fixture
def run(tmp_path, project, url, monkeypatch):
    """Runs `balent connect labelstudio rows.balent …` with a token in a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token.txt").write_text(PERSONAL + "\n")

    def invoke(*words, code=0, token=("--token-file", "token.txt"), place="rows.balent", tool="labelstudio"):
        line = ["connect", tool, place, "--url", url, *token, "-k", "10", *map(str, words)]
        result = CliRunner().invoke(cli.app, line, catch_exceptions=False)
        assert result.exit_code == code, result.output
        assert PERSONAL not in result.output
        assert LEGACY not in result.output
        return " ".join(result.output.split())

    return invoke


def test_once_makes_the_project_and_says_how_it_stands(run, stub):
    said = run("--title", "thirty rows")
    assert "made project 1 of http://127.0.0.1" in said
    assert "0 labels and 0 skips read; 0 of 30 items labelled, 10 questions open, 30 tasks" in said
    assert stub.projects[1]["title"] == "thirty rows"
    stub.annotate(stub.task_of("item 1"), "dog")
    stub.annotate(stub.task_of("item 2"), skipped=True)
    said = run()
    assert "found project 1" in said
    assert "1 labels and 1 skips read; 1 of 30 items labelled" in said


def test_the_token_may_come_from_the_environment(run, stub, monkeypatch):
    monkeypatch.setenv("LABEL_STUDIO_TOKEN", LEGACY)
    run(token=())
    assert len(stub.tasks) == 30


def test_bad_tokens_are_refused_in_a_sentence(run, tmp_path, monkeypatch):
    monkeypatch.delenv("LABEL_STUDIO_TOKEN", raising=False)
    assert "error: the environment variable LABEL_STUDIO_TOKEN has no token" in run(token=(), code=2)
    assert "nowhere.txt: No such file" in run(token=("--token-file", "nowhere.txt"), code=2)
    (tmp_path / "wrong.txt").write_text("very.wrong.token")
    said = run(token=("--token-file", "wrong.txt"), code=2)
    assert "refuses the token from wrong.txt" in said
    assert "very.wrong.token" not in said


def test_there_is_no_option_for_a_token(run):
    assert "No such option" in run("--token", PERSONAL[:2], code=2)


def test_other_tools_and_projects_without_classes_are_refused(run, tmp_path):
    assert "the tool must be labelstudio, but is 'prodigy'" in run(tool="prodigy", code=2)
    of_pictures(tmp_path, ["a.png"], classes=[])
    assert "needs the classes first: balent classes" in run(place="photos.balent", code=2)


def test_a_second_connection_of_the_same_project_is_refused(run, project):
    with held(project.path / "connect.lock"):
        assert "connect.lock has been held by another process" in run(code=2)


def test_images_without_watch_are_said_not_to_be_served(run, tmp_path, stub):
    of_pictures(tmp_path, ["a.png", "b.png"])
    assert "annotators need --watch" in run(place="photos.balent")
    assert all("http://127.0.0.1:8766/media/" in task["data"]["image"] for task in stub.tasks.values())
    run("--images", "local", place="photos.balent")
    assert stub.tasks[stub.task_of("a.png")]["data"]["image"] == "/data/local-files/?d=photos/a.png"


def test_watch_reads_answers_until_it_is_interrupted(run, tmp_path, url, stub, project):
    """A process of its own, ended with Ctrl-C: it says so, and shows no token."""
    program = [sys.executable, "-c", "from balent.apps.cli import app; app()"]
    words = ["connect", "labelstudio", "rows.balent", "--url", url, "--token-file", "token.txt", "-k", "10"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    watching = subprocess.Popen(
        [*program, *words, "--watch", "--every", "0.1"], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: stub.projects and stub.projects[1]["model_version"])
        for id in (1, 2, 3):
            stub.annotate(stub.task_of(f"item {id}"), "cat")
        until(lambda: len(Project(project.path).state.last) == 3)
    finally:
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=120)
    assert watching.returncode == 0, said
    assert "ended; every label that was read is on disk" in said
    assert re.search(r"3 labels and 0 skips read", said)
    assert PERSONAL not in said


def until(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
