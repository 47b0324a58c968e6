"""Heads for bench_gain.py.

    logistic        balent.Logistic, the default of projects
    plain           the same without the view of neighbours
    mc_dropout      two hidden layers of 256 with dropout, 60 epochs
    sklearn         scikit-learn's LogisticRegression with its defaults (C = 1, with a bias) on rows of length 1
    sklearn-c33     the same with the prior of `Logistic` (C = 1 / 0.03)

Those of scikit-learn have no posterior samples: run them with --strategies random.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import balent
from balent.data.sources import Data
from balent.predictors.functions import Functions
from balent.predictors.inputs import as_pairs
from balent.predictors.logistic import PRECISION, unit_rows
from balent.types import Predictor

C = {"sklearn": 1.0, "sklearn-c33": 1 / PRECISION}


def head(name: str, d: Data, seed: int) -> Predictor:
    if name == "logistic":
        return balent.Logistic(d.classes)
    if name == "plain":
        return Plain(d.classes)
    if name in C:
        return Sklearn(d.classes, C[name])
    torch.manual_seed(seed)
    width = d.x_test.shape[1]
    layers = [nn.Linear(width, 256), nn.Dropout(0.3), nn.ReLU(), nn.Linear(256, 256), nn.Dropout(0.3), nn.ReLU()]
    return balent.MCDropout(nn.Sequential(*layers, nn.Linear(256, d.classes)), epochs=60)


@dataclass(frozen=True)
class EverySecond:
    """The draws of a `Logistic` that see points as they are: draw j sees the neighbours if j is odd."""

    logits: Any

    def __call__(self, batch: Any, positions: Tensor | None = None) -> Tensor:
        return self.logits(batch, positions)[:, ::2]


class Plain(balent.Logistic):
    """`Logistic` without the view of neighbours."""

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        both = super().sample(2 * n, seed=seed, masks=masks)
        return Functions(EverySecond(both.logits), n, both.plan, both.features_of, both.block)


class Sklearn:
    """LogisticRegression of scikit-learn as a predictor. Not Bayesian: one draw, enough for `random`."""

    def __init__(self, classes: int, c: float) -> None:
        from sklearn.linear_model import LogisticRegression

        self.classes, self.model = classes, LogisticRegression(C=c, max_iter=1000)

    def fit(self, labelled: object, *, generator: torch.Generator) -> None:
        x, y = as_pairs(labelled)
        self.model.fit(unit_rows(x).numpy(), y.numpy())

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        return Functions(self.log_p, 1)

    def log_p(self, batch: Tensor, positions: Tensor | None = None) -> Tensor:
        """A class without a label has probability 0: the smallest number stands for it, as in the NLL of all heads."""
        p = torch.zeros(len(batch), self.classes)
        p[:, self.model.classes_] = torch.from_numpy(self.model.predict_proba(unit_rows(batch).numpy())).float()
        return p.clamp_min_(torch.finfo(p.dtype).tiny).log_()[:, None]

    def state(self) -> dict[str, Tensor]:
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Nothing to put back: every fit begins anew."""
