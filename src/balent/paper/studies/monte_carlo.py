"""How much of a top K is Monte-Carlo noise?  Digits, a network with last-layer dropout, draws of several kinds.

The network has seen 50 labels; the pool are the other 1,150 digits. The truth is the top 25 by 20,000 draws.
`agreement` is the share of it that so many draws find, `again` the share that two seeds have in common, `below_zero`
the share of picks whose true BalEnt is negative, `error_near_zero` the RMSE of BalEnt where it is within 0.1 of 0.
`copies`: in a pool that holds every point three times, the share of picks with a copy in the batch. Means over 5 seeds.
"""

from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from balent.data import sources as datasets
from balent.maths import measures
from balent.maths.moments import Moments
from balent.paper.studies import drawing
from balent.paper.studies.compared import JUDGED
from balent.paper.studies.study import Study, Table, Verdict, verdict
from balent.paper.studies.trained import last_layer_mlp, on_some
from balent.predictors.mc_dropout import MCDropout
from balent.types import Measure

WAYS: dict[str, tuple[str, str]] = {
    "per-point": ("per-point", "independent"),
    "shared": ("shared", "independent"),
    "stratified": ("shared", "stratified"),
    "matched": ("shared", "matched"),
}
COUNTS = (10, 32, 100, 316, 1000)
COPIES, PAPER, ANALYTIC = 3, 100, "analytic"
COLUMNS = ("masks", "draws", "measure", "agreement", "again", "copies", "below_zero", "error_near_zero")


def data(
    labels: int = 50, k: int = 25, truth: int = 20_000, counts: tuple[int, ...] = COUNTS, seeds: int = 5, seed: int = 0
) -> Table:
    digits = datasets.digits()
    predictor, pool = on_some(lambda: last_layer_mlp(64, 10), digits, labels, seed)
    exact = _moments(predictor, pool, truth, seed + 10_000, "shared", "independent")
    rows = [row for way in WAYS for n in counts for row in _rows(predictor, pool, exact, way, n, k, seeds)]
    analytic = predictor.sample("analytic").moments(pool)
    rows += [(ANALYTIC, 0, name, *_judged([analytic], exact, f, k)) for name, f in JUDGED.items()]
    return Table(COLUMNS, rows)


def _rows(
    predictor: MCDropout, pool: Tensor, exact: Moments, way: str, n: int, k: int, seeds: int
) -> list[tuple[Any, ...]]:
    copies = pool.repeat(COPIES, *[1] * (pool.ndim - 1))
    found = [_moments(predictor, copies, n, seed, *WAYS[way]) for seed in range(seeds)]
    return [(way, n, name, *_judged(found, exact, f, k)) for name, f in JUDGED.items()]


def _moments(predictor: MCDropout, pool: Tensor, n: int, seed: int, masks: str, design: Any) -> Moments:
    sampled = predictor.sample(n, seed=seed, masks=masks, design=design)
    block = max(1, (1 << 22) // (10 * n))
    return Moments.cat(sampled.moments(pool[at], at) for at in torch.arange(len(pool)).split(block))


def _judged(found: list[Moments], exact: Moments, f: Measure, k: int) -> tuple[float, ...]:
    points = len(exact)
    right = set(top(f(exact), k))
    batches = [set(top(f(m[:points]), k)) for m in found]
    again = [len(one & other) / k for one, other in combinations(batches, 2)]
    doubled = [_doubled(top(f(m), k), points) for m in found] if len(found[0]) > points else []
    balance = measures.balent(exact)
    below = [float((balance[list(batch)] < 0).double().mean()) for batch in batches]
    near = balance.abs() < 0.1
    error = torch.stack([measures.balent(m[:points])[near] - balance[near] for m in found]).square().mean().sqrt()
    agreement = _mean([len(batch & right) / k for batch in batches])
    return agreement, _mean(again), _mean(doubled), _mean(below), float(error)


def top(scores: Tensor, k: int) -> list[int]:
    return scores.sort(descending=True, stable=True).indices[:k].tolist()


def _doubled(picks: list[int], points: int) -> float:
    """The share of the picks that have a copy among the others."""
    which = [i % points for i in picks]
    return sum(which.count(i) > 1 for i in which) / len(which)


def _mean(values: list[float]) -> float:
    """NaN where there is nothing to take a mean of: without draws nothing is repeated."""
    return sum(values) / len(values) if values else float("nan")


def plot(table: Table) -> list[Any]:
    figure, axes = drawing.panels(1, 3, 3.4, 3.0, sharey=True)
    for name, colour in zip(JUDGED, drawing.COLOURS, strict=True):
        for column, panel in (("agreement", axes[0][0]), ("copies", axes[0][2])):
            panel.plot(*_line(table, column, "shared", name), "o-", markersize=3, color=colour, label=name)
            panel.plot(*_line(table, column, "per-point", name), ":", color=colour)
    for way, colour in zip(WAYS, drawing.COLOURS, strict=False):
        axes[0][1].plot(*_line(table, "agreement", way, "BalEntAcq"), "o-", markersize=3, color=colour, label=way)
    without = table.cell("agreement", masks=ANALYTIC, measure="BalEntAcq")
    axes[0][1].axhline(without, color="black", linewidth=0.8, label="analytic, no draws")
    titles = ("found of the true top 25", "found by BalEntAcq", "picks bought with a copy")
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set(xscale="log", xlabel="draws", ylim=(0, 1.05), title=title)
    axes[0][0].set_ylabel("share; solid: shared masks, dotted: per point")
    axes[0][1].legend(fontsize=6)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(JUDGED), fontsize=7)
    return [figure]


def _line(table: Table, column: str, masks: str, measure: str) -> tuple[list[Any], list[Any]]:
    return table.column("draws", masks=masks, measure=measure), table.column(column, masks=masks, measure=measure)


def claim(table: Table) -> list[Verdict]:
    return [_decided(table), _above_zero(table), _copies(table)]


def _at(table: Table, column: str, masks: str = "per-point", measure: str = "BalEntAcq") -> float:
    return table.cell(column, masks=masks, measure=measure, draws=PAPER)


def _decided(table: Table) -> Verdict:
    again = {name: _at(table, "again", measure=name) for name in JUDGED}
    ours = "; ".join(f"{name} {x:.0%}" for name, x in again.items())
    text = f"{PAPER} draws (MC trials of the paper) are enough for a top 25"
    return verdict(
        text, "App. A.13", "-", f"two sets of draws have in common: {ours}", *(x > 0.5 for x in again.values())
    )


def _above_zero(table: Table) -> Verdict:
    below, error = (_at(table, column) for column in ("below_zero", "error_near_zero"))
    ours = f"{below:.0%} of its picks have a true BalEnt below 0; the error of BalEnt near 0 is {error:.3f}"
    return verdict("BalEntAcq picks first where BalEnt >= 0", "Sec. 4.1", "BalEnt >= 0", ours, below < 0.1)


def _copies(table: Table) -> Verdict:
    own, shared = (_at(table, "copies", masks) for masks in ("per-point", "shared"))
    bald = ", ".join(f"{_at(table, 'copies', masks, 'BALD'):.0%}" for masks in ("per-point", "shared"))
    return verdict(
        "BalEntAcq samples each contour of BalEnt uniformly, so that redundant points do not harm",
        "Sec. 4.2, App. A.11",
        "-",
        f"pool with every point {COPIES} times: {own:.0%} of its picks have a copy in the batch under masks per point, "
        f"{shared:.0%} under shared masks (BALD: {bald})",
        own < 0.5,
        shared < 0.5,
    )


QUICK = {"truth": 2000, "counts": (10, 100), "seeds": 2}
STUDY = Study("how much of a top K is Monte-Carlo noise, on digits", data, plot, claim, QUICK, __doc__)
