"""The paper's tables as data (`published.json`): accuracies, mean and spread over three repeats. No torch."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

REPEATS = 3

# Experiment: its table in published.json, and what the table's columns begin with.
TABLES = {
    "mnist": ("main", "mnist"),
    "cifar100": ("main", "cifar100"),
    "3xcifar100": ("main", "3xcifar100"),
    "svhn": ("main", "svhn"),
    "tinyimagenet": ("main", "tinyimagenet"),
    "tinyimagenet-scratch": ("tinyimagenet_scratch", ""),
    "3xmnist": ("small_acquisition", "3xmnist"),
    "3xcifar10": ("small_acquisition", "3xcifar10"),
    "3xcifar10-variational": ("variational_dropout", "3xcifar10"),
    "3xcifar100-variational": ("variational_dropout", "3xcifar100"),
    "3xcifar10-gp": ("gaussian_process", ""),
    "redundancy": ("redundancy", ""),
    "prioritization": ("prioritization", "3xcifar100"),
    "precision": ("precision", "3xcifar100"),
    "no-ratio": ("no_ratio", ""),
    "coremse": ("coremse", "mnist"),
}
ROWS = {
    "balentacq": "BalEntAcq", "bald": "BALD", "entropy": "Entropy", "mean_sd": "MeanSD", "power_bald": "PowerBALD",
    "badge": "BADGE", "random": "Random", "variation_ratio": "VarRatio", "batch_bald": "BatchBALD",
    "core_set": "CoreSet", "core_mse": "CoreMSE", "mjentacq": "MJEntAcq",
}  # fmt: skip
OF_TABLE = {  # where rows are no strategies
    "prioritization": {"neg_balent": "P1", "balentacq": "P2", "balent": "P3"},
    "precision": {f"balentacq(precision={k})": f"Case{k + 2}" for k in (-1, 0, 1, 2, 3)},
}
POOL = re.compile(r"(?P<name>redundancy|no-ratio)-(?:(?P<times>\d+)x)?(?P<set>\w+)-features")


@cache
def results() -> dict[str, Any]:
    """All tables."""
    return json.loads(Path(__file__).with_name("published.json").read_bytes())


def published(experiment: str, strategy: str) -> dict[int, tuple[float, float]]:
    """Accuracy and its standard deviation by number of labels, as shares; empty where the paper has none.

    >>> published("mnist", "balentacq")[300]
    (0.965, 0.001)
    """
    name, row = _row(experiment, strategy)
    table, begin = TABLES.get(name, ("", ""))
    found = results()[table]["rows"].get(row, {}) if table else {}
    columns = {key.partition("@")[::2]: value for key, value in found.items()}
    return {
        int(labels): (round(value[0] / 100, 6), round(value[1] / 100, 6))
        for (start, labels), value in columns.items()
        if start == begin and value is not None
    }


def acquisition_seconds(experiment: str, strategy: str) -> float | None:
    """What one batch took on the paper's A100; None where it does not say, or had too little memory.

    >>> acquisition_seconds("cifar100", "badge")
    302.5
    """
    found = [row for key, row in results()["acquisition_seconds"]["rows"].items() if key.split("/")[0] == experiment]
    value = found[0].get(ROWS.get(strategy, "")) if found else None
    return value if isinstance(value, float) else None


def _row(experiment: str, strategy: str) -> tuple[str, str]:
    """The experiment whose table it is, and the name of its row."""
    pool = POOL.fullmatch(experiment)
    if pool is None:
        return experiment, OF_TABLE.get(experiment, ROWS).get(strategy, "")
    times = f"x{pool['times'] or 1}"
    if pool["name"] == "redundancy":
        return "redundancy", times if strategy == "balentacq" else ""
    scenario = f"{times.removeprefix('x1')[1:]}x{pool['set']}" if times != "x1" else pool["set"]
    return "no-ratio", f"{scenario}:{ROWS.get(strategy, '')}"
