"""Beta distributions: fitted by moments, updated by one label, measured in nats.

Every function is elementwise: any shape in, the same shape out, float64 or float32, any device. A
Beta is passed around as its pair (a, b), because torch.distributions validates and stores far more
than we use. P⁺ ~ Beta(a + 1, b) is what becomes of a class probability P ~ Beta(a, b) once that
class is seen; functions of P⁺ take a, not a + 1, which would round a small a away.

Textbook formulas subtract numbers of the size of a·log a to find one of size 1. Here such terms are
cancelled on paper: what is left is summed from Stirling's series, for x < 10 after ten steps up
with Γ(x + 1) = xΓ(x). The error is a few units in the last place wherever a and b are.
"""

import math

import torch
from torch import Tensor

STEPS = 10  # from here on Stirling's series is exact to 1e-17 with these eight terms
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
DIGAMMA = [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]  # ψ(x) = ln x - 1/2x - Σ D_k x^-2k
ENTROPY = [b / (2 * k - 1) for k, b in enumerate(BERNOULLI, 1)]  # ln Γ(x) - xψ(x) = … + Σ E_k x^1-2k
HALF_LOG_2_PI_E = 0.5 * math.log(2 * math.pi * math.e)
NEAR = 0.25  # this close to Beta(1, 1), where the entropy has a double zero, its Taylor series is used
ORDERS = range(2, 28)
ZETA_MINUS_1 = torch.special.zeta(torch.tensor(ORDERS, dtype=torch.float64), torch.tensor(2.0)).tolist()


def fit(mean: Tensor, rest: Tensor, within: Tensor, var: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The Beta of n draws with this mean, rest = 1 - mean, within = E[P(1 - P)] and var = Var P.

        a + b = E[P(1 - P)] / Var P,   a = (a + b) E[P],   b = (a + b) (1 - E[P])

    >>> fit(*torch.tensor([0.25, 0.75, 0.15, 0.0375], dtype=torch.float64), n=100)
    (tensor(1., dtype=torch.float64), tensor(3., dtype=torch.float64))
    """
    info = torch.finfo(mean.dtype)
    # Draws that all agree leave var = 0, where a + b → ∞ and the entropy → -∞. A spread finer than
    # the numbers can show is not believed: such points stay last, but finite.
    spread = torch.maximum(var, (info.eps * torch.minimum(mean, rest)).square())
    # One-hot draws that disagree leave within = 0, where a + b → 0: n draws cannot tell 0 from 1/n.
    total = torch.where(spread > 0, within / spread, torch.inf).clamp(1 / n, 1 / info.tiny)
    # A class that every draw is certain of has rest = 0, where the entropy → -∞ once more: last, but finite.
    return mean * total, rest.clamp(min=info.tiny) * total


def plus_entropy(a: Tensor, b: Tensor) -> Tensor:
    """h(P⁺), the differential entropy of Beta(a + 1, b): never positive, 0 only at a = 0, b = 1.

    >>> plus_entropy(torch.tensor([1.0, 1e7]), torch.tensor([2.0, 1e7]))
    tensor([-0.1251, -7.6798])
    """
    return near_uniform(1.0, a, b, otherwise=_entropy_by_series(a, b))


def near_uniform(weight: Tensor | float, a: Tensor, b: Tensor, otherwise: Tensor) -> Tensor:
    """weight · h(P⁺) where P⁺ is nearly uniform, by the series that is exact there; otherwise elsewhere."""
    near = (a < NEAR) & ((b - 1).abs() < NEAR)
    return torch.where(near, weight * _entropy_near_uniform(a, b - 1), otherwise) if near.any() else otherwise


def _entropy_by_series(a: Tensor, b: Tensor) -> Tensor:
    """h = F₁(a + 1) + F₁(b) - F₂(a + 1 + b) + ½ln 2πe, with F of `_log_gamma_part`."""
    parts = _log_gamma_part(a + 1, 1) + _log_gamma_part(b, 1) - _log_gamma_part(a + 1 + b, 2)
    return parts + HALF_LOG_2_PI_E


def _log_gamma_part(x: Tensor, j: int) -> Tensor:
    """F_j(x) = ln Γ(x) - (x - j)ψ(x) + x - ½ln 2πe: what does not cancel in the entropy of a Beta.

    For y = x + e, with e = 10 where x < 10 and 0 elsewhere, and P(x) = x(x + 1)…(x + e - 1):

        (e + j - ½) ln y - (e + j)(1/2y + Σ D_k y^-2k) + Σ E_k y^1-2k  - e - ln P + (x - j) P'/P
    """
    low = x < STEPS
    e = low.to(x.dtype) * STEPS
    y = x + e
    u = 1 / y
    t = u * u
    part = (e + (j - 0.5)) * y.log() - (e + j) * (u / 2 + t * _horner(DIGAMMA, t)) + u * _horner(ENTROPY, t)
    return part + torch.where(low, _steps(x, j), 0) if low.any() else part


def _steps(x: Tensor, j: int) -> Tensor:
    """-e - ln P + (x - j) P'/P of `_log_gamma_part`, for x < 10."""
    x = x.clamp(max=STEPS)  # the others are not used: keep their product from overflowing
    product, slope = torch.ones_like(x), torch.zeros_like(x)
    for step in range(STEPS):
        slope, product = slope * (x + step) + product, product * (x + step)
    return (x - j) * slope / product - product.log() - STEPS


def _entropy_near_uniform(u: Tensor, v: Tensor) -> Tensor:
    """The entropy of Beta(1 + u, 1 + v), with a small *relative* error where it vanishes.

    h = Σ_k≥2 (1 - 1/k) [(ζ(k) - 1)(-u - v)^k - ζ(k)(-u)^k - ζ(k)(-v)^k]
    """
    ones = [(1 - 1 / k) * (z + 1) for k, z in zip(ORDERS, ZETA_MINUS_1, strict=True)]
    both = [(1 - 1 / k) * z for k, z in zip(ORDERS, ZETA_MINUS_1, strict=True)]
    u, v = u.clamp(-NEAR, NEAR), v.clamp(-NEAR, NEAR)  # the others are not used: no overflow
    return (u + v).square() * _horner(both, -u - v) - sum(x * x * _horner(ones, -x) for x in (u, v))


def digamma_rise(x: Tensor, d: Tensor) -> Tensor:
    """ψ(x + d) - ψ(x) for d >= 0, summed from positive terms only.

    >>> digamma_rise(torch.tensor([1.0]), torch.tensor([2.0]))  # 1 + 1/2
    tensor([1.5000])
    """
    low = x < STEPS
    y = torch.where(low, x + STEPS, x)
    rise = torch.log1p(d / y) + d / y / (y + d) / 2 + _digamma_tail(y, d)
    steps = sum(d / (x + step) / (x + step + d) for step in range(STEPS))
    return rise + torch.where(low, steps, 0)


def bald_term(a: Tensor, b: Tensor) -> Tensor:
    """φ(a) - φ(a + b) with φ(x) = ψ(x + 1) - ln x: one class of BetaMarginalBALD over its mean.

    φ is small where a is large: there its series replaces the difference of logarithms.
    """
    small = torch.log1p(b / a) - digamma_rise(a + 1, b)
    large = a.clamp(min=STEPS)
    return torch.where(a < STEPS, small, b / large / (large + b) / 2 - _digamma_tail(large, b))


def _digamma_tail(x: Tensor, d: Tensor) -> Tensor:
    """Σ D_k [x^-2k - (x + d)^-2k] for x >= 10, from the divided difference of its Horner scheme."""
    u, v = 1 / x, 1 / (x + d)
    s, t = u * u, v * v
    value, difference = torch.zeros_like(x), torch.zeros_like(x)
    for c in reversed([0.0, *DIGAMMA]):
        difference, value = difference * t + value, value * s + c
    return d * u * v * (u + v) * difference


def _horner(coefficients: list[float], x: Tensor) -> Tensor:
    """Σ_k c_k x^k."""
    value = torch.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value
