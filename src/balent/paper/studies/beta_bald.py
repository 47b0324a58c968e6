"""How far is BetaMarginalBALD from BALD?  In value and in rank, for 2 to 1,000 classes.

Both are computed from the same draws: 100 points with 100 draws each, 10 times over. Dirichlet points have η_c ~ U(0.1,
10); there the Beta marginals are exact. Softmax-Gaussian points are those of `rank-correlation`.
"""

from typing import Any

import numpy as np
from torch import Generator

from balent.maths.measures import bald, beta_bald
from balent.maths.moments import Moments
from balent.paper.studies import drawing
from balent.paper.studies.correlation import spearman
from balent.paper.studies.samples import READINGS, dirichlet_draws
from balent.paper.studies.study import Study, Table, Verdict, verdict

CLASSES = (2, 3, 5, 10, 30, 100, 300, 1000)
DIRICHLET = "Dirichlet"
COLUMNS = ("points", "classes", "rmse", "correlation", "deviation", "shift", "rmse_without_shift")
WHERE = "App. A.9"


def data(
    points: int = 100, draws: int = 100, repeats: int = 10, classes: tuple[int, ...] = CLASSES, seed: int = 0
) -> Table:
    rows: list[tuple[Any, ...]] = []
    arrays: dict[str, np.ndarray] = {}
    for name in (DIRICHLET, *READINGS):
        for c in classes:
            found = [_pair(name, points, draws, c, seed + r) for r in range(repeats)]
            rows.append((name, c, *_summary(found)))
        arrays[name] = found[0]
    return Table(COLUMNS, rows, arrays)


def _pair(name: str, points: int, draws: int, classes: int, seed: int) -> np.ndarray:
    """BALD and BetaMarginalBALD of each point: [points, 2]."""
    m = _moments(name, points, draws, classes, seed)
    return np.stack([bald(m).numpy(), beta_bald(m).numpy()], 1)


def _moments(name: str, points: int, draws: int, classes: int, seed: int) -> Moments:
    if name == DIRICHLET:
        generator = np.random.default_rng([seed, classes])
        return dirichlet_draws(generator.uniform(0.1, 10, (points, classes)), draws, generator)
    return READINGS[name].moments(points, draws, classes, Generator().manual_seed(1_000_003 * seed + classes))


def _summary(found: list[np.ndarray]) -> tuple[float, ...]:
    """RMSE, rank correlation and its deviation over repeats; mean of BALD − BetaMarginalBALD, and the RMSE about it."""
    gaps = np.stack([pair[:, 0] - pair[:, 1] for pair in found])
    ranks = np.array([spearman(pair)[0, 1] for pair in found])
    return tuple(float(x) for x in (np.sqrt((gaps**2).mean()), ranks.mean(), ranks.std(), gaps.mean(), gaps.std()))


def plot(table: Table) -> list[Any]:
    names = list(dict.fromkeys(table.column("points")))
    figure, axes = drawing.panels(2, 3, 3.3, 2.7)
    scatters, lines = [*axes[0], axes[1][0]], axes[1][1:]
    for panel, name, colour in zip(scatters, names, drawing.COLOURS, strict=False):
        panel.scatter(*table.arrays[name].T, 6, colour)
        panel.axline((float(table.arrays[name].mean()),) * 2, slope=1, color="black", linewidth=0.6)
        panel.set(xlabel="BALD", ylabel="BetaMarginalBALD", title=f"{name}, C = {max(table.column('classes')):,}")
        panel.locator_params(nbins=5)
    for name, colour in zip(names, drawing.COLOURS, strict=False):
        for panel, column in zip(lines, ("rmse", "correlation"), strict=True):
            x, y = (table.column(c, points=name) for c in ("classes", column))
            panel.plot(x, y, "o-", markersize=3, color=colour, label=name)
    lines[0].set(xscale="log", yscale="log", xlabel="classes C", ylabel="RMSE", title="difference in value")
    lines[1].set(xscale="log", xlabel="classes C", ylabel="Spearman's ρ", title="agreement in rank")
    lines[1].legend(fontsize=6)
    return [figure]


def claim(table: Table) -> list[Verdict]:
    gaussian = [name for name in dict.fromkeys(table.column("points")) if name != DIRICHLET]
    rmse = {name: max(table.column("rmse", points=name)) for name in (DIRICHLET, *gaussian)}
    return [
        verdict(
            "Dirichlet points: RMSE between BALD and BetaMarginalBALD, C <= 1,000",
            WHERE,
            "< 0.002",
            f"at most {rmse[DIRICHLET]:.4f}",
            rmse[DIRICHLET] < 0.002,
        ),
        verdict(
            "Softmax-Gaussian points: RMSE, C <= 1,000",
            WHERE,
            "< 0.07",
            "at most " + "; ".join(f"{name}: {rmse[name]:.3f}" for name in gaussian),
            *(rmse[name] < 0.07 for name in gaussian),
        ),
        _rank(table),
        _shift(table, gaussian),
    ]


def _rank(table: Table) -> Verdict:
    least = {name: min(table.column("correlation", points=name)) for name in dict.fromkeys(table.column("points"))}
    ours = "; ".join(f"{name}: {x:.1%}" for name, x in least.items())
    text = "Rank correlation of BALD and BetaMarginalBALD in all cases, C <= 1,000"
    return verdict(text, WHERE, "> 96%", f"least over C: {ours}", *(x > 0.96 for x in least.values()))


def _shift(table: Table, names: list[str]) -> Verdict:
    """At the largest C, what of the difference is left once its mean is taken off?"""
    most = max(table.column("classes"))
    left = {n: [table.cell(c, points=n, classes=most) for c in ("rmse_without_shift", "rmse")] for n in names}
    ours = "; ".join(f"{name}: {a:.3f} of {b:.3f}" for name, (a, b) in left.items())
    return verdict(
        "Softmax-Gaussian points: the difference is a constant shift",
        WHERE,
        "BALD ≈ BetaMarginalBALD + err",
        f"left of the RMSE at C = {most:,} without its mean: {ours}",
        *(a < 0.2 * b for a, b in left.values()),
    )


QUICK = {"repeats": 3, "classes": (2, 10, 100)}
STUDY = Study("BALD against BetaMarginalBALD, in value and rank", data, plot, claim, QUICK, __doc__)
