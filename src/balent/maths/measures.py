"""The measures of the paper, one function of the moments each: how much a label is worth at each point.

The larger the score, the more a label is worth. P_c is the probability of class c, a random number because the
network is; Beta(a, b) is fitted to its moments, and P_c⁺ ~ Beta(a + 1, b) is what becomes of it once
c is seen. H(Y) is the entropy of the label, h a differential entropy. All in nats.

Sums here have terms of one sign only (but for H(Y) + U and H(Y) - noise, which *are* differences),
so that a small score is as exact as a large one.
"""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from balent.maths import beta
from balent.maths.facts import declares, facts
from balent.maths.moments import Moments
from balent.types import ByClass, Measure, Scores

LOG2 = math.log(2)


def log_signed(scores: Tensor) -> Tensor:
    """The logarithm of a positive key of scores of either sign: sign(s) log(1 + |s|)."""
    return scores.sign() * torch.log1p(scores.abs())


def log_zero_first(scores: Tensor) -> Tensor:
    """That of BalEntAcq: log 1/BalEnt above zero, log 1/(1 - BalEnt) below."""
    return torch.where(scores > 0, scores.log(), -torch.log1p(-scores))


def random(m: Moments, *, generator: Generator | None = None) -> Scores:
    """Uniform on (0, 1): the baseline."""
    return torch.rand(len(m), dtype=m.mean.dtype, generator=generator).to(m.mean.device)


def check_draws(measure: Measure, n: int) -> None:
    """Refuses a measure of how draws differ if each point has one draw: the scores would be rounding errors."""
    if n == 1 and facts(measure).spread:
        enough = ", ".join(sorted(name for name, f in MEASURES.items() if not facts(f).spread))
        raise ValueError(
            f"{name_of(measure)} measures how draws differ, but each point has 1 draw; "
            f"use 2 draws or more, or a measure for which one is enough: {enough}"
        )


def name_of(measure: Measure) -> str:
    return getattr(getattr(measure, "func", measure), "__name__", "this measure")


def entropy(m: Moments) -> Scores:
    """H(Y) = -Σ_c E[P_c] log E[P_c], the entropy of the label: also the expected cross-entropy loss.

    >>> entropy(Moments.of(torch.tensor([[[0.9, 0.1], [0.1, 0.9]]])))  # log 2: which one is it?
    tensor([0.6931], dtype=torch.float64)
    """
    return m.predictive_entropy


def aleatoric(m: Moments) -> Scores:
    """E_ω H(Y|ω): the uncertainty within each posterior sample, which no label can remove."""
    return m.entropy


@declares(spread=True)
def bald(m: Moments) -> Scores:
    """I(ω, Y) = H(Y) - E_ω H(Y|ω): how much the posterior samples disagree (Houlsby et al., 2011)."""
    # Never negative; where all draws agree, rounding could make it so.
    return (m.predictive_entropy - m.entropy).clamp(min=0)


@declares(spread=True)
def mean_sd(m: Moments) -> Scores:
    """(1/C) Σ_c √Var P_c: the mean standard deviation."""
    return m.var.sqrt().mean(-1)


def variation_ratio(m: Moments) -> Scores:
    """1 - max_c E[P_c]: how often the best guess is wrong."""
    return m.rest.min(-1).values


def margin(m: Moments) -> Scores:
    """1 - (p₁ - p₂), the two largest E[P_c]: 1 where they tie, 0 if one class is certain (Scheffer et al., 2001).

    >>> margin(Moments.of(torch.tensor([[[0.6, 0.3, 0.1]], [[0.4, 0.4, 0.2]]])))
    tensor([0.7000, 1.0000], dtype=torch.float64)
    """
    top = m.mean.argmax(-1, keepdim=True)
    second = m.mean.scatter(-1, top, 0).max(-1).values  # 0 if there is only one class
    return (m.rest.gather(-1, top)[:, 0] + second).clamp(max=1)  # rounding, where the two tie


@declares(spread=True, log_key=log_signed)
def posterior_uncertainty(m: Moments) -> Scores:
    """U = Σ_c E[P_c] h(P_c⁺) <= 0: the entropy of a class probability after its class was seen."""
    return m.posterior_uncertainty


@declares(spread=True, log_key=log_signed)
def mjent(m: Moments) -> Scores:
    """Marginalized joint entropy, U + H(Y): posterior, epistemic and aleatoric uncertainty."""
    return m.posterior_uncertainty + m.predictive_entropy


@declares(spread=True, log_key=log_signed)
def balent(m: Moments, precision: float = 1.0) -> Scores:
    """Balanced entropy, (U + H(Y)) / (H(Y) + precision · log 2): at most 1 for precision 1.

    At zero, the information in a label begins to exceed what the model knows. Cases 1 to 5 of the paper are
    the precisions -1, 0, 1, 2 and 3. The denominator vanishes at H(Y) = -precision · log 2, that is,
    only for precisions of 0 and less: the quotient there is infinite, with the sign of U + H(Y).
    """
    h = m.predictive_entropy
    return (m.posterior_uncertainty + h) / (h + precision * LOG2)


@declares(spread=True, log_key=log_signed)
def neg_balent(m: Moments) -> Scores:
    """-BalEnt: the prioritization P1 of the paper (P2 is BalEntAcq, P3 BalEnt itself)."""
    return -balent(m)


@declares(spread=True, balance=balent, log_key=log_zero_first)
def balentacq(m: Moments, precision: float = 1.0) -> Scores:
    """Balanced entropy acquisition (Woo, 2023).

        MJEnt     = Σ_c E[P_c] h(P_c⁺) + H(Y)
        BalEnt    = MJEnt / (H(Y) + log 2)
        BalEntAcq = 1 / BalEnt  where BalEnt >= 0,  BalEnt  elsewhere

    Points whose BalEnt is barely above zero are first; the score is +∞ at zero itself.

    >>> unknown = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.8, 0.2]])  # 3 draws, 2 classes
    >>> known = torch.tensor([[0.4, 0.6], [0.5, 0.5], [0.6, 0.4]])
    >>> balentacq(Moments.of(torch.stack([unknown, known])))
    tensor([ 2.7815, -0.2938], dtype=torch.float64)
    """
    return zero_first(balent(m, precision))


@declares(spread=True, balance=mjent, log_key=log_signed)
def mjentacq(m: Moments) -> Scores:
    """BalEntAcq without the ratio: 1 / MJEnt where MJEnt >= 0, MJEnt elsewhere."""
    return zero_first(mjent(m))


@declares(spread=True, log_key=log_signed)
def balent_released(m: Moments) -> Scores:
    """(U + 2H) / (H + log 2), the balance that `balentacq_released` ranks by."""
    h = m.predictive_entropy
    return (m.posterior_uncertainty + 2 * h) / (h + LOG2)


@declares(spread=True, balance=balent_released, log_key=log_signed)
def balentacq_released(m: Moments) -> Scores:
    """What the authors' published code computes, with H(Y) counted twice; kept for comparison.

    (H + log 2) / (U + 2H)  where that is >= 0,  its reciprocal elsewhere
    """
    return zero_first(balent_released(m))


def zero_first(x: Tensor) -> Tensor:
    """1/x where x >= 0, x elsewhere. Both zeros (+0 and -0) give +∞ and are first."""
    return torch.where(x >= 0, 1 / x.abs(), x)


@declares(spread=True)
def beta_bald(m: Moments) -> Scores:
    """BetaMarginalBALD: the mutual information of Y and ω by the Beta marginals alone.

        H(Y) + Σ_c E[P_c] [ψ(a + 1) - ψ(a + b + 1)] = Σ_c E[P_c] [φ(a) - φ(a + b)],  φ(x) = ψ(x + 1) - ln x

    This is the five-term formula of the paper's Theorem 3.1, after what cancels in it.
    """
    return _weighted(m, beta.bald_term)


@declares(spread=True)
def beta_aleatoric(m: Moments) -> Scores:
    """Σ_c E[P_c] [ψ(a + b + 1) - ψ(a + 1)]: E_ω H(Y|ω) by the Beta marginals, H(Y) - BetaMarginalBALD."""
    return _weighted(m, lambda a, b: beta.digamma_rise(a + 1, b))


@declares(spread=True)
def expected_effective_loss(m: Moments) -> Scores:
    """Σ_c E[P_c] [log E[P_c⁺] - log E[P_c]]: how much loss one label is expected to remove.

    E[P⁺]/E[P] = 1 + b / (a (a + b + 1)).
    """
    return _weighted(m, lambda a, b: torch.log1p(b / a / (a + b + 1)))


@declares(spread=True)
def beta_eig(m: Moments) -> Scores:
    """BetaMarginalEIG: expected information gain, H(Y) less its mean once a label is seen.

    With d = 1 / (a + b + 1), a label moves E[P_c] up to E[P_c] + (1 - E[P_c]) d if it is c, and else
    down to E[P_c] (1 - d). So the paper's double sum over classes is one sum of Jensen gaps,

        Σ_c p [(1 - p) ξ(-d) + p ξ((1 - p) d / p)],  p = E[P_c],  ξ(x) = (1 + x) log(1 + x) - x.
    """
    a, b = m.betas
    d = 1 / (a + b + 1)
    p = m.mean.clamp(min=torch.finfo(m.mean.dtype).tiny)  # a class that never occurs adds nothing
    return (p * (m.rest * _gap(-d) + p * _gap(m.rest / p * d))).sum(-1)


def _gap(x: Tensor) -> Tensor:
    """ξ(x) = (1 + x) log(1 + x) - x = x²/2 - x³/6 + x⁴/12 - …, which is 0 like x²/2."""
    near = x.clamp(-0.1, 0.1)
    series = torch.zeros_like(x)
    for k in reversed(range(2, 18)):
        series = 1 / (k * (k - 1)) - series * near
    return torch.where(x.abs() < 0.1, near.square() * series, (1 + x) * torch.log1p(x) - x)


def dirichlet_bald(eta: ByClass) -> Scores:
    """The mutual information of Y and P ~ Dirichlet(η), in closed form (Woo, 2022).

    >>> dirichlet_bald(torch.tensor([[1.0, 1.0]]))  # a coin of unknown bias: log 2 - 1/2
    tensor([0.1931])
    """
    total = eta.sum(-1, keepdim=True)
    top = eta.argmax(-1, keepdim=True)  # its complement is a sum: total - eta would cancel
    rest = (total - eta).scatter(-1, top, eta.scatter(-1, top, 0).sum(-1, keepdim=True))
    return (eta / total * beta.bald_term(eta, rest)).sum(-1)


def _weighted(m: Moments, term: Callable[[Tensor, Tensor], Tensor]) -> Scores:
    """Σ_c E[P_c] term(a_c, b_c)."""
    a, b = m.betas
    tiny = torch.finfo(a.dtype).tiny
    # A class that never occurs adds nothing, even where its term overflows: 0 · ∞ is 0 here.
    return torch.where(m.mean < tiny, 0, m.mean * term(a.clamp(min=tiny), b)).sum(-1)


FORMULAS = (
    balentacq, bald, entropy, mean_sd, variation_ratio, margin, random,
    balent, neg_balent, mjent, mjentacq, balentacq_released, posterior_uncertainty,
    aleatoric, beta_bald, beta_aleatoric, beta_eig, expected_effective_loss,
)  # fmt: skip
MEASURES: dict[str, Measure] = {f.__name__: f for f in FORMULAS}
