"""Experiments by name: data with reasons. Networks are made for a data set: `network(data) -> module`."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from torch import nn

from balent import checks
from balent.learning.datasets import DATASETS, Data
from balent.learning.experiment import Experiment, changed
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


def chosen(
    name: str, data: str | None, strategies: Sequence[str], seeds: int, settings: Sequence[str]
) -> list[Experiment]:
    """The runs of a command line: every strategy with every seed, seed by seed so that pairs come early."""
    spec = changed(checks.lookup(EXPERIMENTS, name, "experiment"), settings)
    spec = replace(spec, data=data or spec.data)
    if not spec.data:
        raise ValueError(f"{name} takes data of your own: balent run {name} --data FILE.npz")
    if not spec.data.endswith(".npz"):
        checks.lookup(DATASETS, spec.data, "data set")
    names = dict.fromkeys(word.strip() for word in strategies)
    return [replace(spec, strategy=strategy, seed=seed) for seed in range(seeds) for strategy in names]
