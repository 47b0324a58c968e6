"""balent run with code of one's own: the examples, each by its name, and code that changes under a run."""

import json
import shutil
from pathlib import Path

import pytest
from test_run_cli import SMALL, invoke

import balent
from balent.simulation.experiment import Experiment

EXAMPLES = Path(__file__).parents[2] / "examples"
FEW = ["--seeds", 1, *SMALL]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current directory with the examples in it, which is not the one that Python was started in."""
    monkeypatch.chdir(tmp_path)
    for path in EXAMPLES.glob("own_*.py"):
        shutil.copy(path, tmp_path)
    return tmp_path


def records(here, strategy, experiment="moons"):
    path = here / "runs" / experiment / strategy / "seed-0" / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_strategy_and_a_measure_by_name_run_side_by_side(here):
    """Workers find them from the directory of the command."""
    mine = ("own_strategy.py:Tournament(size=4)", "own_measure.py:runner_up")
    said = invoke("run", "moons", "--strategies", ",".join((*mine, "random")), *FEW, "--jobs", 2)
    assert all(name in said.stdout for name in mine)
    strategy, measure = (records(here, name.replace(":", "%3A")) for name in mine)
    assert [record["labels"] for record in strategy] == [6, 9, 12]
    assert strategy[0]["strategy"] == mine[0]
    assert measure[0]["picks"] != strategy[0]["picks"]
    assert measure[0]["code"].keys() == {"strategy"}


def test_a_predictor_and_a_data_format_by_name(here):
    from runpy import run_path

    run_path("own_data_format.py", run_name="__main__")
    words = ["--data", "own_data_format.py:read", "--set", "predictor=own_predictor.py:ClassMeans(scale=0.5)"]
    words += ["--strategies", "bald", "--seeds", 1, *SMALL, "--set", "start=6"]
    invoke("run", "features", *words)
    found = records(here, "bald", "features")
    assert found[-1]["accuracy"] > 0.6  # three classes, two standard deviations apart
    assert found[0]["code"].keys() == {"data", "predictor"}
    code = Path("own_predictor.py").read_text()
    Path("own_predictor.py").write_text(code.replace("(self.count + 1).sqrt()", "(self.count + 2).sqrt()"))
    said = invoke("run", "features", *words, "--resume", code=2).stderr
    assert "error: the code of own_predictor.py:ClassMeans(scale=0.5) has changed since" in said
    assert "restore the code to go on, remove" in said
    Path("own_predictor.py").write_text(code)
    invoke("run", "features", *words, "--resume")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--strategies", "nowhere.py:x"], "error: there is no file nowhere.py in "),
        (["--strategies", "own_measure.py:runner"], "error: own_measure.py has no function 'runner'; did you mean"),
        (["--strategies", "broken.py:x"], "error: broken.py cannot be imported (line 1): ZeroDivisionError"),
        (["--set", "predictor=own_predictor.py:Class"], "error: own_predictor.py has no function 'Class'"),
        (["--set", "network=own_predictor.py:net"], "error: own_predictor.py has no function 'net'"),
        (["--data", "own_data_format.py:reed"], "error: own_data_format.py has no function 'reed'; did you mean read"),
    ],
)
def test_mistakes_are_one_sentence_before_any_run_starts(here, monkeypatch, words, said):
    monkeypatch.setattr("balent.simulation.jobs.side_by_side", lambda *a, **b: pytest.fail("a run was started"))
    Path("broken.py").write_text("1 / 0\n")
    ended = invoke("run", "moons", *words, code=2)
    assert said in ended.stderr
    assert "Traceback" not in ended.output
    assert not (here / "runs").exists()


def test_acquire_and_score_take_names(here):
    Path("models.py").write_text(
        "import numpy as np, torch, balent\n"
        "def drawn(): return balent.Draws(np.random.default_rng(0).dirichlet(np.ones(3), (20, 5)))\n"
        "def pool(): return np.arange(20)\n"
    )
    table = [
        invoke("acquire", "models.py:drawn", "models.py:pool", "-k", 2, "-s", name, "-o", "-").stdout
        for name in ("own_measure.py:runner_up", "own_measure:runner_up", "entropy")
    ]
    assert table[0] == table[1] != table[2]
    said = invoke("score", "--example", "-m", "own_measure.py:runner_up", "--top", 1).stdout
    assert "own_measure.py:runner_up" in said


@pytest.mark.parametrize("strategy", ["../x/mine.py:s", f"/{'long/' * 80}mine.py:s", "a:b"])
def test_names_of_folders_are_visible_short_and_one_level_deep(strategy, monkeypatch):
    monkeypatch.setattr("balent.simulation.experiment.named", lambda name: None)
    place = Experiment("x", "moons", "m:f", strategy=strategy).directory(Path("runs"))
    assert len(place.parts) == 4
    assert not place.parts[2].startswith(".")
    assert len(place.parts[2]) < 200


def test_runs_of_different_code_are_not_averaged_in_silence(here):
    """Two seeds of one name, recorded by two versions of its code."""
    from balent.report import load
    from balent.report.load import groups

    spec = {"name": "x", "strategy": "mine.py:s"}
    for seed, code in ((0, "a"), (1, "b")):
        record = {"experiment": "x", "strategy": "mine.py:s", "seed": seed, "round": 0, "labels": 5, "accuracy": 0.5,
                  "nll": 1.0, "picks": [], "code": {"strategy": code}, "spec": spec | {"seed": seed}}  # fmt: skip
        Path(f"{seed}.jsonl").write_text(json.dumps(record) + "\n")
    (group,) = groups(load(here))
    assert any("mine.py:s were recorded with different code" in remark for remark in group.remarks)
    assert balent.__version__
