"""Does `balent doctor` find what is wrong, and nothing where nothing is?  Prepared cases, over several seeds.

    python benchmarks/doctor_cases.py                 every case, 5 seeds: a few minutes
    python benchmarks/doctor_cases.py --seeds 20 --only noise,clean

A case is found if the check that it is for gives a warning or a failure. `alarms` are warnings and failures of other
checks; in the cases that begin with "good" and "clean" every one of them is false. Digits come with balent.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Generator, nn

from balent import MCDropout, Project
from balent.apps.doctor.examination import findings
from balent.apps.doctor.finding import FAILURE, WARNING, Finding
from balent.apps.doctor.of_model import OfModel
from balent.apps.doctor.of_project import OfProject
from balent.apps.doctor.patient import Evidence, Patient
from balent.data.sources import load

LABELS, ROUND = 200, 50
CLASSES = [str(digit) for digit in range(10)]


@dataclass(frozen=True)
class Case:
    """What is wrong, which check finds it, and how it is made in a folder."""

    check: str
    make: Callable[[Path, int], Evidence]


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Rows of 64 numbers, and their classes."""
    data = load("digits")
    return data.x_train[:].flatten(1).float().numpy(), data.y_train[:].numpy()


def project(folder: Path, rows: np.ndarray, said: np.ndarray, seed: int, labels: int = LABELS) -> Evidence:
    """A project over rows, with labels asked for in rounds; `said` is what a person answers."""
    np.save(folder / "rows.npy", rows)
    made = Project.create(folder / "p.balent", folder / "rows.npy", classes=CLASSES, seed=seed)
    for _ in range(0, labels, ROUND):
        asked = made.ask(min(ROUND, labels))
        made.tell({item.id: CLASSES[said[int(item.id)]] for item in asked})
    return OfProject(made)


def noisy(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Labels of which this share is of another class."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(y)) < share
    return np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)


def with_noise(share: float, blur: float = 0.0, labels: int = LABELS) -> Callable[[Path, int], Evidence]:
    """Digits with wrong labels; blurred by this much noise in the features, as a harder problem."""

    def make(folder: Path, seed: int) -> Evidence:
        x, y = digits()
        hard = x + blur * x.std() * np.random.default_rng(seed).normal(size=x.shape)
        return project(folder, hard.astype(np.float32), noisy(y, share, seed), seed, labels)

    return make


def without_meaning(folder: Path, seed: int) -> Evidence:
    x, y = digits()
    return project(folder, np.random.default_rng(seed).normal(size=(len(x), 64)).astype(np.float32), y, seed)


def one_class(folder: Path, seed: int) -> Evidence:
    x, y = digits()
    return project(folder, x, np.zeros_like(y), seed, ROUND)


def network(dropout: float = 0.3, layers: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), *([nn.Dropout(dropout)] if layers else []), nn.Linear(128, 10))


def model(
    seed: int, make: Callable[[], nn.Module] = network, pool: np.ndarray | None = None, train: bool = True
) -> Evidence:
    """MC dropout on 400 digits, 300 others as labelled points that it was not trained on, and the rest as its pool."""
    x, y = digits()
    torch.manual_seed(seed)
    predictor = MCDropout(make(), epochs=60)
    order = np.random.default_rng(seed).permutation(len(x))
    mine, held, rest = order[:400], order[400:700], order[700:]
    if train:
        predictor.fit((torch.from_numpy(x[mine]), torch.from_numpy(y[mine])), generator=Generator().manual_seed(seed))
    labelled = (x[held], y[held])
    return OfModel(predictor.sample(100, seed=seed), x[rest] if pool is None else pool(x[rest]), "auto", labelled)


def no_dropout(folder: Path, seed: int) -> Evidence:
    return model(seed, lambda: network(layers=False), train=False)


def dead_dropout(folder: Path, seed: int) -> Evidence:
    return model(seed, lambda: network(dropout=0.0), train=False)


def dropout_without_effect(folder: Path, seed: int) -> Evidence:
    """The weights behind the dropout are zero: masks change nothing."""

    def made() -> nn.Module:
        found = network()
        nn.init.zeros_(found[-1].weight)
        return found

    return model(seed, made, train=False)


def repeated(share: float, jitter: float = 0.0) -> Callable[[Path, int], Evidence]:
    """A pool of which this share repeats other points, exactly or nearly."""

    def make(folder: Path, seed: int) -> Evidence:
        rng = np.random.default_rng(seed)

        def more(x: np.ndarray) -> np.ndarray:
            again = x[rng.integers(len(x), size=round(len(x) * share / (1 - share)))]
            again = again + jitter * rng.normal(size=again.shape)
            return rng.permutation(np.concatenate([x, again.astype(np.float32)]))

        return model(seed, pool=more)

    return make


def constant(folder: Path, seed: int) -> Evidence:
    return model(seed, pool=lambda x: np.full_like(x, 0.5), train=False)


CASES = {
    "good project": Case("", with_noise(0)),
    "good model": Case("", lambda folder, seed: model(seed)),
    "clean, 100 labels": Case("", with_noise(0, labels=100)),
    "clean, blurred features": Case("", with_noise(0, blur=0.5)),
    "clean, hard features": Case("", with_noise(0, blur=1.0)),
    "no dropout": Case("draws", no_dropout),
    "dropout of p = 0": Case("draws", dead_dropout),
    "dropout without effect": Case("draws", dropout_without_effect),
    "30 % duplicates": Case("duplicates", repeated(0.3)),
    "30 % near-duplicates": Case("near-duplicates", repeated(0.3, jitter=0.005)),
    "constant features": Case("features", constant),
    "label noise of 20 %": Case("label noise", with_noise(0.2)),
    "noise of 20 %, 100 labels": Case("label noise", with_noise(0.2, labels=100)),
    "noise of 20 %, blurred": Case("label noise", with_noise(0.2, blur=0.5)),
    "noise of 10 %": Case("label noise", with_noise(0.1)),
    "one class": Case("classes", one_class),
    "features without meaning": Case("meaning", without_meaning),
}


def examined(case: Case, seed: int) -> list[Finding]:
    """What the doctor says of a case."""
    with tempfile.TemporaryDirectory() as folder:
        return [*findings(Patient(case.make(Path(folder), seed)))]


def alarms(found: list[Finding]) -> Iterator[Finding]:
    return (finding for finding in found if finding.level in (WARNING, FAILURE))


def row(name: str, seeds: int) -> str:
    """A case over its seeds: how often it was found, as what, and the alarms of other checks."""
    case, levels, others, said = CASES[name], Counter[str](), Counter[str](), ""
    for seed in range(seeds):
        for finding in alarms(examined(case, seed)):
            if finding.about == case.check:
                levels[finding.level] += 1
                said = said or finding.says
            else:
                others[f"{finding.level} {finding.about}"] += 1
    hits = f"{levels.total()}/{seeds}" if case.check else "-"
    level = ", ".join(f"{count} {name}" for name, count in levels.items())
    other = ", ".join(f"{count} {name}" for name, count in others.items()) or "none"
    return f"{name:<27}{case.check or '-':<17}{hits:<7}{level:<23}{other:<45}{said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="words, with commas between: cases that have one of them")
    args = parser.parse_args()
    torch.set_num_threads(1)  # on a busy machine several take many times as long over steps this small
    print(f"{'case':<27}{'check':<17}{'found':<7}{'as':<23}{'other alarms':<45}of the first seed that found it")
    for name in CASES:
        if any(word in name for word in args.only.split(",")):
            print(row(name, args.seeds), flush=True)


if __name__ == "__main__":
    main()
