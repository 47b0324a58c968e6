"""Picks of every strategy without noise, on a pool made by numpy: what version 0.1 picked is in picks_0_1.json.

The file was written by this script with version 0.1 (commit 51a1938) installed, from the folder tests/:

    python -m reference.picks_0_1 > reference/picks_0_1.json

`tests/strategies/test_as_before.py` compares it with the picks of this version; to see the comparison:

    python -m pytest tests/strategies/test_as_before.py -v

The script uses public names only, which both versions have. It refuses to write picks that another CPU could change:
scores of neighbours in rank must differ by more than the arithmetic's error.
"""

import json
import math
import re
import sys
from itertools import pairwise

import numpy as np
import torch
from torch import nn

import balent

POINTS, DRAWS, CLASSES, FEATURES, K = 80, 12, 4, 6, 9
MEASURES = [
    "aleatoric",
    "balent",
    "balentacq",
    "balentacq_released",
    "bald",
    "beta_aleatoric",
    "beta_bald",
    "beta_eig",
    "entropy",
    "expected_effective_loss",
    "mean_sd",
    "mjent",
    "mjentacq",
    "neg_balent",
    "posterior_uncertainty",
    "variation_ratio",
]
DIVERSE = [f"diverse:{measure}" for measure in MEASURES]
JOINT = ["core_set", "core_mse", "core_log", "batch_bald(samples=100000)"]  # as many samples as there are label sets
GAPS = {"draws": 1e-9, "network": 1e-5}  # relative, of float64 and of float32
BATCH_BALD = 5  # picks: 4⁵ label sets are all counted, so nothing is drawn


def draws() -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities [points, draws, classes] and features, in float64."""
    rng = np.random.default_rng(20230501)
    center = 2 * rng.standard_normal((POINTS, 1, CLASSES)) * rng.random((POINTS, 1, 1))
    logits = center + rng.standard_normal((POINTS, DRAWS, CLASSES)) * 2 * rng.random((POINTS, 1, 1))
    return torch.from_numpy(logits).softmax(-1), torch.from_numpy(rng.standard_normal((POINTS, FEATURES)))


def network() -> tuple[nn.Module, torch.Tensor]:
    """A network with dropout whose weights numpy made, and inputs."""
    rng = np.random.default_rng(7)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, CLASSES))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.from_numpy(rng.standard_normal(tuple(weight.shape))))
    return model, torch.from_numpy(rng.standard_normal((POINTS, FEATURES))).float()


def picks() -> dict[str, dict[str, list[int]]]:
    """Positions by way and strategy, best first."""
    p, h = draws()
    model, x = network()
    given = balent.Draws(p, features=h)
    sampled = balent.MCDropout(model, epochs=1).sample(DRAWS, seed=3)  # masks="shared"
    names = [*MEASURES, *DIVERSE, *JOINT]
    return {
        "select": {name: _checked(balent.select(p, name, k=K), GAPS["draws"], name) for name in MEASURES},
        "acquire, Draws": {name: _acquired(given, np.arange(POINTS), name, GAPS["draws"]) for name in names},
        "acquire, MCDropout": {name: _acquired(sampled, x, name, GAPS["network"]) for name in names},
    }


def _acquired(sampled: object, pool: object, name: str, gap: float) -> list[int]:
    k = BATCH_BALD if name.startswith("batch_bald") else K
    return _checked(balent.acquire(sampled, pool, k=k, strategy=name), gap, name)


def _checked(found: balent.Picks, gap: float, name: str) -> list[int]:
    """The picks, if no two scores are so near to each other that another CPU could swap them."""
    scores = torch.as_tensor(found.scores).double().tolist()
    near = [i for i, (a, b) in enumerate(pairwise(scores)) if math.isclose(a, b, rel_tol=gap)]
    assert not near, f"{name}: picks {near} and the next have almost equal scores {scores}"
    return torch.as_tensor(found.indices).tolist()


if __name__ == "__main__":
    lines = re.sub(r"\[[^]]*\]", lambda m: "".join(m[0].split()), json.dumps(picks(), indent=1))
    sys.stdout.write(lines + "\n")  # one strategy per line
