"""Do estimators of other libraries work as models: picks, predictions, and the same picks after a resume?

    python benchmarks/estimators.py

A Learner asks four times 15 points of 400 and gets their labels: once in one process, and once from a directory
that is opened anew for every round. Gradient boosting stands for XGBoost, LightGBM and CatBoost.
"""

import random
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from balent import Classifier, Learner

POOL, ROUNDS, K, DRAWS, CLASSES = 400, 4, 15, 10, 3
TOPICS = (
    ["card", "refund", "invoice", "bank"],
    ["parcel", "courier", "late", "box"],
    ["login", "email", "reset", "code"],
)


def rows() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(POOL, 12, n_informative=6, n_classes=CLASSES, class_sep=2.0, random_state=0)


def texts() -> tuple[list[str], np.ndarray]:
    """Two words of a topic among four that say nothing."""
    rng, truth = random.Random(0), np.arange(POOL) % CLASSES
    common = ["please", "help", "my", "since", "yesterday", "order", "nobody", "answers"]
    return [" ".join(rng.sample(common, 4) + rng.sample(TOPICS[c], 2)) for c in truth], truth


ESTIMATORS = {
    "RandomForestClassifier": (lambda: RandomForestClassifier(30, random_state=0), rows),
    "HistGradientBoostingClassifier": (lambda: HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=3), rows),
    "TfidfVectorizer, LogisticRegression": (lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()), texts),
}


def learner(make, pool, directory: Path | None) -> Learner:
    return Learner(Classifier(make(), CLASSES), pool, directory=directory, draws=DRAWS, say=lambda _: None)


def asked(made: Learner, truth: np.ndarray, rounds: int) -> list[list[int]]:
    """Picks of some rounds, each of which gets its labels."""
    found = []
    for _ in range(rounds):
        at = made.ask(K).indices
        made.tell(at, truth[at.numpy()].tolist())
        found.append(at.tolist())
    return found


def main() -> None:
    for name, (make, data) in ESTIMATORS.items():
        pool, truth = data()
        start = time.process_time()
        with learner(make, pool, None) as made:
            picks = asked(made, truth, ROUNDS)
            right = float((made.predict(pool).argmax(1).numpy() == truth).mean())
        with tempfile.TemporaryDirectory() as place:
            resumed = []
            for _ in range(ROUNDS):
                with learner(make, pool, Path(place) / "run") as made:
                    resumed += asked(made, truth, 1)
        assert picks == resumed, name
        print(
            f"{name}: {ROUNDS * K} labels, {right:.1%} of {POOL} points right; resumed {ROUNDS - 1} times: the same "
            f"picks; {time.process_time() - start:.0f} s of the CPU for both",
            flush=True,
        )


if __name__ == "__main__":
    main()
