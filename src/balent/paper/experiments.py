"""Experiments by name: data with reasons. Networks are made for a data set: `network(data) -> module`."""

from math import prod

from torch import nn

from balent.learning.datasets import Data
from balent.learning.experiment import Experiment
from balent.paper.networks import BNN


def mlp(data: Data, width: int = 128, p: float = 0.2) -> nn.Module:
    """Features or small images: two hidden layers, dropout before ReLU as everywhere in the paper."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(prod(data.x_train.shape[1:]), width),
        nn.Dropout(p),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.Dropout(p),
        nn.ReLU(),
        nn.Linear(width, data.classes, bias=False),
    )


def toy(data: Data) -> nn.Module:
    """The paper's network for points in the plane."""
    return BNN(data.classes)


HERE = "balent.paper.experiments"

# Small enough that six strategies with three seeds each take a minute or two. Masks per point as in the authors' code.
DIGITS = Experiment("digits", "digits", f"{HERE}:mlp", masks="per-point", epochs=100, start=20, per_round=10, total=200)
# The paper shows its toy example as pictures, without a protocol: few labels at a time, so that one can watch.
MOONS = Experiment("moons", "moons", f"{HERE}:toy", masks="per-point", epochs=150, start=6, per_round=6, total=60)
# One's own features: balent run features --data FILE.npz
FEATURES = Experiment("features", "", f"{HERE}:mlp", epochs=100, start=20, per_round=20, total=400)

EXPERIMENTS = {spec.name: spec for spec in (DIGITS, MOONS, FEATURES)}
STRATEGIES = ("balentacq", "bald", "entropy", "mean_sd", "power_bald", "random")  # what the paper compares, less BADGE
