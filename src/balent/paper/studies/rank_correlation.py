"""Do measures rank points alike?  Spearman's correlation for 2 to 10,000 classes, on softmax-Gaussian points.

100 points with 100 draws each, 10 times over; mean and deviation are over the repeats. The paper does not say which
Gaussians it took, and its correlations depend on it: under `N(0, 1)` all points have the same distribution and differ
by chance alone; under `spread by class` logits have means N(0, 1) and standard deviations U(0, 1) of their own; under
`spread by point` means N(0, 1), and one standard deviation U(0.2, 2) for each point. These three were kept out of 18
that we tried by hand (other centres, spreads and covariances): the letter of the paper, the one nearest to its numbers,
and the one most like a pool. None of the 18 gave all numbers of the paper at once, for C up to 1,000.
"""

from typing import Any

import numpy as np
import torch
from torch import Generator

from balent.maths import measures
from balent.paper.studies import drawing
from balent.paper.studies.correlation import spearman
from balent.paper.studies.samples import READINGS, Gaussian
from balent.paper.studies.study import Study, Table, Verdict, verdict
from balent.types import Measure

RANKED: dict[str, Measure] = {
    "BALD": measures.bald,
    "BetaMarginalBALD": measures.beta_bald,
    "ExpectedEffectiveLoss": measures.expected_effective_loss,
    "MeanSD": measures.mean_sd,
    "Entropy": measures.entropy,
    "BetaMarginalEIG": measures.beta_eig,
    "BalEnt": measures.balent,
}
SHORT = ("BALD", "βBALD", "EEL", "MeanSD", "Entropy", "βEIG", "BalEnt")
PAIRS = (
    ("BetaMarginalBALD", "ExpectedEffectiveLoss"),
    ("BALD", "ExpectedEffectiveLoss"),
    ("BALD", "BetaMarginalBALD"),
    ("MeanSD", "ExpectedEffectiveLoss"),
    ("BALD", "BetaMarginalEIG"),
    ("MeanSD", "BetaMarginalEIG"),
    ("BALD", "Entropy"),
    ("BALD", "BalEnt"),
)
CLASSES = (2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10_000)
COLUMNS = ("reading", "classes", "one", "other", "correlation", "deviation", "least")
PAIRED = "spread by class"  # the reading whose numbers come closest to the paper's: the pair plot shows it


def data(
    points: int = 100, draws: int = 100, repeats: int = 10, classes: tuple[int, ...] = CLASSES, seed: int = 0
) -> Table:
    rows: list[tuple[Any, ...]] = []
    arrays: dict[str, np.ndarray] = {}
    for name, reading in READINGS.items():
        generator = Generator().manual_seed(seed)
        for c in classes:
            scores = [_scores(reading, points, draws, c, generator) for _ in range(repeats)]
            matrices = np.stack([spearman(s) for s in scores])
            rows += [(name, c, *pair, *_summary(matrices, pair)) for pair in PAIRS]
        arrays |= {f"scores, {name}": scores[0], f"matrix, {name}": matrices.mean(0)}
    return Table(COLUMNS, rows, arrays)


def _scores(reading: Gaussian, points: int, draws: int, classes: int, generator: Generator) -> np.ndarray:
    m = reading.moments(points, draws, classes, generator)
    return torch.stack([f(m) for f in RANKED.values()], 1).numpy()


def _summary(matrices: np.ndarray, pair: tuple[str, str]) -> tuple[float, float, float]:
    """Mean and standard deviation over repeats, and the least."""
    i, j = (list(RANKED).index(name) for name in pair)
    found = matrices[:, i, j]
    return float(found.mean()), float(found.std()), float(found.min())


def plot(table: Table) -> list[Any]:
    figure, axes = drawing.panels(len(READINGS), 3, 3.5, 2.9)
    most = max(table.column("classes"))
    for reading, (scatter, lines, matrix) in zip(READINGS, axes, strict=True):
        scores = table.arrays[f"scores, {reading}"]
        scatter.scatter(scores[:, 0], scores[:, 2], 6, drawing.BLUE)
        scatter.set(xlabel="BALD", ylabel="ExpectedEffectiveLoss", title=f"{reading}, C = {most:,}")
        scatter.locator_params(nbins=5)
        _lines(lines, table.where(reading=reading))
        _matrix(matrix, table.arrays[f"matrix, {reading}"], f"rank correlations, C = {most:,}")
    axes[0][1].legend(fontsize=6, loc="lower left")
    return [figure, _pairs(table.arrays[f"scores, {PAIRED}"], f"{PAIRED}, C = {most:,}")]


def _lines(panel: Any, table: Table) -> None:
    for (one, other), colour in zip(PAIRS, drawing.COLOURS, strict=False):
        columns = ("classes", "correlation", "deviation")
        x, mean, band = (np.array(table.column(c, one=one, other=other)) for c in columns)
        panel.plot(x, mean, color=colour, label=f"{one} – {other}")
        panel.fill_between(x, mean - band, mean + band, color=colour, alpha=0.15, linewidth=0)
    panel.set(xscale="log", xlabel="classes C", ylabel="Spearman's ρ", ylim=(0, 1.03), title="mean ± std over repeats")


def _matrix(panel: Any, matrix: np.ndarray, title: str) -> None:
    panel.imshow(matrix, cmap=drawing.SHADES, vmin=-1, vmax=1)
    for (i, j), value in np.ndenumerate(matrix):
        colour = "black" if value > 0.2 else "white"
        panel.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=5.5, color=colour)
    panel.set_xticks(range(len(SHORT)), SHORT, rotation=45, fontsize=6)
    panel.set_yticks(range(len(SHORT)), SHORT, fontsize=6)
    panel.set_title(title)


def _pairs(scores: np.ndarray, title: str) -> Any:
    """Every measure against every other; histograms on the diagonal."""
    count = len(SHORT)
    figure, axes = drawing.panels(count, count, 1.15, 1.05)
    for (i, j), panel in np.ndenumerate(axes):
        if i == j:
            panel.hist(scores[:, i], bins=15, color=drawing.SKY)
        else:
            panel.scatter(scores[:, j], scores[:, i], 1.5, drawing.BLUE, linewidths=0)
        panel.set(xticks=[], yticks=[], xlabel=SHORT[j] if i == count - 1 else "", ylabel=SHORT[i] if j == 0 else "")
    figure.suptitle(title, fontsize=9)
    return figure


def claim(table: Table) -> list[Verdict]:
    beta, loss = "BetaMarginalBALD", "ExpectedEffectiveLoss"
    return [
        _above(table, beta, loss, 0.996, "BetaMarginalBALD and ExpectedEffectiveLoss rank alike for every C"),
        _above(table, "BALD", loss, 0.975, "BALD and ExpectedEffectiveLoss rank alike for every C"),
        _above(table, "MeanSD", loss, 0.9, "MeanSD is strongly aligned with ExpectedEffectiveLoss", "strongly"),
        _eig(table),
    ]


def _above(table: Table, one: str, other: str, level: float, text: str, paper: str = "") -> Verdict:
    readings = list(dict.fromkeys(table.column("reading")))
    least = [min(table.column("correlation", reading=r, one=one, other=other)) for r in readings]
    ours = "; ".join(f"{r}: {x:.1%}" for r, x in zip(readings, least, strict=True))
    return verdict(text, "Fig. 1", paper or f"> {level:.1%}", f"least over C: {ours}", *(x > level for x in least))


def _eig(table: Table) -> Verdict:
    most = max(table.column("classes"))
    found = table.where(classes=most, other="BetaMarginalEIG")
    ours = "; ".join(
        f"{r}: {', '.join(f'{x:.0%}' for x in found.column('correlation', reading=r))}"
        for r in dict.fromkeys(found.column("reading"))
    )
    tests = (0.6 <= x <= 0.8 for x in found.column("correlation", one="BALD"))
    text = f"The rank correlation of BetaMarginalEIG with BALD and MeanSD, C = {most:,}"
    return verdict(text, "App. A.8", "around 70%", ours, *tests)


QUICK = {"repeats": 3, "classes": (2, 10, 100, 1000)}
STUDY = Study("rank correlations of measures, for 2 to 10,000 classes", data, plot, claim, QUICK, __doc__)
