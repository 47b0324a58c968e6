"""How much of what is possible does a strategy get?  A greedy oracle that knows every label, beside strategies.

One label at a time: of 50 random points the oracle takes the one whose label gives the best accuracy on the test set,
and of equal ones the best likelihood. It sees the labels of the test set, which no strategy can. It is greedy, so it is
no bound in theory. Lines are those of bench_gain.py with --k 1, and go to the same kind of file.

    python benchmarks/bench_oracle.py --data FOLDER --sets digits --out runs/oracle.jsonl
    python benchmarks/bench_gain.py --k 1 --heads logistic --data FOLDER --sets digits --out runs/oracle.jsonl
    python docs/gain_tables.py shares runs/oracle.jsonl
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import torch
from bench_gain import KEYS, counts, lines
from gain_sets import data
from torch import Tensor

import balent
from balent.data.sources import Data
from balent.maths import noise
from balent.predictors.logistic import PRECISION, Regression
from balent.simulation.evaluation import evaluation, predictions

CANDIDATES = 50


class Oracle:
    """Both views of the head, of the pool and of the test set, computed once."""

    def __init__(self, d: Data, seed: int) -> None:
        self.d, self.seed, self.chosen = d, seed, torch.empty(0, dtype=torch.int64)
        self.head = balent.Logistic(d.classes, anchors=d.x_train)  # sets have no more points than it takes
        self.pool, self.test = (self._views(x) for x in (d.x_train, d.x_test))

    def _views(self, x: Tensor) -> list[Tensor]:
        rows = self.head.seen(x)
        return [rows, self.head.neighbours(rows)]

    def step(self) -> None:
        order = noise.uniform(self.seed, torch.arange(len(self.d.y_train)), len(self.chosen))
        order[self.chosen] = torch.inf
        candidates = order.argsort()[:CANDIDATES]
        p = torch.stack([self._predicted(*views, candidates) for views in zip(self.pool, self.test, strict=True)])
        best = self._quality(p.mean(0)).argmax()
        self.chosen = torch.cat([self.chosen, candidates[best : best + 1]])

    def _predicted(self, pool: Tensor, test: Tensor, candidates: Tensor) -> Tensor:
        """[candidates, test, classes]: with the label of each candidate beside those that are known."""
        at = torch.cat([self.chosen, candidates])
        known = torch.ones(len(candidates), len(self.chosen))
        fitted = Regression.of(pool[at], self.d.y_train[at], self.d.classes, PRECISION)
        start = fitted.x.new_zeros(1, self.d.classes * fitted.x.shape[1])
        weights = fitted.draws(torch.cat([known, torch.eye(len(candidates))], 1), start)
        return (test @ weights.transpose(1, 2)).softmax(-1)

    def _quality(self, p: Tensor) -> Tensor:
        """Accuracy on the test set; the likelihood decides between equal ones."""
        right = (p.argmax(-1) == self.d.y_test).double().mean(1)
        likelihood = p[:, torch.arange(p.shape[1]), self.d.y_test].double().log().mean(1)
        return right + 1e-6 * likelihood

    def tested(self) -> dict[str, float]:
        labelled = self.d.x_train[self.chosen], self.d.y_train[self.chosen]
        self.head.fit(labelled, generator=torch.Generator().manual_seed(self.seed))
        return evaluation(predictions(self.head.sample(40, seed=self.seed), self.d.x_test), self.d.y_test)


def curve(d: Data, seed: int) -> Iterator[dict[str, float]]:
    oracle = Oracle(d, seed)
    for count in counts(d, 1):
        while len(oracle.chosen) < count:
            oracle.step()
        yield {"labels": count, "per_class": count // d.classes, **oracle.tested()}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="the folder with data sets")
    asked.add_argument("--sets", default="digits")
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--out", type=Path, default=Path("runs/oracle.jsonl"))
    args = asked.parse_args()
    done = {tuple(line[key] for key in KEYS) for line in lines(args.out) if line["last"]}
    for name in args.sets.split(","):
        d = data(name, args.data)
        for seed in range(args.seeds):
            run = dict(zip(KEYS, (name, "logistic", "oracle", seed, 1, ""), strict=True))
            if tuple(run.values()) not in done:
                rows = [run | row for row in curve(d, seed)]
                args.out.parent.mkdir(parents=True, exist_ok=True)
                with args.out.open("a") as file:
                    file.write("".join(json.dumps(row | {"last": row is rows[-1]}) + "\n" for row in rows))
                print(*run.values(), [round(100 * row["accuracy"], 1) for row in rows], flush=True)


if __name__ == "__main__":
    main()
