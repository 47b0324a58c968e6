"""How exact are the measures, against 60-digit arithmetic, wherever a Beta can be?

The largest relative error of h(P⁺) over a grid of (a, b) from 1e-18 to 1e16, and of each measure at
points of two and three classes with means to 1 - 1e-15 and concentrations to 1e16.
"""

import sys
from itertools import product
from pathlib import Path

import mpmath as mp
import torch

from balent import kernels
from balent.maths import beta
from balent.maths.measures import MEASURES

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference import definitions as reference

EXPONENTS = range(-18, 17)
MANTISSAS = (1.0, 3.7)
NEAR_ONE = [1 + s * 10.0**-k for k in range(1, 16) for s in (-1, 1)]
REST = [0.5, 0.3, 0.1] + [10.0**-k for k in range(2, 16)]
TOTAL = [m * 10.0**k for k in range(-6, 17) for m in MANTISSAS]


def grid() -> list[float]:
    return [m * 10.0**k for k in EXPONENTS for m in MANTISSAS]


def worst(came: list[float], true: list[mp.mpf]) -> tuple[float, int]:
    errors = [abs(mp.mpf(x) - t) / abs(t) for x, t in zip(came, true, strict=True)]
    index = max(range(len(errors)), key=errors.__getitem__)
    return float(errors[index]), index


def entropies() -> None:
    pairs = [*product(grid(), grid()), *product([10.0**-k for k in range(1, 18)], NEAR_ONE)]
    a, b = (torch.tensor(x, dtype=torch.float64) for x in zip(*pairs, strict=True))
    ways = {"float64": (a, b), "float32": (a.float(), b.float())}
    for dtype, (x, y) in ways.items():
        true = [reference.beta_entropy(mp.mpf(p) + 1, mp.mpf(q)) for p, q in zip(x.tolist(), y.tolist(), strict=True)]
        error, i = worst(beta.plus_entropy(x, y).tolist(), true)
        print(f"h(P+)  {dtype}  {len(true)} Betas  largest relative error {error:.1e}  at a={x[i]:.3g}, b={y[i]:.3g}")


def two(r: mp.mpf, s: mp.mpf) -> list[reference.Beta]:
    """A class and its complement."""
    return [reference.Beta((1 - r) * s, r * s), reference.Beta(r * s, (1 - r) * s)]


def three(r: mp.mpf, s: mp.mpf) -> list[reference.Beta]:
    """Three classes, each with a concentration of its own."""
    means, totals = (1 - r, r * mp.mpf("0.75"), r * mp.mpf("0.25")), (s, 2 * s, s / 3)
    return [reference.Beta(m * t, (1 - m) * t) for m, t in zip(means, totals, strict=True)]


def measures() -> None:
    for point in (two, three):
        cases = [point(mp.mpf(rest), mp.mpf(total)) for rest, total in product(REST, TOTAL)]
        m = reference.moments(cases)
        for name, truth in reference.MEASURES.items():
            error, i = worst(MEASURES[name](m).tolist(), [truth(case) for case in cases])
            where = ", ".join(f"Beta({float(p.a):.3g}, {float(p.b):.3g})" for p in cases[i])
            print(f"{name:24s} {len(cases)} points  largest relative error {error:.1e}  at {where}")


if __name__ == "__main__":
    print(f"kernel: {kernels.active()}")
    entropies()
    measures()
