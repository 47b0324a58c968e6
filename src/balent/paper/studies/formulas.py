"""The paper's closed forms against their definitions, on Dirichlet distributions where both can be computed.

Integrals are by Gauss and Legendre; formulas are written here as the paper prints them, term by term, apart from the
stable forms that balent computes with.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from balent.maths import measures
from balent.maths.beta import fit
from balent.maths.moments import Moments
from balent.paper.studies import drawing
from balent.paper.studies.samples import Gaussian, dirichlet
from balent.paper.studies.study import Study, Table, Verdict, verdict

COLUMNS = ("statement", "least", "most")  # of the difference between two sides, over all points; or of a value
DEFINED, PRINTED, CORRECTED = "MJEnt, by its integral", "MJEnt, sign as printed", "MJEnt, sign corrected"
TERMS, INFORMATION = "BetaMarginalBALD, five terms", "BetaMarginalBALD, mutual information"
JOINT, MEAN_SD = "MJEnt − joint entropy", "BetaMarginalMeanSD − MeanSD"
POSTERIOR, RATIO = "BetaMarginalEIG, sums of its posterior", "EEL / BetaMarginalBALD, α = 100 and 10⁶"
CLASSES = (2, 3, 10)
EXACT = 1e-8
psi = torch.special.digamma


def data(points: int = 200, nodes: int = 2000, seed: int = 0) -> Table:
    generator = Generator().manual_seed(seed)
    etas = [_dirichlets(points, c, generator) for c in CLASSES]
    nodes_and_weights = quadrature(nodes)
    rows = [_row(name, torch.cat([f(eta, *nodes_and_weights) for eta in etas])) for name, f in DIFFERENCES.items()]
    drawn = Gaussian(1.0, 0.2, 2.0).moments(points, 100, 10, generator)
    rows += [_row(MEAN_SD, _meansd_of_betas(drawn)), _row(POSTERIOR, _posterior_sums(drawn)), _row(RATIO, _ratio())]
    return Table(COLUMNS, rows, _curves())


def _dirichlets(points: int, classes: int, generator: Generator) -> Tensor:
    """η above 1, where densities are bounded and quadrature is exact; up to about 30."""
    total = 10 ** (1.5 * torch.rand(points, 1, generator=generator, dtype=torch.float64))
    return 1 + total * torch.rand(points, classes, generator=generator, dtype=torch.float64)


def _row(name: str, values: Tensor) -> tuple[str, float, float]:
    return name, float(values.min()), float(values.max())


def quadrature(nodes: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights on (0, 1), dense at its ends."""
    t, w = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(nodes))
    t = (t + 1) / 2
    return t * t * (3 - 2 * t), 3 * t * (1 - t) * w


def density(p: Tensor, a: Tensor, b: Tensor) -> Tensor:
    log = torch.xlogy(a - 1, p) + torch.xlogy(b - 1, 1 - p) - (a.lgamma() + b.lgamma() - (a + b).lgamma())
    return log.exp()


def mjent_by_integral(eta: Tensor, p: Tensor, weight: Tensor) -> Tensor:
    """-Σ_i E[P_i log(P_i f(P_i))]."""
    a = eta[..., None]
    f = density(p, a, eta.sum(-1)[:, None, None] - a)
    return -(weight * torch.xlogy(p * f, p * f)).sum((-2, -1))


def information(eta: Tensor, p: Tensor, weight: Tensor) -> Tensor:
    """I(P, Y) = H(Y) + Σ_i E[P_i log P_i]."""
    a = eta[..., None]
    f = density(p, a, eta.sum(-1)[:, None, None] - a)
    return measures.entropy(dirichlet(eta)) + (weight * f * torch.xlogy(p, p)).sum((-2, -1))


def mjent_printed(eta: Tensor, sign: int) -> Tensor:
    """The full formula of the appendix; its last term has the sign -1 there."""
    a, s = eta, eta.sum(-1, keepdim=True)
    b = s - a
    h = (a + 1).lgamma() + b.lgamma() - (s + 1).lgamma() - a * psi(a + 1) - (b - 1) * psi(b)
    return (a / s * (h + sign * (s - 1) * psi(s + 1) - (a / s).log())).sum(-1)


def five_terms(eta: Tensor) -> Tensor:
    """Theorem 3.1."""
    a, s = eta, eta.sum(-1, keepdim=True)
    b, mean = s - a, eta / s
    first = (a - 1) * psi(s) - torch.xlogy(mean, mean) - mean * (a - 1) * psi(a)
    return (first - b / s * (a - 1) * psi(s + 1) + a * mean * (psi(a + 1) - psi(s + 1))).sum(-1)


def joint_entropy(eta: Tensor) -> Tensor:
    """H(Y) + Σ_i E[P_i] h(P | Y = i), where P | Y = i is Dirichlet with η_i + 1."""
    seen = eta[:, None] + torch.eye(eta.shape[-1], dtype=eta.dtype)
    s = seen.sum(-1)
    h = seen.lgamma().sum(-1) - s.lgamma() + (s - eta.shape[-1]) * psi(s) - ((seen - 1) * psi(seen)).sum(-1)
    m = dirichlet(eta)
    return measures.entropy(m) + (m.mean * h).sum(-1)


def _meansd_of_betas(m: Moments) -> Tensor:
    a, b = fit(m.mean, m.rest, m.within, m.var, m.n)
    return (a * b / (a + b) ** 2 / (a + b + 1)).sqrt().mean(-1) - measures.mean_sd(m)


def _posterior_sums(m: Moments) -> Tensor:
    """Σ_j of what BetaMarginalEIG takes for the distribution of Y⁺ given each label i: one number for each i."""
    a, b = fit(m.mean, m.rest, m.within, m.var, m.n)
    least = a / (a + b + 1)
    return (least.sum(-1, keepdim=True) + 1 / (a + b + 1)).flatten()


def _ratio() -> Tensor:
    m = dirichlet(torch.tensor([[1e2, 2e2], [1e6, 2e6]], dtype=torch.float64))
    return measures.expected_effective_loss(m) / measures.beta_bald(m)


DIFFERENCES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    DEFINED: lambda eta, p, weight: measures.mjent(dirichlet(eta)) - mjent_by_integral(eta, p, weight),
    PRINTED: lambda eta, p, weight: measures.mjent(dirichlet(eta)) - mjent_printed(eta, -1),
    CORRECTED: lambda eta, p, weight: measures.mjent(dirichlet(eta)) - mjent_printed(eta, +1),
    TERMS: lambda eta, p, weight: measures.beta_bald(dirichlet(eta)) - five_terms(eta),
    INFORMATION: lambda eta, p, weight: measures.beta_bald(dirichlet(eta)) - information(eta, p, weight),
    JOINT: lambda eta, p, weight: measures.mjent(dirichlet(eta)) - joint_entropy(eta),
}


def _curves() -> dict[str, np.ndarray]:
    """Symmetric Dirichlets: joint entropy and MJEnt against η."""
    each = torch.logspace(-1, 2, 100, dtype=torch.float64)
    found = {"eta": each.numpy()}
    for c in CLASSES:
        eta = each[:, None].repeat(1, c)
        found |= {f"mjent {c}": measures.mjent(dirichlet(eta)).numpy(), f"joint {c}": joint_entropy(eta).numpy()}
    return found


def plot(table: Table) -> list[Any]:
    figure, [[panel]] = drawing.panels(1, 1, 5.0, 3.2)
    for c, colour in zip(CLASSES, drawing.COLOURS, strict=False):
        panel.plot(table.arrays["eta"], table.arrays[f"mjent {c}"], color=colour, label=f"MJEnt, C = {c}")
        panel.plot(table.arrays["eta"], table.arrays[f"joint {c}"], ":", color=colour, label=f"joint entropy, C = {c}")
    panel.set(xscale="log", ylim=(-12, 3), xlabel="η of a symmetric Dirichlet", ylabel="nats")
    panel.legend(fontsize=7)
    return [figure]


def claim(table: Table) -> list[Verdict]:
    return [
        _equal(table, "MJEnt = Σ E[P] h(P⁺) + H(Y) is −Σ E[P log(P f(P))]", "Eq. 3, App. A.3", DEFINED),
        _sign(table),
        _bound(table),
        _equal(table, "BetaMarginalBALD has the five terms of the theorem", "Theorem 3.1", TERMS),
        _equal(table, "For a Dirichlet, BetaMarginalBALD is BALD", "App. A.4", INFORMATION),
        _equal(table, "BetaMarginalMeanSD = MeanSD", "App. A.6", MEAN_SD),
        _posterior(table),
        _alike(table),
    ]


def _range(table: Table, name: str) -> tuple[float, float]:
    return table.cell("least", statement=name), table.cell("most", statement=name)


def _off(table: Table, name: str) -> float:
    return max(map(abs, _range(table, name)))


def _equal(table: Table, text: str, where: str, name: str) -> Verdict:
    off = _off(table, name)
    return verdict(text, where, "equal", f"differs by at most {off:.0e}", off < EXACT)


def _sign(table: Table) -> Verdict:
    printed, corrected = (_off(table, name) for name in (PRINTED, CORRECTED))
    ours = f"off by up to {printed:.3g} with −, by {corrected:.0e} with +"
    return verdict("MJEnt in full has −(α + β − 1)ψ(α + β + 1)", "App. A.11", "−", ours, printed < EXACT)


def _bound(table: Table) -> Verdict:
    least, most = _range(table, JOINT)
    ours = f"MJEnt − joint entropy is between {least:.0e} (C = 2: equal) and {most:.1f}"
    return verdict("MJEnt bounds the joint entropy of Φ and Y from above", "App. A.2", ">= 0", ours, least > -EXACT)


def _posterior(table: Table) -> Verdict:
    least, most = _range(table, POSTERIOR)
    return verdict(
        "BetaMarginalEIG takes the entropy of a categorical Y⁺ given the label",
        "App. A.6",
        "sums to 1",
        f"its probabilities sum to {least:.2f} … {most:.2f} (softmax-Gaussian draws, C = 10)",
        max(abs(least - 1), abs(most - 1)) < EXACT,
    )


def _alike(table: Table) -> Verdict:
    least, most = _range(table, RATIO)
    return verdict(
        "For large α, β BetaMarginalBALD and ExpectedEffectiveLoss behave alike",
        "Sec. 3.4",
        "-",
        f"their ratio is {least:.4f} at α = 100, {most:.4f} at 10⁶: twice the value, the same ranking",
        0.05 > 2 - least > 2 - most,
    )


STUDY = Study("closed forms against their definitions, with errata", data, plot, claim, {"points": 20}, __doc__)
