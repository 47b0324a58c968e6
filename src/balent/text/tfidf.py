"""TF-IDF and truncated SVD: features of texts that need no downloads, only scikit-learn (extra [text]).

    tf = 1 + log(count)     idf = 1 + log((1 + texts) / (1 + texts with the term))     row = unit(unit(tf · idf) · C)

C [terms, width] are the right singular vectors of the texts it was fitted to. They are learnt once; a row then depends
on its text alone, not on its neighbours, and is the same in every process. A text without a known term still needs a
label: it gets a direction of its own, the last feature, which is zero for all other texts.
"""

import hashlib
import heapq
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from balent.text.terms import READ, owned, reason, spans, terms

TERMS = 20_000  # at most; the most frequent ones
TEXTS, CHARACTERS = 50_000, 20_000_000  # that are learnt from, at most: more would take gigabytes
NOISE = 1e-6  # singular values below this share of the largest are rounding
BLOCK = 2048  # texts at a time
PASSES = 4  # of the randomised SVD over the texts

Made = tuple[np.ndarray, list[str | None]]  # rows of the good contents, and for each content why it has none


def scikit_learn() -> Any:
    """The modules for texts and for SVD."""
    try:
        from sklearn import decomposition
        from sklearn.feature_extraction import text
    except ImportError:
        raise ValueError("TF-IDF needs scikit-learn; install it with: pip install 'balent[text]'") from None
    return text, decomposition


class Tfidf:
    """Features of texts by their words and pieces of words.

    dimensions   at most; texts with fewer different words have fewer. One more is for texts without a known word
    seed         of the randomised SVD
    """

    def __init__(self, dimensions: int = 256, seed: int = 0) -> None:
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
            raise ValueError(f"dimensions must be a whole number of 1 or more, but is {dimensions!r}")
        self.dimensions, self.seed = dimensions, seed
        self._counts: Any = None
        self._idf = np.zeros(0)
        self._components = np.zeros((0, 0))

    # ── learning ─────────────────────────────────────────────────────────────────────────────────

    def fit(self, contents: Sequence[str]) -> None:
        """Learns terms, their weights and the components, from at most 50,000 different texts."""
        texts, _ = scikit_learn()
        chosen = learnt_from(contents)
        vectorizer = texts.TfidfVectorizer(
            analyzer=terms, max_features=TERMS, min_df=2 if len(chosen) >= 100 else 1, sublinear_tf=True
        )
        try:
            matrix = vectorizer.fit_transform(chosen)
        except ValueError:  # of scikit-learn: no term at all, or none that occurs twice
            raise ValueError(
                f"texts must have words, but the {len(contents):,} given have none, or none that two of them share; "
                "is this the column with the texts?"
            ) from None
        self._set(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_, self._learnt(matrix))

    def _learnt(self, matrix: Any) -> np.ndarray:
        """C as float32, as it is saved, so that a loaded maker computes with the same numbers."""
        _, decomposition = scikit_learn()
        size = min(self.dimensions, *matrix.shape)
        svd = decomposition.TruncatedSVD(size, n_iter=PASSES, random_state=self.seed)
        with np.errstate(invalid="ignore"):  # a single text has no variance, which we do not use
            svd.fit(matrix)
        kept = svd.singular_values_ > NOISE * svd.singular_values_[0]
        return np.ascontiguousarray(svd.components_[kept].T, np.float32)

    def _set(self, names: list[str], idf: np.ndarray, components: np.ndarray) -> None:
        texts, _ = scikit_learn()
        self._counts = texts.CountVectorizer(analyzer=terms, vocabulary={name: i for i, name in enumerate(names)})
        self._idf, self._components = np.asarray(idf, np.float64), np.asarray(components, np.float64)

    @property
    def width(self) -> int:
        """Features of a row."""
        self._check_fitted()
        return self._components.shape[1] + 1

    def _check_fitted(self) -> None:
        if self._counts is None:
            raise RuntimeError("Tfidf has learnt no words yet; call fit(texts) or load_state(state) first")

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, contents: Sequence[Any]) -> Made:
        """float32 rows of the texts that are not empty, in order; and for each text None, or why it has no row."""
        self._check_fitted()
        reasons = [reason(text) for text in contents]
        good = [text for text, why in zip(contents, reasons, strict=True) if why is None]
        rows = np.zeros((len(good), self.width), np.float32)
        for start in range(0, len(good), BLOCK):
            rows[start : start + BLOCK] = self._rows(good[start : start + BLOCK])
        return rows, reasons

    def _rows(self, texts: Sequence[str]) -> np.ndarray:
        weights = self._weights(texts)
        # scipy adds up the terms of a row one by one, in order: neighbours and threads change no bit.
        found = weights @ self._components
        length = np.sqrt(np.einsum("nd,nd->n", found, found))
        known = length > 0
        rows = np.zeros((len(texts), self.width))
        rows[known, :-1] = found[known] / length[known, None]
        rows[~known, -1] = 1
        return rows.astype(np.float32)

    def _weights(self, texts: Sequence[str]) -> Any:
        """tf · idf as a sparse matrix [texts, terms], terms in order. Its length does not matter: rows are unit."""
        counts = self._counts.transform(texts).astype(np.float64)
        counts.sort_indices()
        counts.data = (1 + np.log(counts.data)) * self._idf[counts.indices]
        return counts

    def words(self, content: str, weights: np.ndarray) -> list[tuple[int, int, float]]:
        """How much each word of a text adds to weights · row: (start, end, share), the largest share first.

        A word's pieces count for the word, a pair of words half for each. Shares add up to weights · row. Words without
        a known term are left out.
        """
        self._check_fitted()
        vector = np.asarray(weights, np.float64)
        if vector.shape != (self.width,):
            raise ValueError(f"weights must have one number per feature, [{self.width}], but have {list(vector.shape)}")
        places = spans(content)
        shares = self._shares([content[start:end].lower() for start, end in places], content, vector[:-1])
        found = [(*places[i], share) for i, share in shares.items()]
        return sorted(found, key=lambda word: (-word[2], word[0]))

    def _shares(self, words: list[str], content: str, vector: np.ndarray) -> dict[int, float]:
        """By number of the word. A term that occurs n times gives the nth part of its weight to each occurrence."""
        row = self._weights([content])
        length = float(np.linalg.norm(row @ self._components))
        if not length:
            return {}
        counts = self._counts.transform([content])
        counts.sort_indices()
        each = row.data / counts.data * (self._components[row.indices] @ vector) / length
        worth = dict(zip(row.indices.tolist(), each.tolist(), strict=True))
        shares: dict[int, float] = {}
        for term, owners in owned(words):
            number = self._counts.vocabulary_.get(term)
            for i in owners if number is not None else ():
                shares[i] = shares.get(i, 0.0) + worth[number] / len(owners)
        return shares

    # ── saving ───────────────────────────────────────────────────────────────────────────────────

    def about(self) -> dict[str, Any]:
        """The settings that decide about features."""
        scikit_learn()  # before its version is looked up: it may not be installed
        return {
            "kind": "tfidf",
            "dimensions": self.dimensions,
            "seed": self.seed,
            "terms": TERMS,
            "texts": TEXTS,
            "scikit-learn": version("scikit-learn"),
        }

    def state(self) -> dict[str, np.ndarray]:
        """What was learnt, as arrays for .npz. `terms` is a JSON list in UTF-8."""
        self._check_fitted()
        names = json.dumps(sorted(self._counts.vocabulary, key=self._counts.vocabulary.__getitem__))
        return {
            "terms": np.frombuffer(names.encode("ascii"), np.uint8),
            "idf": self._idf,
            "components": self._components.astype(np.float32),
        }

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        names = json.loads(state["terms"].tobytes())
        idf, components = state["idf"], state["components"]
        if not isinstance(names, list) or idf.shape != (len(names),) or components.shape[:1] != (len(names),):
            raise ValueError(
                f"idf and components must have one row per term, but terms are {len(names)}, idf {list(idf.shape)} and "
                f"components {list(components.shape)}; make the features again"
            )
        self._set(names, idf, components)


def learnt_from(contents: Sequence[str]) -> list[str]:
    """Different texts in their order: all, or those with the smallest hashes if there are too many or too long ones."""
    texts = [text for text in dict.fromkeys(contents) if reason(text) is None]
    lengths = [min(len(text), READ) for text in texts]
    if len(texts) <= TEXTS and sum(lengths) <= CHARACTERS:
        return texts
    drawn = heapq.nsmallest(TEXTS, range(len(texts)), key=lambda i: hashlib.sha256(_bytes(texts[i])).digest())
    total = np.cumsum([lengths[i] for i in drawn])
    return [texts[i] for i in sorted(drawn[: int((total <= CHARACTERS).sum())])]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
