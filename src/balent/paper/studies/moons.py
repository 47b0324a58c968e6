"""Three moons in the plane: where does each measure buy, out of a lattice of about 600,000 points?

The paper's network, trained on 150 labels, with 100 draws; the paper says neither. Masks are shared by all points, so
that picks show the measure and not Monte-Carlo noise, or of each point's own, as in the authors' code. In the figure
lines are the decision boundary, and yellow is where BalEnt >= 0. Columns of the table: `apart` is the mean distance of
a pick to the nearest other one, `covered` the share of the boundary that has a pick within 0.3, `near` the share of
picks within 0.3 of the boundary, `gap` the median difference of their two largest mean probabilities (0 on the
boundary), `aleatoric` their mean E H(Y∣ω), `telling` the share with a BALD above a tenth of the largest, and the last
two the shares in common with BALD and BalEntAcq. One network; `covered` and `gap` took the place of the spread of the
picks and of their distance to the boundary after a first look. By spread BALD is as wide as BalEntAcq, since its picks
sit at two far ends; the distance depends on the step of the lattice. By either the margin showed only in part on some
other seeds and smaller lattices.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent.data import sources as datasets
from balent.maths import measures, noise
from balent.maths.moments import Moments
from balent.paper.networks import BNN
from balent.paper.studies import drawing
from balent.paper.studies.compared import JUDGED
from balent.paper.studies.study import Study, Table, Verdict, verdict
from balent.paper.studies.trained import on_some
from balent.types import Measure, Sampled

EDGE = 3.0  # the lattice covers [-3, 3]²
BLOCK = 4096
NEAR = 0.3
FEW, MANY = 25, 500
CHOSEN: dict[str, Measure] = {**JUDGED, "BalEntAcq, released": measures.balentacq_released}
METHODS = (*CHOSEN, "PowerBALD")
MASKS = ("shared", "per-point")
COLUMNS = (
    "masks", "method", "k", "apart", "covered", "near", "gap", "aleatoric", "telling", "as_bald", "as_balentacq"
)  # fmt: skip
WHERE = "Sec. 4.2, Fig. 2"


def data(side: int = 775, labels: int = 150, draws: int = 100, kinds: tuple[str, ...] = MASKS, seed: int = 0) -> Table:
    predictor, _ = on_some(BNN, datasets.moons(), labels, seed)
    points = lattice(side)
    rows: list[tuple[Any, ...]] = []
    arrays: dict[str, np.ndarray] = {}
    for kind in kinds:
        m = scored(predictor.sample(draws, seed=seed, masks=kind), points)
        picks = {name: best(m, name, MANY, seed) for name in METHODS}
        rows += [(kind, name, k, *_numbers(points, m, picks, name, k, side)) for k in (FEW, MANY) for name in METHODS]
        arrays |= {f"{kind}, {name}": points[at].numpy() for name, at in picks.items()} | _background(kind, m, side)
    return Table(COLUMNS, rows, arrays)


def lattice(side: int) -> Tensor:
    """side² points, row by row from below."""
    axis = torch.linspace(-EDGE, EDGE, side)
    return torch.cartesian_prod(axis, axis).flip(1).contiguous()


def scored(sampled: Sampled, points: Tensor) -> Moments:
    return Moments.cat(sampled.moments(points[at], at) for at in torch.arange(len(points)).split(BLOCK))


def best(m: Moments, name: str, k: int, seed: int) -> Tensor:
    """Positions of the k best, best first."""
    if name == "PowerBALD":
        scores = measures.bald(m).log() + noise.gumbel(seed, torch.arange(len(m)), purpose=1)
    else:
        scores = CHOSEN[name](m)
    return scores.sort(descending=True, stable=True).indices[:k]


def _numbers(points: Tensor, m: Moments, picks: dict[str, Tensor], name: str, k: int, side: int) -> tuple[float, ...]:
    at = picks[name][:k]
    x = points[at]
    between = torch.cdist(x, x).fill_diagonal_(torch.inf).min(1).values
    away = torch.cdist(x, points[boundary(m, side)])
    bald = measures.bald(m)
    shares = (
        away.min(0).values < NEAR,
        away.min(1).values < NEAR,
        bald[at] > 0.1 * bald.max(),
        torch.isin(at, picks["BALD"][:k]),
        torch.isin(at, picks["BalEntAcq"][:k]),
    )
    covered, near, telling, *common = (float(share.double().mean()) for share in shares)
    first, second = m.mean[at].topk(2).values.T
    gap, doubt = float((first - second).median()), float(m.entropy[at].mean())
    return float(between.mean()), covered, near, gap, doubt, telling, *common


def boundary(m: Moments, side: int) -> Tensor:
    """Positions whose likeliest class is not that of the neighbour to the right or above."""
    classes = m.mean.argmax(1).reshape(side, side)
    found = torch.zeros(side, side, dtype=torch.bool)
    found[:, :-1] |= classes[:, 1:] != classes[:, :-1]
    found[:-1] |= classes[1:] != classes[:-1]
    return found.flatten().nonzero().squeeze(1)


def _background(kind: str, m: Moments, side: int) -> dict[str, np.ndarray]:
    """Classes and BalEnt at about 400 × 400 points of the lattice."""
    thin = slice(None, None, max(1, side // 380))
    found = {"classes": m.mean.argmax(1).to(torch.uint8), "balent": measures.balent(m).float()}
    return {f"{kind}, {name}": x.reshape(side, side)[thin, thin].numpy() for name, x in found.items()}


def plot(table: Table) -> list[Any]:
    kinds = list(dict.fromkeys(table.column("masks")))
    figure, axes = drawing.panels(2 * len(kinds), len(METHODS), 1.6, 1.62, sharex=True, sharey=True)
    for row, (kind, k) in zip(axes, ((kind, k) for kind in kinds for k in (FEW, MANY)), strict=True):
        for panel, name in zip(row, METHODS, strict=True):
            _map(panel, table.arrays[f"{kind}, classes"], table.arrays[f"{kind}, balent"])
            panel.scatter(
                *table.arrays[f"{kind}, {name}"][:k].T, 6 if k == FEW else 1.5, "black", linewidths=0, zorder=3
            )
        row[0].set_ylabel(f"{kind} masks\ntop {k}", fontsize=7)
    for top, bottom, name in zip(axes[0], axes[-1], METHODS, strict=True):
        top.set_title(name.replace("Expected", "Exp."), fontsize=7)
        bottom.set_xlabel("x₁", fontsize=7)
    return [figure, _closer(table, kinds[0])]


def _closer(table: Table, kind: str) -> Any:
    """The middle of the plane: the region of BalEnt >= 0, and the picks at its edge."""
    shown = ("BalEntAcq", "BalEntAcq, released", "Entropy")
    figure, axes = drawing.panels(1, len(shown), 4.0, 2.6, sharey=True)
    for panel, name in zip(axes[0], shown, strict=True):
        _map(panel, table.arrays[f"{kind}, classes"], table.arrays[f"{kind}, balent"])
        panel.scatter(*table.arrays[f"{kind}, {name}"].T, 3, "black", linewidths=0, zorder=3)
        panel.set(xlim=(-2.0, 2.0), ylim=(-0.9, 1.3), xlabel="x₁", title=f"{name}, top {MANY}")
    axes[0][0].set_ylabel(f"x₂ ({kind} masks)")
    return figure


def _map(panel: Any, classes: np.ndarray, balent: np.ndarray) -> None:
    extent = (-EDGE, EDGE, -EDGE, EDGE)
    panel.contourf(balent, levels=[0, 1], extent=extent, colors=[drawing.YELLOW], alpha=0.7)
    panel.contour(classes, levels=[0.5, 1.5], extent=extent, colors=drawing.BLUE, linewidths=0.6)
    panel.set(aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))


def claim(table: Table) -> list[Verdict]:
    return [f(table) for f in (_diverse, _margin, _aleatoric, _preferred, _power, _similar, _released)]


def _cells(table: Table, column: str, method: str, k: int) -> list[float]:
    """One number for each kind of masks."""
    return [table.cell(column, masks=kind, method=method, k=k) for kind in _kinds(table)]


def _kinds(table: Table) -> list[str]:
    return list(dict.fromkeys(table.column("masks")))


def _listed(table: Table, column: str, method: str, k: int, form: str = ".3f") -> str:
    cells = _cells(table, column, method, k)
    return f"{method} " + ", ".join(f"{x:{form}} ({kind})" for x, kind in zip(cells, _kinds(table), strict=True))


OTHERS = ("BALD", "Entropy", "MeanSD")


def _diverse(table: Table) -> Verdict:
    ours = "; ".join(_listed(table, "apart", name, FEW) for name in ("BalEntAcq", *OTHERS))
    others = zip(*(_cells(table, "apart", name, FEW) for name in OTHERS), strict=True)
    tests = (x > 2 * max(y) for x, y in zip(_cells(table, "apart", "BalEntAcq", FEW), others, strict=True))
    text = f"BalEntAcq's top {FEW} are highly diversified"
    return verdict(text, WHERE, "-", f"distance to the nearest other pick: {ours}", *tests)


def _margin(table: Table) -> Verdict:
    ours = "; ".join(_listed(table, "gap", name, MANY, ".2f") for name in ("BalEntAcq", *OTHERS))
    others = zip(*(_cells(table, "gap", name, MANY) for name in OTHERS), strict=True)
    tests = (x > max(y) for x, y in zip(_cells(table, "gap", "BalEntAcq", MANY), others, strict=True))
    text = "Its picks are near the decision boundary, with a margin"
    near = min(_cells(table, "near", "BalEntAcq", MANY))
    ours = f"{near:.0%} within {NEAR:g} of it; median gap of the two largest probabilities: {ours}"
    return verdict(text, WHERE, "-", ours, *tests, near > 0.9)


def _aleatoric(table: Table) -> Verdict:
    ours = "; ".join(_listed(table, "aleatoric", name, MANY, ".2f") for name in ("BalEntAcq", "Entropy", "BALD"))
    pairs = zip(*(_cells(table, "aleatoric", name, MANY) for name in ("BalEntAcq", "Entropy")), strict=True)
    return verdict("It avoids points of high aleatoric uncertainty", WHERE, "-", ours, *(x < y for x, y in pairs))


def _preferred(table: Table) -> Verdict:
    names = ("BalEntAcq", "PowerBALD", *OTHERS)
    covered = {name: _cells(table, "covered", name, MANY) for name in names}
    ours = "; ".join(_listed(table, "covered", name, MANY, ".0%") for name in names)
    worst = [max(x) for x in zip(*(covered[name] for name in OTHERS), strict=True)]
    tests = (x > y for name in names[:2] for x, y in zip(covered[name], worst, strict=True))
    text = "BALD, Entropy and MeanSD have a preferred area; BalEntAcq and PowerBALD do not"
    return verdict(text, WHERE, "-", f"share of the boundary covered by the top {MANY}: {ours}", *tests)


def _power(table: Table) -> Verdict:
    ours = "; ".join(_listed(table, "telling", name, MANY, ".0%") for name in ("PowerBALD", "BalEntAcq", "BALD"))
    tests = (x < 0.95 for x in _cells(table, "telling", "PowerBALD", MANY))
    text = "PowerBALD may select points that tell little"
    return verdict(text, WHERE, "-", f"share with a BALD above a tenth of the largest: {ours}", *tests)


def _similar(table: Table) -> Verdict:
    names = ("ExpectedEffectiveLoss", "BetaMarginalEIG")
    ours = "; ".join(_listed(table, "as_bald", name, MANY, ".0%") for name in names)
    tests = (x > 0.5 for name in names for x in _cells(table, "as_bald", name, MANY))
    text = "BALD, ExpectedEffectiveLoss and BetaMarginalEIG select similarly"
    return verdict(text, "App. A.10", "-", f"share of the top {MANY} in common with BALD: {ours}", *tests)


def _released(table: Table) -> Verdict:
    name = "BalEntAcq, released"
    ours = "; ".join(f"top {k}: {_listed(table, 'as_balentacq', name, k, '.0%')}" for k in (FEW, MANY))
    tests = (x > 0.5 for k in (FEW, MANY) for x in _cells(table, "as_balentacq", name, k))
    text = "The authors' code buys what the paper's formula buys"
    return verdict(text, "released code", "-", f"picks in common: {ours}", *tests)


STUDY = Study("the toy example: top 25 and 500 of 600,000 points", data, plot, claim, {"side": 150}, __doc__)
