"""Which terms should TF-IDF count?  Accuracy on random labels of a text set with known classes, and of `Tfidf` itself.

    python benchmarks/bench_text.py --train train.csv --test test.csv --text text --label category

The columns above are those of banking77 (PolyAI's task-specific-datasets). Logistic regression of scikit-learn (C = 30)
on 256 dimensions; mean and standard error of five seeds.
"""

import argparse
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from balent.data.table_rows import rows
from balent.text.tfidf import Tfidf

LABELS, SEEDS, DIMENSIONS, MOST = (200, 1000), 5, 256, 20_000
WORD = re.compile(r"\w+")
VARIANTS = {  # words, pairs of words, lengths of pieces
    "words": (True, False, ()),
    "words, pairs": (True, True, ()),
    "pieces of 3 to 5 characters": (False, False, (3, 4, 5)),
    "words, pairs, pieces of 3 and 4": (True, True, (3, 4)),
}


def terms(words: bool, pairs: bool, lengths: tuple[int, ...]) -> Callable[[str], list[str]]:
    def found(text: str) -> list[str]:
        single = [word.lower() for word in WORD.findall(text)]
        pieces = [f"\0 {w} "[1:][i : i + n] for w in single for n in lengths for i in range(max(1, len(w) + 3 - n))]
        both = [f"{a} {b}" for a, b in pairwise(single)]
        return [*(single if words else ()), *(both if pairs else ()), *(f"\0{piece}" for piece in pieces)]

    return found


def features(analyser: Callable[[str], list[str]], train: list[str], test: list[str]) -> tuple[np.ndarray, np.ndarray]:
    vectors = TfidfVectorizer(analyzer=analyser, min_df=2, max_features=MOST, sublinear_tf=True)
    reduced = TruncatedSVD(DIMENSIONS, random_state=0, n_iter=4)
    x = normalize(reduced.fit_transform(vectors.fit_transform(train)))
    return x, normalize(reduced.transform(vectors.transform(test)))


def accuracy(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> str:
    found = []
    for labels in LABELS:
        chosen = [np.random.default_rng(seed).permutation(len(y))[:labels] for seed in range(SEEDS)]
        fits = [LogisticRegression(C=30, max_iter=300).fit(x[at], y[at]).score(x_test, y_test) for at in chosen]
        found.append(f"{100 * np.mean(fits):9.1f} ± {100 * np.std(fits, ddof=1) / SEEDS**0.5:.1f}")
    return "".join(found)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "test"):
        asked.add_argument(f"--{name}", type=Path, required=True)
    asked.add_argument("--text", default="text")
    asked.add_argument("--label", default="category")
    args = asked.parse_args()
    (train, y), (test, y_test) = (
        ([str(t) for t in table.columns[args.text]], np.array(table.columns[args.label]))
        for table in (rows(args.train), rows(args.test))
    )
    print(f"{'accuracy in % with':36s}" + "".join(f"{n:>8d} labels" for n in LABELS))
    for name, which in VARIANTS.items():
        x, x_test = features(terms(*which), train, test)
        print(f"{name:36s}{accuracy(x, y, x_test, y_test)}", flush=True)
    maker = Tfidf(DIMENSIONS)
    maker.fit(train)
    print(f"{'Tfidf':36s}{accuracy(maker(train)[0], y, maker(test)[0], y_test)}", flush=True)


if __name__ == "__main__":
    main()
