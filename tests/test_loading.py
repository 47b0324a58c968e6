"""Models and pools that a command line names."""

import numpy as np
import pytest
import torch
from torch import nn

from balent import loading
from balent.draws import Draws
from balent.predictors import Ensemble
from examples import probabilities

MODELS = """
import torch
from torch import nn
from balent import Draws, Ensemble

def classifier():
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))

def ensemble():
    return Ensemble(classifier, members=2)

def drawn():
    return Draws(torch.full((5, 2, 3), 1 / 3))

def number():
    return 3
"""


@pytest.fixture
def models(tmp_path):
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def made(models, name="classifier", strategy="balentacq", masks="auto", design="independent", draws="8"):
    return loading.sampled(f"{models}:{name}", draws, strategy, seed=0, masks=masks, design=design)


@pytest.mark.parametrize(
    ("settings", "per_point"),
    [
        ({}, True),
        ({"strategy": "diverse:bald"}, True),
        ({"masks": "shared"}, False),
        ({"strategy": "batch_bald"}, False),  # looks at the whole pool
        ({"strategy": "jitter:bald"}, False),  # brings the noise itself
        ({"design": "stratified"}, False),
    ],
)
def test_masks_are_per_point_unless_something_needs_shared_ones(models, settings, per_point):
    assert made(models, **settings).masks.per_point is per_point


def test_predictors_whose_draws_are_functions_share_them(models):
    copies = torch.ones(2, 4)
    first, second = made(models, "ensemble", draws="2")(copies, torch.arange(2))
    assert torch.equal(first, second)
    assert isinstance(loading.factory(f"{models}:ensemble"), Ensemble)


def test_what_is_drawn_already_is_taken_as_it_is(models):
    assert isinstance(made(models, "drawn"), Draws)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("clasifier", {}, "did you mean classifier"),
        ("number", {}, "must make a torch module, a predictor or a Sampled, but made int"),
        ("classifier", {"draws": "many"}, 'must be a number, "auto" or "analytic"'),
        ("classifier", {"strategy": "bold"}, "did you mean bald"),
        ("classifier", {"masks": "own"}, "masks"),
    ],
)
def test_errors_say_what_to_do(models, name, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made(models, name, **settings)


def test_names_of_nothing_are_refused():
    with pytest.raises(ValueError, match="must be MODULE:FACTORY"):
        loading.factory("classifier")
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.py"):
        loading.factory("nowhere.py:classifier")
    with pytest.raises(ValueError, match="there is no module 'nowhere'"):
        loading.factory("nowhere:classifier")


def test_pools_are_arrays_of_files_or_made(models, tmp_path):
    x = probabilities(6, 2, 3).numpy()
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "two.npz", a=x, b=x[:2])
    assert np.array_equal(loading.pool(str(tmp_path / "x.npy"), None), x)
    assert len(loading.pool(str(tmp_path / "two.npz"), "b")) == 2
    assert isinstance(loading.pool(f"{models}:classifier", None), nn.Module)
    with pytest.raises(ValueError, match="holds a, b; say which with --key"):
        loading.pool(str(tmp_path / "two.npz"), None)
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(ValueError, match=r"is not a readable \.npy file"):
        loading.pool(str(tmp_path / "text.npy"), None)
