"""Measures as functions of (α, β), for two classes with P ~ Dirichlet(α, β): the paper's surfaces and contours.

Moments are exact, not sampled. Axes are logarithmic, from 0.02 to 20. BalEnt is cut off at −3 in its surface; its
contours are −3, −2, −1 (dashed), and inside 0 (yellow) 0.1, 0.2 and 0.3.
"""

import math
from typing import Any

import numpy as np
import torch

from balent.maths import measures
from balent.paper.studies import drawing
from balent.paper.studies.samples import dirichlet
from balent.paper.studies.study import Cell, Study, Table, Verdict, verdict
from balent.types import Measure

SHOWN: dict[str, Measure] = {
    "BetaMarginalBALD": measures.beta_bald,
    "BetaMarginalMeanSD": measures.mean_sd,
    "ExpectedEffectiveLoss": measures.expected_effective_loss,
    "BetaMarginalEIG": measures.beta_eig,
    "BalEnt": measures.balent,
}
LISTED: tuple[Measure, ...] = (
    measures.beta_bald, measures.aleatoric, measures.posterior_uncertainty, measures.mjent, measures.balent
)  # fmt: skip
LEVELS = (-3.0, -2.0, -1.0, 0.0, 0.1, 0.2, 0.3)
LEAST, MOST = 0.02, 20.0
CORNER, FAR, FURTHER = "near 0", "large", "larger"
PLACES = {CORNER: (1e-3, 1e-3), "uniform": (1.0, 1.0), FAR: (1e4, 1e4), FURTHER: (1e6, 1e6)}
COLUMNS = ("place", "alpha", "beta", "bald", "aleatoric", "posterior_uncertainty", "mjent", "balent", "area")


def data(steps: int = 161) -> Table:
    axis = torch.logspace(math.log10(LEAST), math.log10(MOST), steps, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    m = dirichlet(grid)
    surfaces = {name: f(m).reshape(steps, steps).numpy() for name, f in SHOWN.items()}
    places = {**PLACES, "largest": tuple(grid[int(measures.balent(m).argmax())].tolist())}
    rows = [_row(name, *place) for name, place in places.items()]
    return Table(
        COLUMNS, rows + [_area(level, surfaces["BalEnt"]) for level in LEVELS], {"axis": axis.numpy(), **surfaces}
    )


def _row(name: str, alpha: float, beta: float) -> tuple[Cell, ...]:
    m = dirichlet(torch.tensor([[alpha, beta]], dtype=torch.float64))
    return name, alpha, beta, *(float(f(m)) for f in LISTED), math.nan


def _area(level: float, balent: np.ndarray) -> tuple[Cell, ...]:
    """The share of the plot where BalEnt is at least this."""
    return f"contour {level:g}", *[math.nan] * 6, level, float((balent >= level).mean())


def plot(table: Table) -> list[Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.0), layout="constrained")
    axis = table.arrays["axis"]
    for i, name in enumerate(SHOWN):
        _solid(figure.add_subplot(2, len(SHOWN), i + 1, projection="3d"), axis, table.arrays[name], name)
        _flat(figure.add_subplot(2, len(SHOWN), len(SHOWN) + i + 1), axis, table.arrays[name], name)
    return [figure]


def _solid(panel: Any, axis: np.ndarray, surface: np.ndarray, name: str) -> None:
    x, y = np.meshgrid(np.log10(axis), np.log10(axis), indexing="ij")
    panel.plot_surface(x, y, surface.clip(-3), cmap=drawing.SHADES, rcount=40, ccount=40, linewidth=0)
    panel.set(title=name, xlabel="log₁₀ α", ylabel="log₁₀ β")
    panel.view_init(30, -125 if name == "BalEnt" else 45)
    panel.tick_params(labelsize=6)


def _flat(panel: Any, axis: np.ndarray, surface: np.ndarray, name: str) -> None:
    if name == "BalEnt":
        panel.contourf(axis, axis, surface.T, levels=[0, 1], colors=[drawing.YELLOW], alpha=0.35)
        lines = panel.contour(axis, axis, surface.T, levels=LEVELS, colors="black", linewidths=0.8)
        panel.clabel(lines, levels=LEVELS[:4], fontsize=7, fmt="%g")
    else:
        shades = panel.contourf(axis, axis, surface.T, levels=12, cmap=drawing.SHADES)
        panel.figure.colorbar(shades, ax=panel)
    panel.set(xscale="log", yscale="log", xlabel="α", ylabel="β")


def claim(table: Table) -> list[Verdict]:
    return [_contours(table), _maximum(table), _corner(table), _narrow(table)]


def _contours(table: Table) -> Verdict:
    shares = [table.cell("area", place=f"contour {level:g}") for level in LEVELS]
    return verdict(
        "For C = 2 BalEnt has contours −3 … 0.3, each inside the one before; infinitely many (α, β) have BalEnt >= 0",
        "App. A.11",
        "-",
        f"BalEnt >= 0 on {shares[3]:.0%} of the plot, >= 0.3 on {shares[-1]:.1%}",
        all(np.diff(shares) < 0),
        shares[-1] > 0,
    )


def _maximum(table: Table) -> Verdict:
    balent, posterior = (table.cell(c, place="largest") for c in ("balent", "posterior_uncertainty"))
    return verdict(
        "BalEnt <= 1, and the posterior uncertainty is 0 at its largest",
        "Sec. 3.2 and 4.1",
        "1; 0",
        f"C = 2: the largest BalEnt is {balent:.3f}, where the posterior uncertainty is {posterior:.3f}",
        balent <= 1,
        posterior > -1e-3,
    )


def _corner(table: Table) -> Verdict:
    posterior, bald = (table.cell(c, place=CORNER) for c in ("posterior_uncertainty", "bald"))
    return verdict(
        "As α, β → 0 the posterior uncertainty goes to −∞, while BALD becomes largest",
        "App. A.13, P1",
        "−∞; log 2 = 0.693",
        f"at α = β = 0.001: {posterior:.0f}; {bald:.3f}",
        posterior < -100,
        0 <= math.log(2) - bald < 0.01,
    )


def _narrow(table: Table) -> Verdict:
    mjent, aleatoric = ([table.cell(c, place=p) for p in (FAR, FURTHER)] for c in ("mjent", "aleatoric"))
    return verdict(
        "As α, β → ∞ aleatoric uncertainty rises and MJEnt → −∞",
        "App. A.15",
        "-",
        f"at 1e4, 1e6: MJEnt {mjent[0]:.2f}, {mjent[1]:.2f}; aleatoric {aleatoric[0]:.6f}, {aleatoric[1]:.6f}",
        mjent[1] < mjent[0] < 0,
        aleatoric[0] < aleatoric[1],
    )


STUDY = Study("measures over (α, β), for two classes", data, plot, claim, {"steps": 41}, __doc__)
