"""Lines of benchmarks/bench_gain.py as accuracies by labels per class, paired by seed."""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from balent.report.significance import ALPHA, holm, p_value

SETS = {
    "digits": "digits",
    "mnist": "MNIST",
    "cifar10-features": "CIFAR-10",
    "cifar100-features": "CIFAR-100",
    "tinyimagenet-features": "TinyImageNet",
    "svhn-features": "SVHN",
    "satellite": "satellite",
    "letterrecognition": "letters",
    "banking77": "banking77",
    "3xcifar10-features": "CIFAR-10, three times",
    "tail-cifar10-features": "CIFAR-10, tail 50:1",
    "rare-cifar10-features": "CIFAR-10, tail 100:1",
    "noisy-cifar10-features": "CIFAR-10, wrong labels",
    "outliers-cifar10-features": "CIFAR-10, outliers",
    "blind-cifar10-features": "CIFAR-10, noise for features",
}
FAULTY = ("rare-", "noisy-", "outliers-", "blind-")
Case = tuple[str, str]  # set, head
Curve = dict[int, float]  # labels per class → accuracy in %


@dataclass(frozen=True)
class Curves:
    """Accuracies of set, head, strategy and seed."""

    found: dict[tuple[str, str, str, int], Curve]

    @classmethod
    def read(cls, *paths: Path) -> "Curves":
        made: dict[tuple[str, str, str, int], Curve] = {}
        for line in lines(*paths):
            key = line["set"], line["head"], called(line["strategy"], line["start"]), line["seed"]
            made.setdefault(key, {})[line["per_class"]] = 100 * line["accuracy"]
        return cls(made)

    def only(self, head: str = "", sets: str = "") -> "Curves":
        """`sets` are the `usual` ones, or the `faulty` ones; nothing: all."""
        wanted = {
            "": lambda _: True,
            "usual": lambda s: not s.startswith(FAULTY),
            "faulty": lambda s: s.startswith(FAULTY),
        }
        kept = {key: c for key, c in self.found.items() if head in ("", key[1]) and wanted[sets](key[0])}
        return Curves(kept)

    @property
    def cases(self) -> list[Case]:
        order = list(SETS)
        return sorted({key[:2] for key in self.found}, key=lambda case: (order.index(case[0]), case[1]))

    @property
    def strategies(self) -> list[str]:
        return list(dict.fromkeys(key[2] for key in self.found))

    @property
    def counts(self) -> list[int]:
        return sorted({n for curve in self.found.values() for n in curve})

    def of(self, case: Case, strategy: str) -> dict[int, Curve]:
        """By seed."""
        return {key[3]: curve for key, curve in self.found.items() if key[:3] == (*case, strategy)}

    def gains(self, case: Case, of: str, on: str) -> np.ndarray:
        """[seeds, counts]: accuracy of one strategy less that of another, where both were run."""
        mine, theirs = self.of(case, of), self.of(case, on)
        both = sorted(mine.keys() & theirs.keys())
        return np.array([[mine[seed][n] - theirs[seed][n] for n in sorted(mine[seed])] for seed in both])


def lines(*paths: Path) -> Iterable[dict]:
    for path in paths:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
            yield from map(json.loads, file)


def called(strategy: str, start: str = "") -> str:
    """A strategy from a file is called by its class: `benchmarks/typiclust.py:TypiClust` is typiclust."""
    name = strategy.rpartition(":")[2].lower() if ".py:" in strategy and "herding" not in strategy else strategy
    return f"{name}, start {start}" if start else name


def titled(case: Case) -> str:
    return f"{SETS[case[0]]}, {case[1].replace('mc_dropout', 'MC dropout').replace('logistic', '`Logistic`')}"


def beyond_chance(gained: np.ndarray) -> np.ndarray:
    """Which columns differ from 0: p ≤ 0.05 after Holm's correction over the columns."""
    if len(gained) < 2:
        return np.zeros(gained.shape[1], dtype=bool)
    return np.array([step.p for step in holm([p_value(column) for column in gained.T])]) <= ALPHA
