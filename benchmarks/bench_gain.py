"""Is a strategy ahead of random, from the first labels on?  Accuracy by labels per class, paired by seed.

For each set, head, strategy and seed one Learner is asked up to 1, 2, 3, 5, 10, 20, 30 and 50 labels per class (10 for
100 classes or more), and its head is tested at each. `auto` begins with its own first batch, all others with random
points. Lines go to a file as they come, and what the file has is not run again.

    python benchmarks/bench_gain.py --data FOLDER --sets digits,mnist,cifar10-features --out results/gain.jsonl
    python benchmarks/bench_gain.py --out results/gain.jsonl.gz --table       what the file shows
    python benchmarks/bench_gain.py --out results/gain.jsonl.gz --heads       accuracy, NLL, calibration, seconds
    python benchmarks/bench_gain.py --predictors sklearn,sklearn-c33 --strategies random --sets digits --out heads.jsonl

A set is a name that `balent run --data` knows; `tail-NAME` leaves less of each class, down to a fiftieth of the first;
`3xNAME` is the set three times over. Pools are 10,000 points at most, tests 4,000, chosen by a hash. Long: give each
process its own --sets, or --seeds, and one thread (OMP_NUM_THREADS=1).

`sklearn` is scikit-learn's LogisticRegression with its defaults (C = 1, with a bias) on rows of length 1; `sklearn-c33`
has the prior of `Logistic` (C = 1 / 0.03). Neither has posterior samples, so run them with --strategies random.
"""

import argparse
import gzip
import json
import math
import re
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn

import balent
from balent.data.sources import Data, load, redundant
from balent.kernels.hashing import mixed
from balent.predictors.functions import Functions
from balent.predictors.inputs import as_pairs
from balent.predictors.logistic import PRECISION, unit_rows
from balent.report.significance import interval, p_value
from balent.simulation.evaluation import evaluation, predictions

PER_CLASS = (1, 2, 3, 5, 10, 20, 30, 50)
MANY, STOP = 100, 10  # classes from which on so many labels per class are the end
POOL, TEST, CLASSES = 10_000, 4_000, 100
TAIL = 50
DRAWS = 100
STRATEGIES = "auto,random,badge,power_bald,margin,balentacq,herding"
HEADS = ("logistic", "mc_dropout")
C = {"sklearn": 1.0, "sklearn-c33": 1 / PRECISION}


def some(x: torch.Tensor, y: torch.Tensor, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    at = mixed(31, torch.arange(len(y))).argsort()[:most].sort().values
    return x[at], y[at]


def tailed(x: torch.Tensor, y: torch.Tensor, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of class c a share of TAIL^(−c / (C − 1))."""
    share = TAIL ** -(y.double() / (classes - 1))
    keep = mixed(37, torch.arange(len(y))).double() / 2.0**64 + 0.5 < share
    return x[keep], y[keep]


def data(name: str, folder: Path | None) -> Data:
    """A set by name, of moderate size, as rows of numbers."""
    tail, times = name.startswith("tail-"), 3 if name.startswith("3x") else 1
    found = load(name.removeprefix("tail-").removeprefix("3x"), folder)
    classes = min(found.classes, CLASSES)
    train, test = ((torch.as_tensor(x[:]).flatten(1).float(), y) for x, y in _parts(found))
    (x, y), (x_test, y_test) = ((x[y < classes], y[y < classes]) for x, y in (train, test))
    if tail:
        x, y = tailed(x, y, classes)
    x, y = some(x, y, POOL // times)
    made = Data(x, y, *some(x_test, y_test, TEST), classes)
    return redundant(made, times) if times > 1 else made


def _parts(found: Data) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(found.x_train, found.y_train), (found.x_test, found.y_test)]


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

    def log_p(self, batch: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        """A class without a label has probability 0: the smallest number stands for it, as in the NLL of all heads."""
        p = torch.zeros(len(batch), self.classes)
        p[:, self.model.classes_] = torch.from_numpy(self.model.predict_proba(unit_rows(batch).numpy())).float()
        return p.clamp_min_(torch.finfo(p.dtype).tiny).log_()[:, None]

    def state(self) -> dict[str, torch.Tensor]:
        return {}

    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        """Nothing to put back: every fit begins anew."""


def head(name: str, d: Data, seed: int) -> balent.MCDropout | balent.Logistic | Sklearn:
    if name == "logistic":
        return balent.Logistic(d.classes)
    if name in C:
        return Sklearn(d.classes, C[name])
    torch.manual_seed(seed)
    width = d.x_test.shape[1]
    layers = [nn.Linear(width, 256), nn.Dropout(0.3), nn.ReLU(), nn.Linear(256, 256), nn.Dropout(0.3), nn.ReLU()]
    return balent.MCDropout(nn.Sequential(*layers, nn.Linear(256, d.classes)), epochs=60)


def counts(d: Data) -> list[int]:
    most = STOP if d.classes >= MANY else math.inf
    return [n * d.classes for n in PER_CLASS if n <= most and n * d.classes <= len(d.y_train) // 2]


def curve(d: Data, predictor: str, strategy: str, seed: int) -> Iterator[dict[str, float]]:
    """One line for each count of labels; seconds are those of the processor, so that other work does not count."""
    learner = balent.Learner(head(predictor, d, seed), d.x_train, strategy, seed=seed, draws=DRAWS, say=lambda _: None)
    for count in counts(d):
        start = time.process_time()
        picks = learner.ask(count - len(learner.told))
        asked = time.process_time() - start
        learner.tell(picks.indices, d.y_train[picks.indices])
        start = time.process_time()
        learner.fit()
        sampled = learner.predictor.sample(40, seed=seed)
        p = predictions(sampled, d.x_test)
        seconds = time.process_time() - start
        yield {
            "labels": count,
            "per_class": count // d.classes,
            "ask": asked,
            "fit": seconds,
            **evaluation(p, d.y_test),
        }


def lines(path: Path) -> list[dict]:
    """Of a file that need not be there; packed or not."""
    if not path.exists():
        return []
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        return [json.loads(line) for line in file]


def runs(args: argparse.Namespace) -> None:
    keys = ("set", "head", "strategy", "seed")
    done = {tuple(line[key] for key in keys) for line in lines(args.out) if line["last"]}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    names = args.sets.split(",")
    kinds = args.predictors.split(","), re.findall(r"[^,(]+(?:\([^)]*\))?", args.strategies)
    for seed, name in product(range(args.first, args.first + args.seeds), names):
        d = data(name, args.data)
        for predictor, strategy in product(*kinds):
            about = dict(zip(keys, (name, predictor, strategy, seed), strict=True))
            if tuple(about.values()) not in done:
                rows = list(curve(d, predictor, strategy, seed))
                rows = [about | row | {"last": i + 1 == len(rows)} for i, row in enumerate(rows)]
                with args.out.open("a") as file:
                    file.write("".join(json.dumps(row) + "\n" for row in rows))
                print(about, [round(100 * row["accuracy"], 1) for row in rows], flush=True)


# ── what the lines show ──────────────────────────────────────────────────────────────────────────


def table(found: list[dict], reference: str) -> None:
    """Gains of `auto` on each other strategy, and whether any is shown to be negative (Holm over the counts)."""
    accuracy = {(r["set"], r["head"], r["strategy"], r["seed"], r["per_class"]): 100 * r["accuracy"] for r in found}
    for name, predictor in dict.fromkeys((r["set"], r["head"]) for r in found):
        here = {key[2:]: value for key, value in accuracy.items() if key[:2] == (name, predictor)}
        per_class = sorted({key[2] for key in here})
        others = dict.fromkeys(key[0] for key in here if key[0] != reference)
        print(
            f"\n{name}, {predictor}: points of {reference} above …\n{'':>24s}"
            + "".join(f"{n:>13d}" for n in per_class)
            + f"{'area':>13s}"
        )
        for other in others:
            seeds = sorted({k[1] for k in here if k[0] == other} & {k[1] for k in here if k[0] == reference})
            gains = np.array([[here[reference, s, n] - here[other, s, n] for n in per_class] for s in seeds])
            columns = [*gains.T, gains.mean(1)]
            behind = [p_value(c) for c in gains.T if c.mean() < 0] if len(seeds) > 1 else []
            worst = min(behind, default=1.0) * len(per_class)
            print(
                f"{other:>24s}"
                + "".join(shown(c) for c in columns)
                + (f"   behind: p = {worst:.3f}" if worst < 0.05 else "")
            )


def markdown(found: list[dict], reference: str) -> None:
    """The two tables of docs/evidence.md: gains on random by labels per class, gains of area on the others.

    In brackets: the number of seeds, in the second table where it is smaller than in the first.
    """
    accuracy = {(r["set"], r["head"], r["strategy"], r["seed"], r["per_class"]): 100 * r["accuracy"] for r in found}
    pairs = list(dict.fromkeys((r["set"], r["head"]) for r in found))
    per_class = sorted({r["per_class"] for r in found})
    others = [name for name in dict.fromkeys(r["strategy"] for r in found) if name not in (reference, "random")]

    def seeds(pair: tuple[str, str], other: str) -> list[int]:
        mine, theirs = ({key[3] for key in accuracy if key[:3] == (*pair, of)} for of in (reference, other))
        return sorted(mine & theirs)

    def gain(pair: tuple[str, str], other: str, at: list[int]) -> str:
        both = seeds(pair, other)
        here = [n for n in at if both and (*pair, reference, both[0], n) in accuracy]  # many classes: fewer counts
        if not here:
            return ""
        rows = [[accuracy[*pair, reference, s, n] - accuracy[*pair, other, s, n] for n in here] for s in both]
        few = f" ({len(both)})" if len(both) < len(seeds(pair, "random")) else ""
        return shown(np.array(rows).mean(1)).strip().replace("-", "−") + few

    columns = {**{str(n): [n] for n in per_class}, "area": per_class}
    _print_rows(["set, head (seeds)", *columns])
    for pair in pairs:
        _print_rows(
            [
                f"{', '.join(pair)} ({len(seeds(pair, 'random'))})",
                *(gain(pair, "random", at) for at in columns.values()),
            ],
            head=False,
        )
    print()
    _print_rows(["set, head", *others])
    for pair in pairs:
        _print_rows([", ".join(pair), *(gain(pair, other, per_class) for other in others)], head=False)


def _print_rows(cells: list[str], head: bool = True) -> None:
    print(f"| {' | '.join(cells)} |" + ("\n|" + " --- |" * len(cells) if head else ""))


def shown(gains: np.ndarray) -> str:
    if len(gains) < 2:
        return f"{gains.mean():+13.1f}"
    low, high = interval(gains)
    return f"{gains.mean():+7.1f} ±{(high - low) / 2:4.1f}"


def heads(found: list[dict], as_markdown: bool) -> None:
    """Heads on random labels: accuracy, NLL, calibration error, CPU seconds to fit and to predict the test set."""
    names = list(dict.fromkeys(r["head"] for r in found))
    by = {}
    for r in found:
        if r["strategy"] == "random":
            by.setdefault((r["set"], r["per_class"], r["head"]), []).append(r)
    if as_markdown:
        _print_rows(["set, labels per class (seeds)", *names])
        for name, n in dict.fromkeys(key[:2] for key in by):
            cells = [cell(by[name, n, head]) if (name, n, head) in by else "" for head in names]
            seeds = max(len(rows) for key, rows in by.items() if key[:2] == (name, n))
            _print_rows([f"{name}, {n} ({seeds})", *cells], head=False)
        return
    for (name, n, head), rows in sorted(by.items(), key=lambda item: (item[0][0], names.index(item[0][2]), item[0][1])):
        row = "{:6.1f} % {:6.2f} {:6.1f} % {:7.2f} s".format(*qualities(rows))
        print(f"{name:>22s} {head:>12s} {n:4d} {row}")


def qualities(rows: list[dict]) -> tuple[float, float, float, float]:
    """Means over seeds; shares in %."""
    mean = {key: float(np.mean([r[key] for r in rows])) for key in ("accuracy", "nll", "ece", "fit")}
    return 100 * mean["accuracy"], mean["nll"], 100 * mean["ece"], mean["fit"]


def cell(rows: list[dict]) -> str:
    return "{:.1f} / {:.2f} / {:.0f} / {:.2f}".format(*qualities(rows))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="the folder with data sets")
    asked.add_argument("--sets", default="digits")
    asked.add_argument("--predictors", default=",".join(HEADS))
    asked.add_argument("--strategies", default=STRATEGIES)
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--first", type=int, default=0, help="the first seed")
    asked.add_argument("--out", type=Path, default=Path("runs/gain.jsonl"))
    asked.add_argument("--table", action="store_true")
    asked.add_argument("--heads", action="store_true")
    asked.add_argument("--markdown", action="store_true")
    asked.add_argument("--reference", default="auto")
    args = asked.parse_args()
    found = lines(args.out)
    if args.table:
        table(found, args.reference)
    elif args.heads:
        heads(found, args.markdown)
    elif args.markdown:
        markdown(found, args.reference)
    else:
        runs(args)


if __name__ == "__main__":
    main()
