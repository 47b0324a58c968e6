"""The distribution function of Beta(a, b), by the continued fraction of the incomplete beta function (DLMF 8.17.22).

The fraction converges fast left of the mean; on the right, P(X <= x) = 1 - P(1 - X <= 1 - x). Shapes broadcast, in
float64.
"""

import torch
from torch import Tensor

TERMS = 20_000  # needed are about the root of a + b
TINY = 1e-300  # in place of a zero denominator, as in Lentz's method


def cdf(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """P(X <= x).

    >>> cdf(torch.tensor(0.25), torch.tensor(1.0), torch.tensor(2.0))  # 1 - (1 - x)²
    tensor(0.4375, dtype=torch.float64)
    """
    x, a, b = torch.broadcast_tensors(x.double(), a.double(), b.double())
    left = x <= (a + 1) / (a + b + 2)
    tail = _tail(torch.where(left, x, 1 - x), torch.where(left, a, b), torch.where(left, b, a))
    return torch.where(left, tail, 1 - tail)


def _tail(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """x^a (1 - x)^b / (a B(a, b)) over the continued fraction."""
    log = torch.xlogy(a, x) + b * torch.log1p(-x) - a.log() - (a.lgamma() + b.lgamma() - (a + b).lgamma())
    return log.exp() / _fraction(x, a, b)


def _fraction(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """1 + d₁/(1 + d₂/(1 + …)), by the modified method of Lentz."""
    f = c = torch.ones_like(x)
    d = torch.zeros_like(x)
    for k in range(1, TERMS):
        m = k // 2
        up = m * (b - m) if k % 2 == 0 else -(a + m) * (a + b + m)
        term = up * x / (a + k - 1) / (a + k)
        d = 1 / _nonzero(1 + term * d)
        c = _nonzero(1 + term / c)
        f = f * c * d
        if float((c * d - 1).abs().max()) < 4 * torch.finfo(x.dtype).eps:
            return f
    raise ArithmeticError(
        f"the distribution function of Beta(a, b) needs a + b below 1e8, but the largest is {a.max()}"
    )


def _nonzero(x: Tensor) -> Tensor:
    return torch.where(x.abs() < TINY, TINY, x)
