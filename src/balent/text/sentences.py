"""Sentence models: better features of texts than TF-IDF, if a model is at hand.

A folder with `tokenizer.json` and an ONNX model (as sentence-transformers exports them) runs with onnxruntime and
tokenizers, extra [sentences]. Any other folder or hub name goes through sentence-transformers, which must be installed.
A text is computed alone, at its own length: within a batch padding and the order of sums would change its last bits.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from balent.text.terms import READ, reason

MODELS = (
    "model.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
)  # the first that is there
POOLING = "1_Pooling/config.json"  # of sentence-transformers
LIMIT = "sentence_bert_config.json"  # of sentence-transformers: max_seq_length
TOKENS = 256  # of a text, where the folder does not say; the rest is left out

Encoder = Callable[[str], np.ndarray]


class Sentences:
    """Features of texts by a sentence model: a folder with an ONNX model, or whatever sentence-transformers loads.

    The interface is that of `Tfidf`. Nothing is learnt: `fit` does nothing, and the state is empty.
    """

    def __init__(self, model: str | Path, *, threads: int = 1) -> None:
        self.model, self.threads = str(model), threads
        folder = Path(model)
        self._about, self._encoder = _from_folder(folder, threads) if _onnx(folder) else _from_library(self.model)

    def fit(self, contents: Sequence[str]) -> None:
        """Nothing to learn."""

    def __call__(self, contents: Sequence[Any]) -> tuple[np.ndarray, list[str | None]]:
        """float32 rows of length 1 of the texts that are not empty; and for each text None, or why it has no row."""
        reasons = [reason(text) for text in contents]
        good = [text for text, why in zip(contents, reasons, strict=True) if why is None]
        rows = [_unit(self._encoder(text[:READ]), self.model) for text in good]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32), reasons

    @property
    def width(self) -> int:
        """Features of a row."""
        return len(self._encoder("a"))

    def about(self) -> dict[str, Any]:
        """The settings that decide about features. A folder is known by its contents, not by its place."""
        return {"kind": "sentences", **self._about}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Nothing was learnt."""


def _unit(row: np.ndarray, model: str) -> np.ndarray:
    length = float(np.linalg.norm(row.astype(np.float64)))
    if not 0 < length < np.inf:
        raise ValueError(f"the sentence model {model} must give finite numbers that are not all zero, but does not")
    return (row.astype(np.float64) / length).astype(np.float32)


# ── a folder with an ONNX model ──────────────────────────────────────────────────────────────────


def _onnx(folder: Path) -> Path | None:
    return next((folder / name for name in MODELS if (folder / name).is_file()), None)


def _from_folder(folder: Path, threads: int) -> tuple[dict[str, Any], Encoder]:
    onnxruntime, tokenizers = _packages()
    path = _onnx(folder)
    if not (folder / "tokenizer.json").is_file():
        raise FileNotFoundError(f"{folder} must have a tokenizer.json beside its ONNX model, but has none")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # onnxruntime and tokenizers have their own kinds for damaged files
        raise ValueError(f"{folder} cannot be read as a sentence model: {str(error)[:300]}") from None
    pooling, most = _pooling(folder), _settings(folder / LIMIT).get("max_seq_length", TOKENS)
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    files = {"model": _sha256(path), "tokenizer": _sha256(folder / "tokenizer.json")}
    about = {**files, "pooling": pooling, "tokens": most, "onnxruntime": version("onnxruntime")}
    return about, lambda text: _encoded(session, tokenizer, pooling, text)


def _packages() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError:
        raise ValueError(
            "a folder with an ONNX model needs onnxruntime and tokenizers; install them with: "
            "pip install 'balent[sentences]'"
        ) from None
    return onnxruntime, tokenizers


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    return found if isinstance(found, dict) else {}


def _pooling(folder: Path) -> str:
    """How a text's tokens become one row: their mean, or the first one."""
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
    asked = [
        name for name, value in _settings(folder / POOLING).items() if name.startswith("pooling_mode") and value is True
    ]
    if not asked:
        return "mean"
    if len(asked) > 1 or asked[0] not in known:
        raise ValueError(
            f"{folder / POOLING} must ask for {' or '.join(known)}, but asks for {', '.join(asked)}; use another model"
        )
    return known[asked[0]]


def _encoded(session: Any, tokenizer: Any, pooling: str, text: str) -> np.ndarray:
    encoding = tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))
    given = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    wanted = [part.name for part in session.get_inputs()]
    unknown = [name for name in wanted if name not in given]
    if unknown:
        raise ValueError(f"the ONNX model must take {', '.join(given)}, but also takes {', '.join(unknown)}")
    found = session.run(None, {name: np.array([given[name]], np.int64) for name in wanted})[0]
    if found.ndim == 2:  # [texts, features]: the model pools itself
        return found[0]
    return found[0].mean(0) if pooling == "mean" else found[0, 0]


def _sha256(path: Path | None) -> str:
    assert path is not None  # the caller has found it
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ── sentence-transformers ────────────────────────────────────────────────────────────────────────


def _from_library(name: str) -> tuple[dict[str, Any], Encoder]:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ValueError(
            f"{name} is not a folder with an ONNX model ({MODELS[0]} or {MODELS[1]}, and tokenizer.json); other models "
            "need sentence-transformers; install it with: pip install sentence-transformers"
        ) from None
    try:
        model = SentenceTransformer(name, device="cpu", trust_remote_code=False)
    except Exception as error:  # no network, no such name, damaged files: a dozen kinds
        raise ValueError(
            f"the sentence model {name} cannot be loaded: {str(error)[:300]}; name a local folder"
        ) from None
    about = {"model": name, "sentence-transformers": version("sentence-transformers")}
    return about, lambda text: np.asarray(model.encode(text, show_progress_bar=False), np.float32)
