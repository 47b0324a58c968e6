"""Experiments by name: every scenario of the paper with its own settings, and a smaller one for two cores.

A `Scenario` is data with reasons: the specification, the strategies compared, the table of the paper
that it answers (`results.py`), and what its `cpu` profile shrinks. Numbers are those of the paper's configuration table
(`published.json`, "configuration") unless a comment says otherwise; a test compares them. The paper does not say
how many labels its runs start from: here it is one purchase, and 20 for MNIST, whose purchases are of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from torch import nn

from balent import adapt
from balent.data import sources as datasets
from balent.data.sources import Data
from balent.lookup import lookup
from balent.paper.networks import BNN, CNNBNN, VariationalDropoutClassifier, backbone_with_head, bayesian_head
from balent.simulation.experiment import Experiment, changed
from balent.strategies import strategy as named

HERE = "balent.paper.experiments"


# ── networks, made for a data set ────────────────────────────────────────────────────────────────


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


def cnn(data: Data) -> nn.Module:
    """The paper's network for MNIST."""
    return CNNBNN(data.classes)


def head(data: Data) -> nn.Module:
    """The paper's Bayesian head on fixed features."""
    return bayesian_head(data.x_train.shape[1], data.classes)


def variational(data: Data) -> nn.Module:
    """The paper's classifier with variational dropout, on fixed features."""
    return VariationalDropoutClassifier(data.x_train.shape[1], data.classes)


def classes(data: Data) -> int:
    """All that a Gaussian process or logistic regression needs to know."""
    return data.classes


def with_backbone(data: Data, backbone: str) -> nn.Module:
    """A backbone that is trained together with its Bayesian head."""
    return backbone_with_head(backbone, data.classes, image_size=data.x_train.shape[-1])


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────

STARTER = ("auto", "balentacq", "random")
OWN = ("auto", "balentacq", "badge", "margin", "random")
STANDALONE = ("balentacq", "bald", "entropy", "mean_sd", "power_bald", "random")
MAIN = ("balentacq", "badge", "bald", "entropy", "mean_sd", "power_bald", "random")
SMALL = (*MAIN[:-1], "variation_ratio", "batch_bald", "core_set", "random")
CASES = tuple(f"balentacq(precision={k})" for k in (-1, 0, 1, 2, 3))  # 1 to 5 of the paper
PRIORITIES = ("neg_balent", "balentacq", "balent")  # P1 to P3


@dataclass(frozen=True)
class Scenario:
    """An experiment and what is compared in it."""

    spec: Experiment
    strategies: tuple[str, ...] = STANDALONE
    cpu: dict[str, Any] = field(default_factory=dict)  # settings of the profile for two cores
    pools: tuple[str, ...] = ()  # several data sets, one after the other; default: that of the specification

    def profile(self, name: str) -> Experiment:
        """The specification under a profile."""
        changes = lookup({"paper": {}, "cpu": self.cpu}, name, "profile")
        return replace(self.spec, **changes, profile=name if changes else "paper")

    def shrunk(self, name: str) -> str:
        """What a profile changes, in words."""
        spec, small = self.spec, self.profile(name)
        names = [key for key in self.cpu if getattr(spec, key) != getattr(small, key)]
        return ", ".join(f"{key} {getattr(spec, key)} → {getattr(small, key)}" for key in names)


def _paper(name: str, data: str, network: str, **settings: Any) -> Experiment:
    """Masks per point, as in the authors' code; batches of 128 and 100 draws everywhere."""
    common: dict[str, Any] = {"masks": "per-point", "batch_size": 128, "draws": 100, "epochs": 150}
    return Experiment(name, data, f"{HERE}:{network}", **(common | settings))


# Small enough that three strategies with five seeds each take a minute or two. Masks per point as in the authors' code.
DIGITS = Experiment("digits", "digits", f"{HERE}:mlp", masks="per-point", epochs=100, start=20, per_round=10, total=200)
# The paper shows its toy example as pictures, without a protocol: few labels at a time, so that one can watch.
MOONS = Experiment("moons", "moons", f"{HERE}:toy", masks="per-point", epochs=150, start=6, per_round=6, total=60)
# One's own features: balent run features --data FILE.npz
FEATURES = Experiment("features", "", f"{HERE}:classes", "logistic", start=20, per_round=20, total=400)

MNIST = _paper(
    "mnist", "mnist", "cnn", learning_rate=0.01, start=20, per_round=1, total=300, evaluate_every=10
)  # evaluated every ten labels: the paper's columns are 50, 100, 300
CIFAR100 = _paper("cifar100", "cifar100-features", "head", learning_rate=3e-4, start=500, per_round=500, total=10_000)
TINYIMAGENET = _paper(
    "tinyimagenet",
    "tinyimagenet",
    "with_backbone",
    learning_rate=3e-4,
    epochs=100,
    start=1500,
    per_round=1500,
    total=30_000,
    warm_start=True,  # "we re-use the previously trained model for the next training"
    augment="crop-flip-jitter-gray",
    backbone="resnet50",
)
# The paper's table gives neither epochs nor learning rate for SVHN: those of TinyImageNet, the other trained backbone.
SVHN = replace(
    TINYIMAGENET,
    name="svhn",
    data="svhn",
    start=2500,
    per_round=2500,
    warm_start=False,
    augment="",
    backbone="resnet18",
)
X3CIFAR100 = replace(CIFAR100, name="3xcifar100", data="3xcifar100-features", total=30_000)
X3CIFAR10 = replace(CIFAR100, name="3xcifar10", data="3xcifar10-features", start=25, per_round=25, total=500)
VARIATIONAL: dict[str, Any] = {
    "predictor": "variational_dropout",
    "network": f"{HERE}:variational",
    "epochs": 500,
    "warm_start": True,
    "masks": "shared",  # its draws are of weights
}
FEW: dict[str, Any] = {"total": 5000}  # a head on so many features is trained in seconds
# A pass over 60,000 images with 20 draws takes 12 s on one core, with 100 draws half a minute.
IMAGES: dict[str, Any] = {"draws": 20, "evaluation_draws": 50}
BATCHES: dict[str, Any] = {"start": 25, "per_round": 25, "evaluate_every": 1}

SCENARIOS = (
    Scenario(DIGITS, STARTER),
    Scenario(MOONS),
    Scenario(FEATURES, OWN),
    Scenario(MNIST, MAIN, BATCHES | IMAGES),
    Scenario(CIFAR100, MAIN, FEW),
    Scenario(X3CIFAR100, MAIN, FEW),
    Scenario(
        SVHN,
        MAIN,
        {"start": 200, "per_round": 200, "total": 1000, "epochs": 40, "backbone": "random:resnet10", "draws": 50},
    ),
    Scenario(
        TINYIMAGENET,
        MAIN,
        {"start": 500, "per_round": 500, "total": 1500, "epochs": 5, "backbone": "random:resnet10", "draws": 50},
    ),
    Scenario(
        replace(
            TINYIMAGENET,
            name="tinyimagenet-scratch",
            backbone="random:resnet50",
            start=2500,
            per_round=2500,
            total=50_000,
        ),
        MAIN,
        {"start": 500, "per_round": 500, "total": 1500, "epochs": 5, "backbone": "random:resnet10", "draws": 50},
    ),
    # Not in the paper, which trains the backbone: its head on features that are computed once.
    Scenario(
        replace(
            CIFAR100,
            name="tinyimagenet-features",
            data="tinyimagenet-features",
            start=1500,
            per_round=1500,
            total=30_000,
        ),
        MAIN,
        {"total": 7500, "draws": 20},
    ),
    Scenario(
        replace(MNIST, name="3xmnist", data="3xmnist", start=25, per_round=25, evaluate_every=1),
        SMALL,
        IMAGES,
    ),
    Scenario(X3CIFAR10, SMALL, {"total": 300}),
    Scenario(
        replace(X3CIFAR10, name="3xcifar10-variational", start=50, per_round=50, total=1000, **VARIATIONAL),
        MAIN,
        {"total": 300, "epochs": 50, "draws": 20, "evaluation_draws": 20},
    ),
    Scenario(
        replace(X3CIFAR100, name="3xcifar100-variational", **VARIATIONAL),
        MAIN,
        {"total": 2000, "epochs": 20, "draws": 20, "evaluation_draws": 20},
    ),
    Scenario(
        replace(
            X3CIFAR10,
            name="3xcifar10-gp",
            predictor="gaussian_process",
            network=f"{HERE}:classes",
            epochs=5000,
            learning_rate=0.1,
            start=500,
            per_round=500,
            total=10_000,
            masks="shared",
        ),
        (*MAIN[:-1], "variation_ratio", "random"),
        {"start": 100, "per_round": 100, "total": 500, "epochs": 50, "draws": 20},
    ),
    Scenario(
        replace(X3CIFAR100, name="redundancy"),
        ("balentacq",),
        FEW,
        tuple(f"{times}xcifar100-features" for times in (1, 3, 5, 7, 10, 20, 50)),
    ),
    Scenario(replace(X3CIFAR100, name="prioritization"), PRIORITIES, FEW),
    Scenario(replace(X3CIFAR100, name="precision"), CASES, FEW),
    Scenario(
        replace(CIFAR100, name="no-ratio", total=30_000),
        ("balentacq", "mjentacq"),
        FEW,
        ("cifar100-features", "3xcifar100-features"),
    ),
    Scenario(
        replace(MNIST, name="coremse"),
        ("balentacq", "core_mse", "bald", "variation_ratio", "random"),
        BATCHES | IMAGES,
    ),
)
EXPERIMENTS = {scenario.spec.name: scenario for scenario in SCENARIOS}


def chosen(
    name: str,
    data: str | None = None,
    strategies: Sequence[str] = (),
    seeds: int = 3,
    settings: Sequence[str] = (),
    profile: str = "paper",
) -> list[Experiment]:
    """The runs of a command line: every strategy with every seed, seed by seed so that pairs come early.

    `data` replaces the data set, unless it is the folder that data sets lie in.
    """
    scenario = lookup(EXPERIMENTS, name, "experiment")
    spec = changed(scenario.profile(profile), settings)
    own = () if data is None or is_folder_of_sets(spec, data) else (data,)
    pools = own or scenario.pools or (spec.data,)
    if not all(pools):
        raise ValueError(f"{name} takes data of your own: balent run {name} --data FILE.npz")
    for pool in pools:
        datasets.known(pool)
    names = dict.fromkeys(word.strip() for word in strategies or scenario.strategies)
    if any(begins_by_itself(word) for word in names) and not any(word.startswith("start_set=") for word in settings):
        spec = replace(spec, start_set="auto")
    several = len(pools) > 1
    return [
        replace(spec, data=pool, name=f"{spec.name}-{pool}" if several else spec.name, strategy=strategy, seed=seed)
        for pool in pools
        for seed in range(seeds)
        for strategy in names
    ]


def begins_by_itself(strategy: str) -> bool:
    """Whether a strategy needs no labels to begin, as auto does. Beside it, others start from random points."""
    return not adapt.needs(named(strategy)).model


def is_folder_of_sets(spec: Experiment, data: str) -> bool:
    """Is this where the experiment's published data lie, rather than data of its own?"""
    return bool(spec.data) and spec.data not in datasets.DATASETS and Path(data).is_dir()
