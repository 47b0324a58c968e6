"""Sentence models from a folder: a network of one table of token vectors, whose rows are known by hand."""

import json
import sys

import numpy as np
import pytest

from balent.text.sentences import Sentences

WORDS = {"[UNK]": 0, "card": 1, "money": 2, "lost": 3}
VECTORS = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0]], np.float32)


def folder(path, pooled=False):
    """A model that looks up the vector of each token; `pooled`: and returns the first one."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    path.mkdir(exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    helper, number = onnx.helper, onnx.TensorProto
    ids = helper.make_tensor_value_info("input_ids", number.INT64, ["texts", "tokens"])
    shape = ["texts", 3] if pooled else ["texts", "tokens", 3]
    out = helper.make_tensor_value_info("out", number.FLOAT, shape)
    nodes = [helper.make_node("Gather", ["vectors", "input_ids"], ["looked_up" if pooled else "out"])]
    constants = [onnx.numpy_helper.from_array(VECTORS, "vectors")]
    if pooled:
        constants.append(onnx.numpy_helper.from_array(np.array(0), "first"))
        nodes.append(helper.make_node("Gather", ["looked_up", "first"], ["out"], axis=1))
    graph = helper.make_graph(nodes, "tiny", [ids], [out], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path / "model.onnx"))
    return path


def test_a_row_is_the_mean_of_its_tokens_with_length_one(tmp_path):
    """card + lost = (2, 1, 0) before it is scaled."""
    maker = Sentences(folder(tmp_path / "m"))
    maker.fit(["card"])
    rows, reasons = maker(["card lost", "", "money", "what"])
    expected = np.array([[2 / 5**0.5, 1 / 5**0.5, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    assert rows.dtype == np.float32
    assert reasons == [None, "empty text", None, None]
    assert (maker.width, maker([])[0].shape, maker.state()) == (3, (0, 3), {})


def test_the_folder_decides_about_pooling_and_length(tmp_path):
    path = folder(tmp_path / "m")
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": True, "word_dimension": 3}))
    assert Sentences(path)(["money card"])[0].tolist() == [[0, 1, 0]]
    (path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 1}))
    assert Sentences(path)(["money card"])[0].tolist() == [[0, 1, 0]]
    (path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ValueError, match="but asks for pooling_mode_max_tokens"):
        Sentences(path)


def test_a_model_that_pools_itself(tmp_path):
    assert Sentences(folder(tmp_path / "m", pooled=True))(["money card"])[0].tolist() == [[0, 1, 0]]


def test_a_row_does_not_depend_on_its_neighbours_nor_on_the_place_of_the_model(tmp_path):
    first, second = Sentences(folder(tmp_path / "m")), Sentences(folder(tmp_path / "n"))
    texts = ["card lost", "money", "card card money lost what", "\ud800 card"]
    assert first(texts)[0].tobytes() == b"".join(second([text])[0].tobytes() for text in texts)
    assert first.about() == second.about()


def test_what_is_wrong_with_a_folder_is_said(tmp_path):
    path = folder(tmp_path / "m")
    (path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="cannot be read as a sentence model"):
        Sentences(path)
    (path / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"must have a tokenizer\.json"):
        Sentences(path)


def test_packages_that_are_missing_are_named(tmp_path, monkeypatch):
    (tmp_path / "model.onnx").touch()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match=r"pip install 'balent\[sentences\]'"):
        Sentences(tmp_path)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        ValueError, match=r"some/name is not a folder with an ONNX model.*pip install sentence-transformers"
    ):
        Sentences("some/name")
