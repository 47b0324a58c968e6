"""Users' code by name: what a name can be, and what is said where there is nothing of that name."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.examples import probabilities

import balent
from balent import by_name, names
from balent.data.sources import Data, known, load
from balent.maths.named import measure
from balent.simulation.models import predictor
from balent.strategies import Power, TopK, strategy

MINE = """
from dataclasses import dataclass
import numpy as np
import torch
from balent import MEASURES, Picks
from balent.types import Needs

LIMIT = 2

def helper(m):
    return m.mean.amax(-1)

def sure(m, power=1.0):
    return helper(m) ** power * LIMIT

def unrelated(m):
    return m.mean[:, 0]

def first(sampled, pool, k, *, generator, start=0):
    at = pool.positions[start : start + k]
    return Picks(at, torch.zeros(len(at)))

first.needs = Needs(again=True)

@dataclass(frozen=True)
class First:
    start: int = 0

    def __call__(self, sampled, pool, k, *, generator):
        return first(sampled, pool, k, generator=generator, start=self.start)

second = First(1)

class Needy:
    def __init__(self, where): ...

def both(a, b):
    return a

def arrays(rows=4):
    x, y = np.eye(rows, 3, dtype=np.float32), np.arange(rows) % 2
    return {"x_train": x, "y_train": y, "x_test": x, "y_test": y}

def beside(folder):
    return {name: np.load(folder / f"{name}.npy") for name in ("x_train", "y_train", "x_test", "y_test")}

def nothing():
    return None

number = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """mine.py in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("mine.py").write_text(MINE)
    yield Path("mine.py")
    for name in ("mine", "lacks", "beside_it"):
        sys.modules.pop(name, None)


def picked(name, k=2):
    draws = probabilities(9, 4, 3)
    return balent.acquire(balent.Draws(draws), np.arange(9), k, name, seed=0).indices.tolist()


def largest(k, power=1.0):
    return probabilities(9, 4, 3).double().mean(1).amax(-1).pow(power).topk(k).indices.tolist()


def test_a_function_of_one_argument_is_a_measure_used_as_its_top_k(mine):
    assert isinstance(strategy("mine.py:sure"), TopK)
    assert picked("mine.py:sure") == picked("mine:sure") == largest(2)
    assert isinstance(strategy("power:mine.py:sure(beta=3)"), Power)
    assert strategy("mine.py:sure(power=2.0)").measure.keywords == {"power": 2.0}


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("mine.py:first", 0),
        ("mine.py:first(start=3)", 3),
        ("mine.py:First", 0),
        ("mine.py:First(start=4)", 4),
        ("mine.py:second", 1),
        ("mine.py:second(start=5)", 5),
        ("mine:first", 0),
    ],
)
def test_functions_classes_and_objects_are_strategies(mine, name, first):
    assert picked(name) == [first, first + 1]


def test_settings_leave_what_a_strategy_declares(mine):
    with pytest.raises(ValueError, match="reads points again, but a stream"):
        balent.acquire(balent.Draws(probabilities(3, 4, 3)), iter([np.arange(3)]), 1, "mine.py:first(start=1)")


def test_measures_by_name_score_and_select(mine):
    draws = probabilities(9, 4, 3)
    by_hand = 2 * draws.double().mean(1).amax(-1)
    assert torch.allclose(balent.score(draws, "mine.py:sure"), by_hand)
    assert balent.select(draws, "mine.py:sure", k=2).indices.tolist() == largest(2)


def test_a_path_may_have_brackets_spaces_and_a_folder(mine):
    Path("my code (1)").mkdir()
    mine.rename("my code (1)/mine.py")
    assert picked("my code (1)/mine.py:First(start=4)") == [4, 5]
    assert picked(f"{Path.cwd()}/my code (1)/mine.py:sure") == largest(2)


def test_a_file_sees_its_neighbours_and_hides_no_module(mine):
    Path("beside_it.py").write_text("def key(m):\n    return -m.mean[:, 0]\n")
    Path("random.py").write_text("from beside_it import key\n")  # the name of a module of Python
    assert measure("random.py:key") is sys.modules["beside_it"].key
    assert sys.modules["random"].__file__ != str(Path("random.py").resolve())


def test_an_edited_file_is_read_again_and_an_unchanged_one_is_not(mine):
    """Within the same second and of the same length, too: Python's own import would take the old one."""
    before = by_name.found("mine.py:First")
    assert by_name.found("mine.py:First") is before
    mine.write_text(MINE.replace("start: int = 0", "start: int = 6"))
    assert picked("mine.py:First") == [6, 7]


def digest(name):
    return names.source_hash(strategy(name))


@pytest.mark.parametrize("change", ["** power * LIMIT", "amax(-1)", "LIMIT = 2"])
def test_the_hash_is_of_the_function_and_of_what_it_uses_of_its_file(mine, change):
    before, other = digest("mine.py:sure"), digest("mine.py:unrelated")
    mine.write_text(MINE.replace(change, {"amax(-1)": "amin(-1)", "LIMIT = 2": "LIMIT = 3"}.get(change, "* LIMIT")))
    assert digest("mine.py:sure") != before
    assert digest("mine.py:unrelated") == other
    assert digest("bald") is None


# ── data sets and predictors ─────────────────────────────────────────────────────────────────────


def test_a_data_set_is_what_a_function_returns(mine, tmp_path):
    assert isinstance(load("mine.py:arrays"), Data)
    assert len(load("mine.py:arrays(rows=6)").y_train) == 6
    assert len(load("3xmine.py:arrays").y_train) == 12
    known("mine.py:arrays")
    for name, array in by_name.found("mine.py:arrays")().items():
        np.save(tmp_path / f"{name}.npy", array)
    assert len(load("mine.py:beside", tmp_path).y_test) == 4
    with pytest.raises(
        ValueError, match=r"mine\.py:beside is read from the folder with your data sets; name that folder"
    ):
        load("mine.py:beside")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine.py:nothing", "mine.py:nothing must return Data, or a dict with x_train, .* but returned NoneType"),
        ("mine.py:both", r"mine.py:both has the arguments \(a, b\), but no argument is filled in; give them defaults"),
        ("mine.py:arays", "mine.py has no function 'arays'; did you mean arrays"),
        ("mine.py:arrays(row=3)", "there is no setting of mine.py:arrays 'row'; did you mean rows"),
        ("nowhere:arrays", "there is no data set 'nowhere:arrays', and no folder or file of that name"),
    ],
)
def test_functions_that_read_no_data_are_refused(mine, name, words):
    with pytest.raises((ValueError, TypeError), match=words):
        load(name)


def test_a_predictor_gets_the_arguments_that_it_names(mine):
    mine.write_text(
        "class Mine:\n"
        "    def __init__(self, data, epochs, scale=1): self.seen = data.classes, epochs, scale\n"
        "    def fit(self, labelled, *, generator): ...\n"
        "    def sample(self, n, *, seed, masks='shared'): ...\n"
        "    def state(self): return {}\n"
        "    def load_state(self, state): ...\n"
        "def other(data): return data\n"
        "def width(data, width): return width\n"
    )
    spec = balent.Experiment("x", "moons", "mine.py:width", predictor="mine.py:Mine(scale=5)", epochs=7)
    data = load("moons")
    assert predictor(spec, data).seen == (3, 7, 5)
    for name, words in (
        ("mine.py:other", "mine.py:other must make a predictor: .* Data has no fit"),
        ("mine.py:width", "but only network, data, epochs, .* are filled in; give the others defaults"),
        ("mc_dropout", r"mine.py:width must take the data, but its arguments are \(data, width\)"),
    ):
        with pytest.raises(TypeError, match=words):
            predictor(balent.Experiment("x", "moons", "mine.py:width", predictor=name), data)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py:x", r"there is no file nowhere\.py in /"),
        ("mine.py", "mine.py is a file; say what to use of it, as in mine.py:NAME"),
        ("mine.py:", "must be MODULE:NAME or FILE.py:NAME"),
        ("mine.py:sur", "mine.py has no function 'sur'; did you mean sure"),
        ("mine.py:number", "mine.py:number must be a function or a class, but is int"),
        ("mine.py:both", r"or a measure, a function of one argument, but its arguments are \(a, b\)"),
        ("mine.py:Needy", r"must be made without arguments, but its arguments are \(where\); give them defaults"),
        ("mine.py:First(begin=1)", "there is no setting of mine.py:First 'begin'"),
        ("power:mine.py:first", r"mine.py:first must be a measure, a function of one argument \(the moments\), but"),
        ("nowhere:bald", "there is no kind of strategy 'nowhere', and no module of that name; did you mean power"),
        ("power:nowhere:x", "there is no module 'nowhere', neither here nor installed"),
        ("zero.py:x", r"zero\.py cannot be imported \(line 3\): ZeroDivisionError: division by zero"),
        ("syntax.py:x", r"syntax\.py cannot be imported: .*line 1"),
        ("lacks.py:x", r"lacks\.py cannot be imported \(line 1\): ModuleNotFoundError: No module named 'absent'"),
        ("leaves.py:x", r"leaves\.py cannot be imported \(line 1\): SystemExit: 1"),
        ("lacks:x", "lacks cannot be imported: ModuleNotFoundError: No module named 'absent'"),
    ],
)
def test_each_mistake_is_one_sentence(mine, name, words):
    Path("zero.py").write_text("x = len\n\ny = 1 / 0\n")
    Path("syntax.py").write_text("def x(:\n")
    Path("lacks.py").write_text("import absent\n")
    Path("leaves.py").write_text("raise SystemExit(1)\n")
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words) as caught:
        strategy(name)
    assert "\n" not in str(caught.value)


def test_a_learner_warns_of_changed_code_and_goes_on(mine):
    pool = torch.zeros(5, 2)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())

    def begun(said):
        return balent.Learner(balent.MCDropout(model), pool, "mine.py:sure", directory="labels", say=said.append)

    for changed in (False, True):
        said = []
        if changed:
            mine.write_text(MINE.replace("amax", "amin"))
        with begun([]) if not Path("labels").exists() else begun(said):
            pass
        assert [note.partition(";")[0] for note in said] == (
            ["the code of mine.py:sure has changed since labels was begun"] if changed else []
        )
