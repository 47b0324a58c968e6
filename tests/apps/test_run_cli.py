"""balent run: the same records side by side or one after the other, stopped or not, and errors in one sentence."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers.formats import picture, write_files
from helpers.runs import lines, timeless
from typer.testing import CliRunner

from balent.apps import cli

SMALL = [
    word for s in ("epochs=3", "draws=5", "evaluation_draws=5", "total=12", "per_round=3") for word in ("--set", s)
]


def invoke(*words, code=0):
    result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def found(runs):
    return {str(path.relative_to(runs)): timeless(lines(path)) for path in sorted(runs.rglob("records.jsonl"))}


def test_side_by_side_or_one_after_the_other_records_are_the_same(tmp_path):
    for jobs in (1, 2):
        said = invoke("run", "moons", "--strategies", "bald,random", "--seeds", 2, *SMALL, "--jobs", jobs,
                      "--out", tmp_path / str(jobs))  # fmt: skip
    one, two = (found(tmp_path / str(jobs)) for jobs in (1, 2))
    assert one == two
    assert list(one) == [f"moons/{s}/seed-{n}/records.jsonl" for s in ("bald", "random") for n in (0, 1)]
    assert "moons: accuracy in %" in said.stdout
    assert "between bald and random" in said.stdout or "bald is" in said.stdout
    assert "bald, seed 1: 12 labels" in said.stderr
    assert (tmp_path / "1" / "moons" / "report.html").stat().st_size > 1000
    again = invoke("run", "moons", "--strategies", "bald", *SMALL, "--out", tmp_path / "1", code=2)
    assert "holds a run already; go on with it by --resume" in again.stderr
    invoke("report", tmp_path / "1", "--csv", tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().startswith("experiment,strategy,seeds")


def test_ones_own_features_are_compared_and_what_is_left_is_taken(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    x = (rng.standard_normal((30, 4)) + y[:, None]).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    words = ("--set", "epochs=3", "--set", "draws=5", "--seeds", 1, "--strategies", "entropy,random")
    said = invoke("run", "features", "--data", tmp_path / "mine.npz", *words, "--out", tmp_path)
    assert said.stderr.count("20 points were requested, but only 10 are left: these are asked") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["digit"], "there is no experiment 'digit'; did you mean digits?"),
        (["digits", "--strategies", "bald,randm"], "there is no strategy 'randm'; did you mean random"),
        (
            ["digits", "--data", "moon"],
            "there is no data set 'moon', and no folder or file of that name; did you mean moons?",
        ),
        (["digits", "--set", "epoch=3"], "there is no setting 'epoch'; did you mean epochs?"),
        (["digits", "--set", "epochs=x"], "epochs must be a whole number, but is 'x'"),
        (["features"], "balent run features --data FILE.npz"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, words, said):
    assert said in invoke("run", *words, "--out", tmp_path / "runs", code=2).stderr
    assert not (tmp_path / "runs").exists()


def unlabelled(tmp_path):
    pytest.importorskip("PIL")
    write_files(tmp_path / "photos", {f"{i}.png": picture((8, 8, 3), seed=i) for i in range(4)})
    return tmp_path / "photos"


def test_data_without_labels_are_one_error_before_any_run_starts(tmp_path, monkeypatch):
    """Defect: one mistake was said 18 times after 26 seconds, and then "other runs are complete"."""
    monkeypatch.setattr("balent.simulation.jobs.side_by_side", lambda *a, **b: pytest.fail("a run was started"))
    said = invoke("run", "digits", "--data", unlabelled(tmp_path), "--out", tmp_path / "runs", code=2).stderr
    assert said.count("an experiment needs the label of every point, but 4 of 4 points have none") == 1
    assert "complete" not in said
    assert not (tmp_path / "runs").exists()


def test_how_many_runs_are_complete_is_counted(tmp_path, monkeypatch):
    """Defect: when all had failed, "other runs are complete" was said."""
    failed = ["bald, seed 0: no", "random, seed 0: no"]
    monkeypatch.setattr("balent.simulation.jobs.side_by_side", lambda *a, **b: iter(()))
    monkeypatch.setattr("balent.apps.cli.screen.watch", lambda *a: failed)
    words = ("--strategies", "bald,random", "--seeds", 1, "--out", tmp_path / "runs")
    assert "0 of 2 runs are complete; go on with" in invoke("run", "moons", *words, code=2).stderr


def test_data_in_a_folder_whose_name_is_not_utf_8_are_run(tmp_path):
    """Defect: UnicodeEncodeError when the first record was written."""
    path = tmp_path / os.fsdecode(b"caf\xe9.npz")
    x, y = np.random.default_rng(0).random((30, 4), np.float32), np.arange(30) % 2
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
    words = ("--set", "epochs=1", "--set", "draws=2", "--set", "total=20", "--seeds", 1, "--strategies", "random")
    invoke("run", "features", "--data", path, *words, "--out", tmp_path / "runs")
    assert [record["spec"]["data"] for record in lines(next((tmp_path / "runs").rglob("records.jsonl")))] == [str(path)]


def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "runs").write_text("a file")
    said = invoke("run", "moons", *SMALL, "--strategies", "random", "--seeds", 1, "--out", tmp_path / "runs", code=2)
    assert "cannot be written: Not a directory" in said.stderr


def started(*words):
    # Shells start background jobs with Ctrl-C ignored, and a child inherits that.
    code = "import signal as s; s.signal(s.SIGINT, s.default_int_handler); from balent.apps.cli import app; app()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_stopped_by_ctrl_c_or_killed_it_goes_on_with_resume(tmp_path, kill):
    # One run after the other: the second is yet to come when the signal arrives, on a busy machine too.
    words = ("run", "moons", "--strategies", "bald,random", "--seeds", 1, *SMALL, "--set", "epochs=300", "--jobs", 1)
    with started(*words, "--out", tmp_path / "runs") as process:
        while not list(tmp_path.rglob("records.jsonl")):
            time.sleep(0.02)
            assert process.poll() is None
        process.send_signal(kill)
        said = process.communicate()[1]
    if kill == signal.SIGINT:
        assert process.returncode == 130
        assert "Go on with: balent run moons" in said
        assert said.strip().endswith("--resume")
    invoke(*words, "--out", tmp_path / "runs", "--resume")
    invoke(*words, "--out", tmp_path / "whole")
    assert found(tmp_path / "runs") == found(tmp_path / "whole")


def test_a_folder_serves_the_data_set_that_a_setting_names(tmp_path):
    """Bug: whether --data is a folder was asked of the experiment as it stands, before its settings."""
    (tmp_path / "sets").mkdir()
    words = ("digits", "--set", "data=mnist", "--data", tmp_path / "sets", "--seeds", 1, "--strategies", "random")
    assert str(tmp_path / "sets") in invoke("run", *words, "--out", tmp_path / "runs", code=2).stderr
