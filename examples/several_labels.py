"""Several labels per item: does a strategy gain on random, over 5 paired seeds, on scikit-learn's made-up data?

An item has none, one or several of six labels. `balent.SeveralLabels` wraps MC dropout of a network with one logit for
each label. The gain is the difference to random in macro F1, averaged from 20 to 80 labelled items. Both strategies of
a pair see the same data and the same first 20 items. SHORT=1 in the environment runs a part of it.
"""

import os
import statistics

import numpy as np
import torch
from sklearn.datasets import make_multilabel_classification
from torch import Tensor, nn

import balent
from balent.report.significance import interval

SHORT = "SHORT" in os.environ
SEEDS = 2 if SHORT else 5
START, PER_ROUND, ROUNDS = 20, 15, 1 if SHORT else 4


def data(seed: int) -> tuple[Tensor, Tensor]:
    """Features and rows of 0 and 1."""
    x, y = make_multilabel_classification(900, n_features=20, n_classes=6, n_labels=2, random_state=seed)
    features = torch.from_numpy(x).float()
    return (features - features.mean(0)) / features.std(0), torch.from_numpy(y)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 6))


def curve(strategy: str, seed: int) -> float:
    """Macro F1 on 300 other items, averaged over the rounds."""
    torch.manual_seed(seed)
    (x, y), scores = data(seed), []
    predictor = balent.SeveralLabels(balent.MCDropout(network(), epochs=40, learning_rate=0.01))
    learner = balent.Learner(predictor, x[:600], strategy, seed=seed, draws=20, start=list(range(START)))
    for count in (START, *[PER_ROUND] * ROUNDS):
        picks = learner.ask(count)
        learner.tell(picks.indices, [{i for i, holds in enumerate(row) if holds} for row in y[picks.indices]])
        scores.append(balent.macro_f1(learner.predict(x[600:]) > 0.5, y[600:]))
    return statistics.mean(scores)


def main() -> None:
    plain = [curve("random", seed) for seed in range(SEEDS)]
    print(f"random      macro F1 {statistics.mean(plain):.3f}, {SEEDS} seeds")
    for strategy in ("auto", "balentacq"):
        gains = np.array([curve(strategy, seed) - before for seed, before in enumerate(plain)])
        low, high = interval(gains)
        print(f"{strategy:10s}  gain on random {gains.mean():+.3f}, 95 % interval ± {(high - low) / 2:.3f}")


if __name__ == "__main__":
    main()
