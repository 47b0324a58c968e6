"""Does BalEntAcq abstain near the boundary?  Two moons, as labels that it bought itself come in.

Algorithm 1 of Zhu and Nowak (2022) asks for a point if ½ lies within its bounds [lcb, ucb] and these are not wholly
inside [½ − γ, ½ + γ], where it abstains. Bounds here are E[P] ± 2 √Var P, and γ = 0.1. The paper's network for moons
starts with 6 labels and gets 6 more in each of 8 rounds, those that BalEntAcq picks from the pool; in each round the
top 25 of a lattice of 10,000 points are looked at, by each measure. Masks are per point; 3 seeds.
"""

from typing import Any

from torch import Tensor

from balent.data import sources as datasets
from balent.loop.start import balanced
from balent.maths import measures
from balent.maths.moments import Moments
from balent.paper.networks import BNN
from balent.paper.studies import drawing
from balent.paper.studies.moons import lattice, scored
from balent.paper.studies.study import Study, Table, Verdict, verdict
from balent.paper.studies.trained import network
from balent.types import Measure

GAMMA = 0.1
WHERE = "App. A.15"
TITLES = {
    "outside": f"outside |p − ½| ≤ {GAMMA:g}",
    "undecided": "½ within E[P] ± 2 sd",
    "abstained": "Algorithm 1 would abstain",
}
ASKED: dict[str, Measure] = {"BalEntAcq": measures.balentacq, "BALD": measures.bald, "Entropy": measures.entropy}
COLUMNS = ("seed", "labels", "measure", "outside", "undecided", "abstained", "query")


def data(
    rounds: int = 8, start: int = 6, per_round: int = 6, side: int = 100, k: int = 25, draws: int = 100, seeds: int = 3
) -> Table:
    rows = [row for seed in range(seeds) for row in _run(rounds, start, per_round, side, k, draws, seed)]
    return Table(COLUMNS, rows)


def _run(rounds: int, start: int, per_round: int, side: int, k: int, draws: int, seed: int) -> list[tuple[Any, ...]]:
    """Labels come from the pool of moons; where a measure would ask is looked at on the whole lattice."""
    everything = datasets.moons()
    two = everything.y_train < 2
    x, y, points = everything.x_train[two], everything.y_train[two], lattice(side)
    bought = balanced(y.tolist(), start, seed)
    rows: list[tuple[Any, ...]] = []
    for _ in range(rounds):
        sampled = network(lambda: BNN(2), x[bought], y[bought], seed).sample(draws, seed=seed, masks="per-point")
        m = scored(sampled, points)
        rows += [(seed, len(bought), name, *shares(m[top(f(m), k)])) for name, f in ASKED.items()]
        bought = bought + _next(measures.balentacq(scored(sampled, x)), bought, per_round)
    return rows


def shares(m: Moments) -> tuple[float, ...]:
    """Of these points: outside the margin, ½ within bounds, abstained from, and asked for by Algorithm 1."""
    p, width = m.mean[:, 0], 2 * m.var[:, 0].sqrt()
    outside = (p - 0.5).abs() > GAMMA
    undecided = (p - 0.5).abs() <= width
    abstained = (p - 0.5).abs() + width <= GAMMA
    return tuple(float(x.double().mean()) for x in (outside, undecided, abstained, undecided & ~abstained))


def top(scores: Tensor, k: int) -> Tensor:
    return scores.sort(descending=True, stable=True).indices[:k]


def _next(scores: Tensor, bought: list[int], k: int) -> list[int]:
    return [i for i in top(scores, len(bought) + k).tolist() if i not in bought][:k]


def plot(table: Table) -> list[Any]:
    figure, axes = drawing.panels(1, len(TITLES), 3.2, 2.8, sharey=True)
    for (column, title), panel in zip(TITLES.items(), axes[0], strict=True):
        for name, colour in zip(ASKED, drawing.COLOURS, strict=False):
            counts = sorted(set(table.column("labels")))
            means = [mean(table, column, measure=name, labels=n) for n in counts]
            panel.plot(counts, means, "o-", markersize=3, color=colour, label=name)
        panel.set(xlabel="labels", title=title, ylim=(-0.03, 1.03))
    axes[0][0].set_ylabel("share of the top 25")
    axes[0][0].legend(fontsize=7)
    return [figure]


def mean(table: Table, column: str, **cells: Any) -> float:
    found = table.column(column, **cells)
    return sum(found) / len(found)


def claim(table: Table) -> list[Verdict]:
    return [_outside(table), _algorithm(table)]


def _outside(table: Table) -> Verdict:
    shares = {name: mean(table, "outside", measure=name) for name in ASKED}
    ours = "; ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return verdict(
        "BalEntAcq's picks lie outside the margin |p − ½| ≤ γ",
        WHERE,
        "-",
        f"γ = {GAMMA:g}, mean over rounds and seeds: {ours}",
        shares["BalEntAcq"] > 0.5,
        shares["BalEntAcq"] > max(shares["BALD"], shares["Entropy"]),
    )


def _algorithm(table: Table) -> Verdict:
    undecided, abstained, query = (mean(table, c, measure="BalEntAcq") for c in ("undecided", "abstained", "query"))
    others = ", ".join(f"{name} {mean(table, 'query', measure=name):.0%}" for name in ("BALD", "Entropy"))
    return verdict(
        "Its picks satisfy ½ ∈ [lcb, ucb], as those of Algorithm 1 do",
        WHERE,
        "-",
        f"{undecided:.0%} have ½ within bounds; Algorithm 1 asks for {query:.0%} and abstains from {abstained:.0%}; it "
        f"asks for those of other measures as well ({others})",
        undecided > 0.9,
        query > 0.9,
    )


QUICK = {"rounds": 3, "seeds": 1}
STUDY = Study("where BalEntAcq asks on two moons, against an abstention margin", data, plot, claim, QUICK, __doc__)
