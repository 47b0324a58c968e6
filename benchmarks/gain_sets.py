"""Sets for bench_gain.py: known ones by name, and what may go wrong with them as words before the name.

    cifar10-features            FOLDER/cifar10-features.npz, or a name `balent run --data` knows; rows of numbers
    banking77                   FOLDER/banking77/train.csv and test.csv: texts by TF-IDF, tables as in projects
    3xcifar10-features          every point three times
    tail-cifar10-features       class c keeps a share of 50^(−c / (C − 1)): the last one a fiftieth
    rare-cifar10-features       the same, down to a hundredth
    noisy-cifar10-features      a tenth of the labels of the pool are wrong
    outliers-cifar10-features   a twentieth of the pool is noise, three times as long as a usual row
    blind-cifar10-features      rows are noise: features without meaning

Pools have 10,000 points at most, tests 4,000, and the first 100 classes are used; which points is decided by a hash.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from balent.data.sources import Data, load, redundant
from balent.data.table_rows import TableRows, rows
from balent.data.waves import Waves
from balent.kernels.hashing import mixed
from balent.text.tfidf import Tfidf

POOL, TEST, CLASSES = 10_000, 4_000, 100
TAIL, RARE = 50, 100
WRONG, NOISE, LENGTH = 0.1, 0.05, 3.0
TARGETS, TEXT = ("class", "category"), "text"  # columns of tables
Pool = tuple[Tensor, Tensor]  # rows, classes


def uniform(n: int, purpose: int) -> Tensor:
    return mixed(purpose, torch.arange(n)).double() / 2.0**64 + 0.5


def tailed(times: int) -> Callable[[Pool, int], Pool]:
    def cut(pool: Pool, classes: int) -> Pool:
        x, y = pool
        keep = uniform(len(y), 37) < float(times) ** -(y.double() / (classes - 1))
        return x[keep], y[keep]

    return cut


def noisy(pool: Pool, classes: int) -> Pool:
    x, y = pool
    shift = 1 + (uniform(len(y), 41) * (classes - 1)).long()
    return x, torch.where(uniform(len(y), 43) < WRONG, (y + shift) % classes, y)


def outliers(pool: Pool, classes: int) -> Pool:
    x, y = pool
    chosen = uniform(len(y), 47) < NOISE
    return torch.where(chosen[:, None], noise_like(x, LENGTH), x), y


def blind(pool: Pool, classes: int) -> Pool:
    return noise_like(pool[0], 1.0), pool[1]


def noise_like(x: Tensor, length: float) -> Tensor:
    """Random directions of the length of a usual row, around the mean of all."""
    random = torch.randn(x.shape, generator=torch.Generator().manual_seed(53))
    usual = (x - x.mean(0)).norm(dim=1).median()
    return x.mean(0) + length * usual * random / random.norm(dim=1, keepdim=True)


FAULTS = {"tail-": tailed(TAIL), "rare-": tailed(RARE), "noisy-": noisy, "outliers-": outliers, "blind-": blind}


def some(pool: Pool, most: int) -> Pool:
    at = uniform(len(pool[1]), 31).argsort()[:most].sort().values
    return pool[0][at], pool[1][at]


def tables(folder: Path) -> Data:
    """Two files of texts or rows as features, learnt from the first; their classes are numbered by name."""
    read = [rows(folder / f"{part}.csv") for part in ("train", "test")]
    target = next(name for name in TARGETS if name in read[0].columns)
    names, y = np.unique([str(c) for c in read[0].columns[target]], return_inverse=True)
    maker = Tfidf() if TEXT in read[0].columns else Waves()
    x, x_test = (contents(table, target) for table in read)
    maker.fit(x)
    y_test = np.searchsorted(names, [str(c) for c in read[1].columns[target]])
    arrays = maker(x)[0], y, maker(x_test)[0], y_test
    return Data(*map(torch.from_numpy, arrays), len(names))


def contents(table: TableRows, target: str) -> list:
    if TEXT in table.columns:
        return [str(text) for text in table.columns[TEXT]]
    return [{name: cell for name, cell in table[i].items() if name != target} for i in range(len(table))]


def found_data(name: str, folder: Path) -> Data:
    own = folder / f"{name}.npz"
    if (folder / name / "train.csv").exists():
        return tables(folder / name)
    return load(str(own) if own.exists() else name, folder)


def data(name: str, folder: Path | None) -> Data:
    """A set by name, of moderate size, as rows of numbers."""
    fault = next((word for word in FAULTS if name.startswith(word)), "")
    name = name.removeprefix(fault)
    times = 3 if name.startswith("3x") else 1
    found = found_data(name.removeprefix("3x"), folder or Path())
    classes = min(found.classes, CLASSES)
    parts = [(found.x_train, found.y_train), (found.x_test, found.y_test)]
    train, test = ((torch.as_tensor(x[:]).flatten(1).float()[y < classes], y[y < classes]) for x, y in parts)
    if fault.startswith(("tail", "rare")):
        train = FAULTS[fault](train, classes)
    train = some(train, POOL // times)
    if fault and not fault.startswith(("tail", "rare")):
        train = FAULTS[fault](train, classes)
    made = Data(*train, *some(test, TEST), classes)
    return redundant(made, times) if times > 1 else made
