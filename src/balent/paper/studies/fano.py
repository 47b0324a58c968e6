"""Theorem 4.1, by numbers: how often the best guess of the discretised P_i is wrong, against what BalEnt promises.

Points are Dirichlet distributions, whose marginals are exactly Beta. Given the label i, P_i ~ Beta(α + 1, β) falls into
one of ⌊2 exp H(Y)⌋ equal intervals; the best guess is the likeliest interval, and its error is known exactly. `printed`
and `corrected` are the bound with ε₂ divided by H + log 2, as printed, and by H + log 2 − δ, as the proof needs it;
`least` is the smallest ε_i. Points are random Dirichlets, even ones (η = 1), and Dirichlet(1, 1.1), where the proof
fails as printed.
"""

import math
from typing import Any

import torch
from torch import Generator, Tensor

from balent.maths.beta import plus_entropy
from balent.maths.measures import balent, entropy
from balent.paper.studies import drawing
from balent.paper.studies.beta_cdf import cdf
from balent.paper.studies.samples import dirichlet
from balent.paper.studies.study import Cell, Study, Table, Verdict, verdict

COLUMNS = (
    "points",
    "classes",
    "entropy",
    "delta",
    "balent",
    "error",
    "fano",
    "printed",
    "corrected",
    "epsilon2",
    "least",
)
CLASSES, LARGER = (2, 3, 4, 5, 10, 30, 100), (10, 100, 1000, 10_000, 100_000)
WHERE = "Theorem 4.1"
RANDOM, EVEN = "random", "even"
WITNESS = (1.0, 1.1)  # a Dirichlet at which the proof fails as printed, checked with 30 digits in the tests
ROUNDING = 1e-9


def data(
    points: int = 300, classes: tuple[int, ...] = CLASSES, larger: tuple[int, ...] = LARGER, seed: int = 0
) -> Table:
    generator = Generator().manual_seed(seed)
    rows: list[tuple[Any, ...]] = [(RANDOM, *_row(eta)) for c in classes for eta in dirichlets(points, c, generator)]
    rows += [(EVEN, *_row(torch.ones(c, dtype=torch.float64))) for c in larger]  # η = 1: uniform on the simplex
    rows.append(("witness", *_row(torch.tensor(WITNESS, dtype=torch.float64))))
    return Table(COLUMNS, rows)


def dirichlets(points: int, classes: int, generator: Generator) -> Tensor:
    """η of every kind: its total, from 1 to 1000, and its evenness are random."""
    total = 10 ** (3 * torch.rand(points, 1, generator=generator, dtype=torch.float64))
    uneven = 3 * torch.rand(points, 1, generator=generator, dtype=torch.float64)
    logits = uneven * torch.randn(points, classes, generator=generator, dtype=torch.float64)
    return total * logits.softmax(-1)


def _row(eta: Tensor) -> tuple[Cell, ...]:
    m = dirichlet(eta[None])
    h, balance = float(entropy(m)), float(balent(m))
    bins = math.floor(2 * math.exp(h) + ROUNDING)
    width, whole = math.log(bins), h + math.log(2)  # H + log 2 − δ, H + log 2
    a, count = eta.unique(return_counts=True)  # classes that are alike are computed once
    weight = count * a / eta.sum()
    share = interval_shares(a, eta.sum() - a, bins)
    spread = -torch.xlogy(share, share).sum(-1)  # H(P̄_i | Y = i)
    epsilon = spread - width - plus_entropy(a, eta.sum() - a)  # ε_i
    off = float((weight * epsilon.abs()).sum()) + whole - width  # Σ E[P_i] |ε_i| + δ
    error = float((weight * (1 - share.max(-1).values)).sum())
    fano = (float((weight * spread).sum()) - math.log(2)) / width
    bounds = [balance * whole / width - off / divisor for divisor in (whole, width)]  # 1 + ε₁ = whole / width
    return len(eta), h, whole - width, balance, error, fano, *bounds, off / whole, float(epsilon.min())


def interval_shares(a: Tensor, b: Tensor, bins: int) -> Tensor:
    """P(P_i in I_n | Y = i): [classes, intervals]."""
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)
    return cdf(edges, a[:, None] + 1, b[:, None]).diff(dim=-1).clamp(min=0)  # a difference of rounding may be below 0


def plot(table: Table) -> list[Any]:
    figure, [[left, right]] = drawing.panels(1, 2, 4.2, 3.2)
    random = table.where(points=RANDOM)
    for colour, c in zip(drawing.COLOURS, sorted(set(random.column("classes")))[::2], strict=False):
        left.scatter(*(random.column(x, classes=c) for x in ("balent", "error")), 5, colour, label=f"{c} classes")
    left.plot([-2, 1], [-2, 1], "k", linewidth=0.8, label="error = BalEnt")
    left.axvline(0, color="grey", linewidth=0.6)
    left.set(xlabel="BalEnt", ylabel="error of the best guess", xlim=(-2, 1), ylim=(-0.02, 1.02))
    left.legend(fontsize=7)
    for name, colour in (("printed", drawing.ORANGE), ("corrected", drawing.BLUE)):
        slack = [a - b for a, b in zip(random.column("fano"), random.column(name), strict=True)]
        right.scatter(random.column("delta"), slack, 4, colour, label=f"ε₂ {name}")
    right.axhline(0, color="black", linewidth=0.8)
    right.set(
        xlabel="δ",
        ylabel="Fano's bound − bound of the theorem",
        ylim=(-0.01, 0.1),
        title="never below 0 in a valid proof",
    )
    right.legend(fontsize=7)
    return [figure]


def claim(table: Table) -> list[Verdict]:
    return [f(table) for f in (_theorem, _proof, _vanishing, _negative, _impossible, _plain)]


def failures(table: Table, left: str, right: str) -> int:
    """The number of points at which left >= right fails."""
    pairs = zip(table.column(left), table.column(right), strict=True)
    return sum(a < b - ROUNDING for a, b in pairs)


def _theorem(table: Table) -> Verdict:
    printed, corrected = (failures(table, "error", name) for name in ("printed", "corrected"))
    return verdict(
        "The error of any estimator is at least BalEnt (1 + ε₁) − ε₂",
        WHERE,
        "-",
        f"fails at {printed} of {len(table.rows)} points with ε₂ as printed, at {corrected} with ε₂ corrected",
        printed == 0,
        corrected == 0,
    )


def _proof(table: Table) -> Verdict:
    printed, corrected = (failures(table, "fano", name) for name in ("printed", "corrected"))
    return verdict(
        "Proof: Fano's bound is at least BalEnt (1 + ε₁) − ε₂, with ε₂ = (Σ E[P]|ε| + δ) / (H + log 2)",
        "App. A.5",
        "-",
        f"fails at {printed} of {len(table.rows)} points; at {corrected} with ε₂ over H + log 2 − δ",
        printed == 0,
    )


def _vanishing(table: Table) -> Verdict:
    even = table.where(points=EVEN)
    few, many = even.column("epsilon2")[0], even.column("epsilon2")[-1]
    counts = even.column("classes")
    return verdict(
        "ε₂ → 0 as Δ → 0",
        WHERE,
        "0",
        f"uniform on the simplex: {few:.4f} for {counts[0]} classes, {many:.4f} for {counts[-1]:,} (like 1 / log C)",
        many < few / 2,
    )


def _negative(table: Table) -> Verdict:
    """ε_i is the entropy that P_i⁺ gains by being spread evenly within intervals: by Jensen, never negative."""
    least = min(table.column("least"))
    ours = f"the least of all ε_i is {least:.0e}: smoothing within intervals can only raise an entropy"
    return verdict("ε_i does not have to be non-negative", "App. A.5", "-", ours, least < -ROUNDING)


def _impossible(table: Table) -> Verdict:
    positive = [e for e, b in zip(table.column("error"), table.column("balent"), strict=True) if b >= 0]
    least = min(positive, default=math.nan)
    text = "Where BalEnt >= 0 a perfect prediction of P_i from the label is impossible"
    return verdict(text, "Sec. 4.1", "error > 0", f"the smallest error there is {least:.2f}", least > 0)


def _plain(table: Table) -> Verdict:
    """Not in the paper: the bound without adjustments."""
    failed = failures(table, "error", "balent")
    text = "BalEnt itself, without ε₁ and ε₂, is a lower bound of the error"
    return verdict(
        text, "Sec. 4.1, as read", "approximately", f"fails at {failed} of {len(table.rows)} points", failed == 0
    )


QUICK = {"points": 30, "classes": (2, 10), "larger": (10, 1000)}
STUDY = Study("Theorem 4.1 by numbers, with its erratum", data, plot, claim, QUICK, __doc__)
