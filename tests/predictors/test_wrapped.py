"""What a factory may return, and the roads by name that use it."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.labelled import blobs, network
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from balent import Classifier, Experiment, Logistic, MCDropout
from balent.apps import cli
from balent.data.sources import load
from balent.predictors.wrapped import predictor_of
from balent.simulation.models import predictor

MINE = """
import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
import balent

TEXTS = ["a goal", "the team", "a loan", "the bank"] * 5

def estimator(): return RandomForestClassifier(n_estimators=5)

def of_data(data): return RandomForestClassifier(n_estimators=5)

def trained():
    predictor = balent.Classifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), ["sport", "money"])
    predictor.fit((TEXTS[:4], ["sport", "sport", "money", "money"]), generator=torch.Generator())
    return predictor

def texts(): return TEXTS
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)


def test_each_thing_becomes_a_predictor():
    logistic = Logistic(3)
    assert predictor_of(logistic, 3) is logistic
    assert isinstance(predictor_of(network()), MCDropout)
    wrapped = predictor_of(LogisticRegression(), ["cat", "dog"])
    assert isinstance(wrapped, Classifier)
    assert (wrapped.classes, wrapped.names) == (2, ("cat", "dog"))


def test_a_classifier_without_classes_gets_those_of_the_project():
    """And keeps its own, if it has some."""
    assert predictor_of(Classifier(LogisticRegression(), flatten=False), 4).classes == 4
    assert not predictor_of(Classifier(LogisticRegression(), flatten=False), 4).flatten
    assert predictor_of(Classifier(LogisticRegression(), 5), 4).classes == 5


@pytest.mark.parametrize(
    ("made", "what"), [(3, "int"), (LogisticRegression, "the class LogisticRegression itself"), (None, "NoneType")]
)
def test_anything_else_is_refused_in_words(made, what):
    words = f"mine.py:f must make a torch module with dropout, an estimator .*, or a predictor .*, but made {what}"
    with pytest.raises(TypeError, match=words):
        predictor_of(made, 3, name="mine.py:f")


@pytest.mark.parametrize(
    "names", [{"predictor": "mine.py:estimator"}, {"predictor": "classifier", "network": "mine.py:of_data"}]
)
def test_an_experiment_with_an_estimator_by_name(mine, names):
    spec = Experiment("x", "moons", **{"network": "nowhere:nothing", **names})
    found = predictor(spec, load("moons"))
    assert isinstance(found, Classifier)
    assert found.classes == 3


ESTIMATOR = "predictor=mine.py:estimator"


def invoke(*words, code=0):
    result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_balent_run_with_an_estimator(mine):
    small = ["start=6", "total=12", "per_round=3", "draws=3", "evaluation_draws=3", "masks=shared", ESTIMATOR]
    settings = [word for setting in small for word in ("--set", setting)]
    invoke("run", "moons", "--strategies", "bald", "--seeds", 1, *settings)
    lines = Path("runs/moons/bald/seed-0/records.jsonl").read_text().splitlines()
    assert [json.loads(line)["labels"] for line in lines] == [6, 9, 12]


def test_balent_acquire_with_a_trained_classifier_and_a_pool_of_texts(mine):
    said = invoke("acquire", "mine.py:trained", "mine.py:texts", "-k", 3, "--draws", 4, "-o", "-")
    assert len(said.stdout.splitlines()) == 4


def test_balent_acquire_does_not_train(mine):
    """An estimator alone is not enough: which labels would a bootstrap be drawn of?"""
    np.save("x.npy", blobs(9)[0].numpy())
    said = invoke("acquire", "mine.py:estimator", "x.npy", "-k", 3, code=2)
    assert "Classifier(RandomForestClassifier) has learnt nothing yet; call fit" in said.stderr
