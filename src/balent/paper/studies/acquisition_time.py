"""Seconds to pick, against pool size and acquisition size, for BalEntAcq and BADGE.

A head with dropout on 256 features, 100 draws, for 10 and 100 classes. Features are random and the head is not trained:
neither matters for time. Each number is the best of three, on whatever else the machine does; the exponent is the slope
of log seconds over log size. The paper's BADGE holds gradients of N × C × D numbers; ours has factors of N × (C + D).
"""

import time
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from balent.acquisition.acquire import acquire
from balent.paper.networks import ResNetClassifier
from balent.paper.studies import drawing
from balent.paper.studies.study import Study, Table, Verdict, verdict
from balent.predictors.mc_dropout import MCDropout
from balent.predictors.training import reproducible
from balent.strategies import STRATEGIES
from balent.types import Sampled

COLUMNS = ("classes", "strategy", "against", "pool", "k", "seconds")
FEATURES = 256
POOLS, BATCHES, CLASSES = (2500, 5000, 10_000, 20_000), (10, 30, 100, 300, 1000), (10, 100)
NAMES = ("balentacq", "badge")
LABELS = {"pool": "points in the pool", "k": "acquisition size K"}
WHERE = "App. A.18"


def data(
    pools: tuple[int, ...] = POOLS,
    batches: tuple[int, ...] = BATCHES,
    classes: tuple[int, ...] = CLASSES,
    k: int = 100,
    draws: int = 100,
    repeats: int = 3,
) -> Table:
    sizes = [("pool", n, k) for n in pools] + [("k", pools[-2], size) for size in batches]
    names = [name for name in NAMES if name in STRATEGIES]
    rows: list[tuple[Any, ...]] = []
    for c in classes:
        sampled, points = _head(c, max(pools), draws)
        rows += [
            (c, name, against, n, size, min(_seconds(sampled, points[:n], size, name) for _ in range(repeats)))
            for name in names
            for against, n, size in sizes
        ]
    return Table(COLUMNS, rows)


def _head(classes: int, pool: int, draws: int) -> tuple[Any, Tensor]:
    """Functions and points to try them on; plans are made from the first batch."""
    generator = Generator().manual_seed(classes)
    points = torch.randn(pool, FEATURES, generator=generator).relu_()
    with reproducible(generator):
        sampled = MCDropout(ResNetClassifier(FEATURES, classes)).sample(draws, seed=0)
    sampled.moments(points[:2])
    return sampled, points


def _seconds(sampled: Sampled, points: Tensor, k: int, name: str) -> float:
    start = time.perf_counter()
    acquire(sampled, points, k, name)
    return time.perf_counter() - start


def plot(table: Table) -> list[Any]:
    counts = list(dict.fromkeys(table.column("classes")))
    figure, axes = drawing.panels(1, 2 * len(counts), 2.7, 2.6)
    for panel, (c, against) in zip(axes[0], ((c, against) for c in counts for against in LABELS), strict=True):
        for name, colour in zip(dict.fromkeys(table.column("strategy")), drawing.COLOURS, strict=False):
            panel.plot(*_line(table, c, name, against), "o-", markersize=3, color=colour, label=name)
        panel.set(xscale="log" if against == "k" else "linear", xlabel=LABELS[against], title=f"{c} classes")
        panel.set_ylim(bottom=0)
    axes[0][0].set_ylabel("seconds")
    axes[0][0].legend(fontsize=7)
    return [figure]


def _line(table: Table, classes: int, name: str, against: str) -> tuple[list[Any], list[Any]]:
    x, y = (table.column(column, classes=classes, strategy=name, against=against) for column in (against, "seconds"))
    return x, y


def exponents(table: Table, name: str, against: str) -> dict[int, float]:
    """The slope of log seconds over log size, by classes: 1 is linear, 0 does not depend."""
    lines = {c: _line(table, c, name, against) for c in dict.fromkeys(table.column("classes"))}
    return {c: float(np.polyfit(np.log(x), np.log(y), 1)[0]) for c, (x, y) in lines.items()}


def claim(table: Table) -> list[Verdict]:
    found = [
        _exponent(table, "balentacq", "k", "BalEntAcq's time does not depend on the acquisition size", 0),
        _exponent(table, "balentacq", "pool", "BalEntAcq's time is linear in the pool", 1),
    ]
    if "badge" in table.column("strategy"):
        found.append(_exponent(table, "badge", "k", "BADGE's time is linear in the acquisition size", 1))
        found.append(_exponent(table, "badge", "pool", "BADGE's time is linear in the pool", 1))
        found.append(_slower(table))
    return found


def _exponent(table: Table, name: str, against: str, text: str, expected: int) -> Verdict:
    found = exponents(table, name, against)
    ours = ", ".join(f"{x:.2f} (C = {c})" for c, x in found.items())
    return verdict(text, WHERE, f"exponent {expected}", ours, *(abs(x - expected) < 0.25 for x in found.values()))


def _slower(table: Table) -> Verdict:
    k = max(table.column("k", against="k"))
    seconds = {name: table.column("seconds", strategy=name, against="k", k=k) for name in NAMES}
    ratios = [slow / quick for quick, slow in zip(*seconds.values(), strict=True)]
    ours = ", ".join(f"{x:.1f} times" for x in ratios)
    return verdict(
        "BADGE is much slower than BalEntAcq", WHERE, "4 to 65 times", f"at K = {k}: {ours}", *(x > 4 for x in ratios)
    )


QUICK = {"pools": (500, 1000, 2000), "batches": (10, 100), "classes": (10,), "repeats": 1}
STUDY = Study("seconds against pool size and acquisition size", data, plot, claim, QUICK, __doc__)
