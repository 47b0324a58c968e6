"""The side of scikit-activeml 1.0.1 in bench_strategies.py, run by the Python of an environment of its own.

    python -m venv PEERS
    PEERS/bin/pip install torch==2.13.0 numpy scipy scikit-learn pandas scikit-activeml==1.0.1 apricot-select
    PEERS/bin/pip install --no-deps decile-distil==0.2.0

Its Badge gets probabilities and features from a classifier that has both ready, so only the selection counts. Reads
`probabilities.npy` [points, classes] and `features.npy` in a folder; prints seconds, best of several, peak memory in MB
above what was used before, and the picks.
"""

import sys
import time
from pathlib import Path

import numpy as np
from peak import memory
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import Badge


class Ready(SkactivemlClassifier):
    """A classifier that has computed everything before."""

    def __init__(self, probabilities=None, features=None, classes=None, missing_label=np.nan) -> None:
        super().__init__(classes=classes, missing_label=missing_label)
        self.probabilities, self.features = probabilities, features

    def fit(self, X, y, sample_weight=None) -> "Ready":
        return self

    def predict_proba(self, X, embedded=False) -> tuple[np.ndarray, np.ndarray]:
        return self.probabilities, self.features


def main(folder: Path, k: int, repeats: int) -> None:
    p, h = np.load(folder / "probabilities.npy"), np.load(folder / "features.npy")
    y, ready = np.full(len(p), np.nan), Ready(p, h, classes=list(range(p.shape[1])))
    before, best = memory("VmRSS"), np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        strategy = Badge(random_state=0, clf_embedding_flag_name="embedded")
        picks = strategy.query(h, y, ready, fit_clf=False, batch_size=k)
        best = min(best, time.perf_counter() - start)
    print(best, memory("VmHWM") - before, *picks)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
