"""Backends: onnxruntime computes what torch does, and features are continued with the backend they were begun with."""

import json
import sys

import numpy as np
import pytest
import torch
from helpers.pictures import data, tiny
from torch import nn
from torch.testing import assert_close

from balent.vision import blocks, onnx
from balent.vision.catalogue import backbone
from balent.vision.embedding import embed, side_by_side

needs_runtime = pytest.mark.skipif(onnx.version() is None, reason="onnxruntime and onnx are not installed")
ABOUT = {"backbone": "tiny"}


@pytest.fixture
def without_runtime(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


def images(n, side=8, seed=0):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(seed))


@needs_runtime
@pytest.mark.parametrize("name", ["random:efficientnet-lite0", "random:resnet10"])
def test_an_exported_network_agrees_with_torch(name):
    """Both are float32: features differ by the order of sums only."""
    x = images(2, 32)
    network = backbone(name, 32).eval()
    with torch.inference_mode():
        expected = network(x)
    found = torch.from_numpy(onnx.Exported(network, x)(x.numpy()))
    assert_close(found, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))


@needs_runtime
def test_a_batch_that_is_not_full_has_the_same_features_bit_for_bit():
    run, x = onnx.Exported(tiny(), images(8)), images(8).numpy()
    assert np.array_equal(run(x[:3]), run(x)[:3])


class Undecided(nn.Module):
    """Another path for dark images: a trace knows one of them only."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x.flatten(1) * self.calls


@needs_runtime
def test_a_trace_that_is_not_the_network_is_refused():
    with pytest.raises(ValueError, match="does not compute what torch computes; use backend 'torch'"):
        onnx.Exported(Undecided(), images(1))


class Unusual(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x[:, 0]).real


@needs_runtime
def test_a_network_that_cannot_be_exported_says_what_to_do():
    with pytest.raises(ValueError, match=r"cannot be exported to ONNX: .*; use backend 'torch'"):
        onnx.Exported(Unusual(), images(1))


def test_items_side_by_side_keep_their_order():
    assert list(side_by_side(lambda i: i * i, range(20), 3)) == [i * i for i in range(20)]


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@needs_runtime
def test_auto_is_onnxruntime_with_its_version_where_it_is_installed():
    name = onnx.backend()
    assert name == f"onnxruntime {onnx.version()}"
    assert onnx.backend(name) == onnx.backend("onnxruntime") == name
    assert onnx.backend(device="cuda") == "torch"


def test_auto_is_torch_without_onnxruntime(without_runtime):
    assert onnx.backend() == "torch"


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"install them with: pip install 'balent\[vision\]'"):
        onnx.backend("onnxruntime")


def test_a_pinned_version_that_is_not_there_says_what_to_install(monkeypatch):
    monkeypatch.setattr(onnx, "version", lambda: "1.31")
    with pytest.raises(
        ImportError, match=r"begun with onnxruntime 1.20, but onnxruntime 1.31 .*'onnxruntime==1.20.\*'"
    ):
        onnx.backend("onnxruntime 1.20")
    monkeypatch.setattr(onnx, "version", lambda: None)
    with pytest.raises(ImportError, match=r"pip install onnx 'onnxruntime==1.20.\*'"):
        onnx.backend("onnxruntime 1.20")


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="backend must be auto, onnxruntime or torch, but is 'jax'"):
        onnx.backend("jax")


# ── features that were begun ─────────────────────────────────────────────────────────────────────


def begin(path, batches=3, **settings):
    """A run that was left after some batches."""
    news = embed(data(), tiny(), path, about=ABOUT, batch_size=8, **settings)
    for _ in range(batches + 1):
        next(news)
    news.close()


def finish(path, **settings):
    list(embed(data(), tiny(), path, about=ABOUT, batch_size=8, **settings))
    with np.load(path, allow_pickle=False) as file:
        return json.loads(str(file["about"])), file["x_train"]


@pytest.fixture
def every_batch(monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 1)


def test_features_of_both_backends_agree(tmp_path):
    (_, ours), (_, theirs) = (finish(tmp_path / f"{name}.npz", backend=name) for name in ("auto", "torch"))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4 * np.abs(theirs).max())


def test_what_torch_began_torch_ends(tmp_path, every_batch):
    begin(tmp_path / "f.npz", backend="torch")
    about, rows = finish(tmp_path / "f.npz")
    assert about["backend"] == "torch"
    assert np.array_equal(rows, finish(tmp_path / "whole.npz", backend="torch")[1])


@needs_runtime
def test_what_onnxruntime_began_is_not_ended_without_it(tmp_path, every_batch, monkeypatch):
    begin(tmp_path / "f.npz")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(ImportError, match=r"pip install onnx 'onnxruntime==.*\.\*'"):
            finish(tmp_path / "f.npz")
    assert finish(tmp_path / "f.npz")[0]["backend"] == onnx.backend()


@needs_runtime
def test_a_backend_that_is_named_is_not_mixed_with_another(tmp_path, every_batch):
    begin(tmp_path / "f.npz", backend="torch")
    with pytest.raises(ValueError, match="begun with backend = 'torch', but backend = 'onnxruntime"):
        finish(tmp_path / "f.npz", backend="onnxruntime")


@needs_runtime
def test_a_complete_file_needs_no_backend(tmp_path, monkeypatch):
    about, _ = finish(tmp_path / "f.npz")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert finish(tmp_path / "f.npz")[0] == about


def test_blocks_of_0_1_were_made_by_torch(tmp_path, every_batch):
    """They do not name their backend."""
    begin(tmp_path / "f.npz", backend="torch")
    journal = tmp_path / "f.npz.parts" / "journal.ndjson"
    lines = journal.read_text().splitlines()
    first = json.loads(lines[0])
    del first["about"]["backend"]
    journal.write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    assert finish(tmp_path / "f.npz")[0]["backend"] == "torch"
