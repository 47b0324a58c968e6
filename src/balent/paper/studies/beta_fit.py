"""Are class probabilities of MC dropout Beta distributed?  Histograms with fitted densities, and distances over many.

The network of `balent run digits`, trained on 50 labels; 1,000 draws at 400 test images. A marginal is one class at one
image, with a mean from 0.01 to 0.99; its Beta has the mean and variance of the draws. Distances between draws and Beta:
`ks`, that of Kolmogorov and Smirnov, the largest difference of the distribution functions; and `transport`, the area
between them in standard deviations. A logit-normal distribution with mean and variance of the log-odds stands beside
it: dropout adds up many small contributions to a logit, so this is the other natural choice with two numbers.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from balent.data import sources as datasets
from balent.maths import measures
from balent.maths.beta import fit
from balent.maths.moments import Moments
from balent.paper.experiments import mlp
from balent.paper.studies import drawing
from balent.paper.studies.beta_cdf import cdf
from balent.paper.studies.correlation import spearman
from balent.paper.studies.formulas import density
from balent.paper.studies.study import Study, Table, Verdict, verdict
from balent.paper.studies.trained import on_some
from balent.predictors.mc_dropout import SubNetworks

EDGES = (0.01, 0.1, 0.5, 0.9, 0.99)
ALL = "all"
COLUMNS = ("what", "of", "value")
CERTAIN = 1e-12  # closer to 0 or 1 than this, log-odds say more about rounding than about the network
KOLMOGOROV = 1.358  # √n times the distance that a true distribution exceeds in one case of 20


def data(labels: int = 50, points: int = 400, draws: int = 1000, seed: int = 0) -> Table:
    digits = datasets.digits()
    predictor, _ = on_some(lambda: mlp(digits), digits, labels, seed)
    sampled = predictor.sample(draws, seed=seed)
    assert isinstance(sampled, SubNetworks)  # only `analytic` gives another kind
    p = sampled.logits(digits.x_test[:points]).double().softmax(-1)
    m = Moments.of(p)
    point, label = ((m.mean >= EDGES[0]) & (m.mean <= EDGES[-1])).nonzero(as_tuple=True)
    a, b = (part[point, label] for part in fit(m.mean, m.rest, m.within, m.var, m.n))
    distances = _distances(p[point, :, label], a, b)
    rows = [*_groups(m.mean[point, label], distances, draws), *_consequences(p, m)]
    return Table(COLUMNS, rows, {"distances": distances["ks, Beta"].numpy(), **_example(p, m, point, distances)})


def _distances(sample: Tensor, a: Tensor, b: Tensor) -> dict[str, Tensor]:
    """Of each row of draws to its Beta, and to its logit-normal."""
    x = sample.sort(1).values
    odds = log_odds(x)
    beta = cdf(x, a[:, None], b[:, None])
    normal = torch.special.ndtr((odds - odds.mean(1, keepdim=True)) / odds.std(1, keepdim=True))
    return {
        "ks, Beta": kolmogorov_smirnov(beta),
        "ks, logit-normal": kolmogorov_smirnov(normal),
        "transport, Beta": transport(x, beta),
        "transport, logit-normal": transport(x, normal),
    }


def log_odds(p: Tensor) -> Tensor:
    return p.clamp(CERTAIN, 1 - CERTAIN).logit()


def kolmogorov_smirnov(expected: Tensor) -> Tensor:
    """The largest gap between k/n and the distribution function at the k-th smallest, on either side of the step."""
    steps = torch.arange(expected.shape[1] + 1) / expected.shape[1]
    return torch.maximum((steps[1:] - expected).max(1).values, (expected - steps[:-1]).max(1).values)


def transport(x: Tensor, expected: Tensor) -> Tensor:
    """The area between the distribution functions, from the smallest draw to the largest, over the deviation."""
    steps = torch.arange(1, x.shape[1]) / x.shape[1]
    gap = (steps - (expected[:, 1:] + expected[:, :-1]) / 2).abs()
    return (gap * x.diff(dim=1)).sum(1) / x.std(1)


def _groups(mean: Tensor, distances: dict[str, Tensor], draws: int) -> list[tuple[Any, ...]]:
    """Medians by the mean of the marginal, and over all."""
    rows: list[tuple[Any, ...]] = []
    for low, high in (*pairwise(EDGES), (EDGES[0], EDGES[-1])):
        name = ALL if high - low > 0.9 else f"{low:g} to {high:g}"
        inside = (mean >= low) & (mean <= high)
        rejected = (distances["ks, Beta"][inside] > KOLMOGOROV / math.sqrt(draws)).double().mean()
        rows += [("marginals", name, int(inside.sum())), ("rejected at 5%, Beta", name, float(rejected))]
        rows += [(f"median {what}", name, float(x[inside].median())) for what, x in distances.items()]
    return rows


def _consequences(p: Tensor, m: Moments) -> list[tuple[Any, ...]]:
    """What the Beta is for: BALD from marginals, and BalEnt, each against the same without it."""
    balances = measures.balent(m), balent_logit_normal(p, m)
    near = balances[0].abs() < 0.5
    pairs = {"BALD": (measures.beta_bald(m), measures.bald(m)), "BalEnt": balances}
    rows = [
        ("rank correlation", name, float(spearman(torch.stack(pair, 1).numpy())[0, 1])) for name, pair in pairs.items()
    ]
    rows.append(("RMSE", "BALD", _rmse(*pairs["BALD"])))
    rows.append(("RMSE", "BalEnt within 0.5 of 0", _rmse(*(x[near] for x in balances))))
    return [*rows, ("other sign", "BalEnt", float((balances[0] * balances[1] < 0).double().mean()))]


def _rmse(x: Tensor, y: Tensor) -> float:
    return float((x - y).square().mean().sqrt())


def balent_logit_normal(p: Tensor, m: Moments, nodes: int = 321) -> Tensor:
    """BalEnt if P_c is logit-normal: h(P_c⁺) of the density p f(p) / E[P], by summation over the normal variable."""
    odds = log_odds(p)
    z = torch.linspace(-8, 8, nodes, dtype=torch.float64)
    log_normal = -0.5 * z.square() - 0.5 * math.log(2 * math.pi)
    x = odds.mean(1)[..., None] + odds.std(1)[..., None] * z
    weight = log_normal.exp() * (z[1] - z[0]) * x.sigmoid()
    mean = weight.sum(-1, keepdim=True)
    log_density = log_normal - odds.std(1)[..., None].log() - logsigmoid(-x) - mean.log()
    h = -(weight / mean * log_density).sum(-1)
    label = measures.entropy(m)
    return ((m.mean * h).sum(-1) + label) / (label + math.log(2))


def _example(p: Tensor, m: Moments, point: Tensor, distances: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """The image with four marginals or more whose fit is the median one: neither the best nor the worst."""
    ks = distances["ks, Beta"]
    several = [int(i) for i in point.unique() if int((point == i).sum()) >= 4] or [int(point[0])]
    at = sorted(several, key=lambda i: float(ks[point == i].mean()))[len(several) // 2]
    one = m[at : at + 1]
    a, b = fit(one.mean, one.rest, one.within, one.var, one.n)
    return {"draws": p[at].numpy(), "a": a[0].numpy(), "b": b[0].numpy()}


def plot(table: Table) -> list[Any]:
    figure, axes = drawing.panels(2, 6, 2.0, 1.9)
    draws, a, b = (torch.from_numpy(table.arrays[name]) for name in ("draws", "a", "b"))
    for c, panel in enumerate(axes[:, :5].flat):
        top = float(draws[:, c].max())
        x = torch.linspace(0, top, 400, dtype=torch.float64)[1:-1]
        heights, *_ = panel.hist(draws[:, c].numpy(), bins=40, range=(0, top), density=True, color=drawing.SKY)
        panel.plot(x, density(x, a[c], b[c]), color=drawing.ORANGE)
        panel.set(title=f"digit {c}", ylim=(0, 1.15 * max(heights)), xticks=[0, round(top, 4)], yticks=[])
    axes[1][2].set_xlabel("probability of a class for one image, over draws; line: the fitted Beta")
    axes[0][5].hist(table.arrays["distances"], bins=30, color=drawing.BLUE)
    axes[0][5].set(title="all marginals", xlabel="distance ks to the Beta", ylabel="count")
    axes[1][5].axis("off")
    return [figure]


def claim(table: Table) -> list[Verdict]:
    return [_reasonable(table), _bald(table), _balent(table)]


def _reasonable(table: Table) -> Verdict:
    beta, normal, far = (table.cell("value", what=f"median {w}", of=ALL) for w in (
        "ks, Beta", "ks, logit-normal", "transport, Beta"))  # fmt: skip
    names = [name for name in table.column("of", what="median ks, Beta") if name != ALL]
    medians = [table.cell("value", what="median ks, Beta", of=name) for name in names]
    rejected = table.cell("value", what="rejected at 5%, Beta", of=ALL)
    by_mean = ", ".join(f"{x:.2f} (means {name})" for x, name in zip(medians, names, strict=True))
    return verdict(
        "The Beta distribution is a reasonable approximation of a class probability",
        "App. A.7",
        "by eye",
        f"digits, Kolmogorov–Smirnov distance, median: {by_mean}; all {beta:.2f}, a test at 5% rejects {rejected:.0%}, "
        f"and a logit-normal has {normal:.2f}; area between the distributions: {far:.2f} sd",
        *(x < 0.1 for x in medians),
    )


def _bald(table: Table) -> Verdict:
    rmse, rank = (table.cell("value", what=w, of="BALD") for w in ("RMSE", "rank correlation"))
    text = "BetaMarginalBALD behaves equally like the original BALD (on a real network)"
    return verdict(text, "Sec. 3.4", "> 96%", f"digits: RMSE {rmse:.4f}, rank correlation {rank:.2%}", rank > 0.96)


def _balent(table: Table) -> Verdict:
    """Not in the paper: does BalEnt depend on the Beta?"""
    rank, sign = (table.cell("value", what=w, of="BalEnt") for w in ("rank correlation", "other sign"))
    rmse = table.cell("value", what="RMSE", of="BalEnt within 0.5 of 0")
    ours = f"rank correlation {rank:.2%}, another sign at {sign:.1%} of points, RMSE {rmse:.3f} within 0.5 of 0"
    text = "BalEnt does not depend on the Beta"
    return verdict(text, "Sec. 3.1, assumed", "-", f"digits, logit-normal instead: {ours}", rank > 0.96, sign < 0.02)


QUICK = {"points": 60, "draws": 300}
STUDY = Study("MC-dropout marginals of digits against fitted Beta densities", data, plot, claim, QUICK, __doc__)
