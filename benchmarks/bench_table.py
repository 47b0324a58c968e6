"""What do waves add to the columns of a table?  Accuracy on random labels, beside a random forest.

    python benchmarks/bench_table.py                                     the tables that scikit-learn has
    python benchmarks/bench_table.py Shuttle.csv --target Class          a table of yours

Pools are 10,000 rows at most, tests 4,000, chosen at random. Means of four seeds.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier

import balent
from balent.data.columns import Columns
from balent.data.table_rows import rows
from balent.data.waves import Waves

PER_CLASS, SEEDS, DRAWS = (5, 10, 30), 4, 40
POOL, TEST = 10_000, 4_000

Table = tuple[list[dict], np.ndarray]  # cells by column, classes


def tables(args: argparse.Namespace) -> Iterator[tuple[str, Table]]:
    if args.table is None:
        for name in ("wine", "breast_cancer"):
            found = getattr(datasets, f"load_{name}")()
            cells = [dict(zip(found.feature_names, row, strict=True)) for row in found.data.tolist()]
            yield name, (cells, found.target)
        return
    cells = [dict(row) for row in rows(args.table)]
    classes = [row.pop(args.target) for row in cells]
    yield args.table, (cells, np.unique(classes, return_inverse=True)[1])


def logistic(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, test: torch.Tensor) -> torch.Tensor:
    head = balent.Logistic(int(y.max()) + 1, x)
    head.fit((x[at], y[at]), generator=torch.Generator())
    return head.sample(DRAWS, seed=0).moments(test).mean.argmax(1)


def forest(x: torch.Tensor, y: torch.Tensor, at: torch.Tensor, test: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(RandomForestClassifier(random_state=0).fit(x[at], y[at]).predict(test))


def accuracies(table: Table) -> Iterator[tuple[str, list[float]]]:
    cells, classes = table
    order = np.random.default_rng(0).permutation(len(cells))
    size = min(POOL, len(cells) * 2 // 3)
    pool, test = order[:size], order[size : size + TEST]
    y, y_test = (torch.from_numpy(classes[at]).long() for at in (pool, test))
    for name, maker, head in (
        ("columns", Columns(), logistic),
        ("columns, waves", Waves(), logistic),
        ("random forest", Columns(), forest),
    ):
        maker.fit([cells[i] for i in pool])
        x, x_test = (torch.from_numpy(maker([cells[i] for i in at])[0]) for at in (pool, test))
        means = [np.mean([accuracy(head, x, y, x_test, y_test, n, s) for s in range(SEEDS)]) for n in PER_CLASS]
        yield name, [100 * mean for mean in means]


def accuracy(head, x, y, x_test, y_test, per_class: int, seed: int) -> float:
    labels = per_class * (int(y.max()) + 1)
    at = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:labels]
    return float((head(x, y, at, x_test) == y_test).float().mean())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("table", nargs="?")
    asked.add_argument("--target")
    args = asked.parse_args()
    for name, table in tables(args):
        print(f"{name}, {len(set(table[1].tolist()))} classes; labels per class {PER_CLASS}")
        for kind, found in accuracies(table):
            print(f"  {kind:16s}" + "".join(f"{value:7.1f}" for value in found), flush=True)


if __name__ == "__main__":
    main()
