"""Slow and obviously right: definitions in 60-digit arithmetic, and loops over plain numbers.

A class is given by its Beta (a, b), as mpmath numbers; a point is a list of classes. Nothing here
knows the formulas of `balent`: entropies are taken from the textbook with digits to spare.
"""

from dataclasses import dataclass

import mpmath as mp
import torch

from balent.maths.moments import Moments

mp.mp.dps = 60
MANY = 10**24  # draws: so many that no floor for few draws is felt


@dataclass(frozen=True)
class Beta:
    a: mp.mpf
    b: mp.mpf

    @property
    def mean(self):
        return self.a / (self.a + self.b)

    @property
    def var(self):
        s = self.a + self.b
        return self.a * self.b / (s * s * (s + 1))

    @property
    def within(self):  # E[P(1 - P)]
        s = self.a + self.b
        return self.a * self.b / (s * (s + 1))


def beta_entropy(a, b):
    """h(Beta(a, b)), by the textbook, with as many digits as its cancellation needs."""
    with mp.workdps(200):
        a, b = mp.mpf(a), mp.mpf(b)
        log_b = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
        h = log_b - (a - 1) * mp.digamma(a) - (b - 1) * mp.digamma(b) + (a + b - 2) * mp.digamma(a + b)
        return +h


def beta_entropy_by_quadrature(a, b):
    """-∫ f log f, of the density itself."""
    log_b = mp.log(mp.beta(a, b))

    def integrand(x):
        log_f = (a - 1) * mp.log(x) + (b - 1) * mp.log(1 - x) - log_b
        return -mp.exp(log_f) * log_f

    return mp.quad(integrand, [0, 0.01, 0.1, 0.5, 0.9, 0.99, 1])


def entropy(point):
    return -mp.fsum(p.mean * mp.log(p.mean) for p in point)


def posterior_uncertainty(point):
    with mp.workdps(200):
        return mp.fsum(p.mean * beta_entropy(p.a + 1, p.b) for p in point)


def mjent(point):
    return posterior_uncertainty(point) + entropy(point)


def balent(point, precision=1):
    return mjent(point) / (entropy(point) + precision * mp.log(2))


def balentacq(point, precision=1):
    x = balent(point, precision)
    return 1 / x if x >= 0 else x


def beta_bald(point):
    """The paper's five terms (Theorem 3.1), as printed."""
    with mp.workdps(200):
        total = mp.mpf(0)
        for p in point:
            a, s = p.a, p.a + p.b
            total += (a - 1) * mp.digamma(s) - p.mean * mp.log(p.mean) - a * (a - 1) / s * mp.digamma(a)
            total += -p.b * (a - 1) / s * mp.digamma(s + 1)
            total += a * a / s * (mp.digamma(a + 1) - mp.digamma(s + 1))
        return +total


def beta_aleatoric(point):
    with mp.workdps(200):
        return -mp.fsum(p.mean * (mp.digamma(p.a + 1) - mp.digamma(p.a + p.b + 1)) for p in point)


def expected_effective_loss(point):
    with mp.workdps(200):
        return mp.fsum(p.mean * (mp.log((p.a + 1) / (p.a + p.b + 1)) - mp.log(p.mean)) for p in point)


def beta_eig(point):
    """The paper's double sum over classes, O(C²)."""
    with mp.workdps(200):
        total = entropy(point)
        for i, p in enumerate(point):
            after = [(q.a + (i == j)) / (q.a + q.b + 1) for j, q in enumerate(point)]
            total += p.mean * mp.fsum(x * mp.log(x) for x in after)
        return +total


MEASURES = {
    f.__name__: f
    for f in (entropy, posterior_uncertainty, mjent, balent, balentacq, beta_bald, beta_aleatoric, beta_eig,
              expected_effective_loss)
}  # fmt: skip


def moments(points, dtype=torch.float64):
    """The Moments of so many draws from these Betas that sampling is no error."""

    def tensor(field):
        return torch.tensor([[float(getattr(p, field)) for p in point] for point in points], dtype=dtype)

    entropies = torch.tensor([float(beta_aleatoric(point)) for point in points], dtype=dtype)
    return Moments(MANY, tensor("mean"), tensor("var"), tensor("within"), entropies)


def beta_moments(a, b):
    """A point of two classes, the first ~ Beta(a, b) and the second its complement, for each a and b."""
    return moments([[Beta(mp.mpf(x), mp.mpf(y)), Beta(mp.mpf(y), mp.mpf(x))] for x, y in zip(a, b, strict=True)])


def draws_moments(draws):
    """Moments of draws [pool][draws][classes], floats or mpmath numbers, one at a time, exactly."""
    mean, var, within, noise = [], [], [], []
    for point in draws:
        rows = [[mp.mpf(p) / mp.fsum(mp.mpf(q) for q in row) for p in row] for row in point]
        columns = list(zip(*rows, strict=True))
        n = len(rows)
        m = [mp.fsum(c) / n for c in columns]
        mean.append(m)
        var.append([mp.fsum((p - mu) ** 2 for p in c) / n for c, mu in zip(columns, m, strict=True)])
        within.append([mp.fsum(p * (1 - p) for p in c) / n for c in columns])
        noise.append(-mp.fsum(p * mp.log(p) for row in rows for p in row if p > 0) / n)
    return mean, var, within, noise


def softmax(logits):
    """Rows of logits as rows of mpmath probabilities."""
    out = []
    for point in logits:
        rows = []
        for row in point:
            e = [mp.exp(mp.mpf(float(z))) for z in row]
            rows.append([x / mp.fsum(e) for x in e])
        out.append(rows)
    return out
