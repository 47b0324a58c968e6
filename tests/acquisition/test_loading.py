"""Models and pools that a command line names."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.examples import probabilities
from torch import nn
from typer.testing import CliRunner

from balent.acquisition import loading
from balent.acquisition.draws import Draws
from balent.apps import cli
from balent.predictors import Ensemble

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
        ("number", {}, "must make a torch module with dropout, an estimator .*, but made int"),
        ("classifier", {"draws": "many"}, 'must be a number, "auto" or "analytic"'),
        ("classifier", {"strategy": "bold"}, "did you mean bald"),
        ("classifier", {"masks": "own"}, "masks"),
    ],
)
def test_errors_say_what_to_do(models, name, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made(models, name, **settings)


def test_names_of_nothing_are_refused():
    with pytest.raises(ValueError, match=r"must be MODULE:NAME or FILE\.py:NAME"):
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
    with pytest.raises(ValueError, match=r"holds 2 arrays \(a, b\); choose one with --column"):
        loading.pool(str(tmp_path / "two.npz"), None)
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(ValueError, match=r"is not a readable \.npy file"):
        loading.pool(str(tmp_path / "text.npy"), None)


# ── pools that are not what they should be ───────────────────────────────────────────────────────

X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)


@pytest.fixture
def run(models, monkeypatch):
    """`balent acquire` with the classifier, beside the pool."""
    monkeypatch.chdir(models.parent)

    def invoke(*words, code=0):
        words = ["acquire", "models.py:classifier", *words, "-k", "3", "--draws", "4", "-o", "-"]
        torch.manual_seed(0)  # the same weights
        result = CliRunner().invoke(cli.app, words, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return invoke


def sentence(result):
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ").strip()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.npy", b"", "empty.npy is not a readable .npy file: it begins with b''"),  # defect: only "Aborted."
        ("x.npz", b"PK\x03\x04 and no more", "x.npz is not a readable .npz file"),  # BadZipFile
        ("x.npy", b"\x93NUMPY\x01\x00\x03\x00'''", "x.npy is not a readable .npy file"),  # TokenError
        ("x.npy", b"PK", "x.npy is not a readable .npz file"),
        ("x.txt", b"1 2 3", "x.txt is not a readable .npy file: it begins with b'1 2 3'"),
    ],
)
def test_a_pool_file_that_is_none_is_said_in_a_sentence(run, name, content, words):
    Path(name).write_bytes(content)
    assert words in sentence(run(name, code=2))


def test_a_missing_key_is_answered_with_those_that_are_there(run):
    """Defect: a KeyError with its traceback."""
    np.savez("two.npz", pool=X, other=X)
    assert sentence(run("two.npz", "--key", "pol", code=2)) == "two.npz has no array 'pol'; did you mean pool?"


def test_a_pool_of_whole_numbers_that_the_model_does_not_take(run):
    """Defect: RuntimeError: mat1 and mat2 must have the same dtype."""
    np.save("x.npy", X.astype(np.int64))
    said = sentence(run("x.npy", code=2))
    assert said.startswith("the model does not take a pool of int64: ")
    assert said.endswith("convert the pool in the same way, as in x.astype('float32')")


@pytest.mark.parametrize("dtype", [">f4", ">f8", "<f2"])
def test_a_pool_of_every_byte_order_gives_the_same_picks(run, dtype):
    """Defect: big-endian pools were refused, though `balent score` took big-endian probabilities."""
    x = X.astype("f2").astype("f4")  # the same numbers in every precision
    np.save("x.npy", x)
    np.save("other.npy", x.astype(dtype))
    np.savez("packed.npz", x.astype(dtype))
    expected = run("x.npy").stdout
    assert expected.startswith("rank,point,score")
    assert run("other.npy").stdout == run("packed.npz").stdout == expected


@pytest.mark.parametrize("x", [np.float32(3), np.array(["a", "b"]), np.ones(3, complex)])
def test_what_is_no_pool_at_all(run, x):
    np.save("x.npy", x)
    assert "x.npy must hold numbers with a row for each point, but holds" in sentence(run("x.npy", code=2))


def test_a_masked_pool_is_refused(run):
    """Defect: points were scored with the numbers that the mask hides."""
    Path("pools.py").write_text("import numpy\ndef masked(): return numpy.ma.masked_less(numpy.ones((9, 4)), 2)\n")
    assert sentence(run("pools.py:masked", code=2)).startswith("a pool must not be a masked array")
