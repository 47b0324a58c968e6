"""Student's t for the mean of a few numbers, and Holm's correction where several such means are tested.

The tail of t has a finite sum for every whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4),
so a report needs no scipy. Student's t rather than a bootstrap: of 3 seeds a bootstrap has 10 distinct resamples, and
its 95 % interval holds the truth 73 % of the time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

ALPHA = 0.05


def tail(t: float, freedom: int) -> float:
    """P(|T| > t) of Student's t.

    >>> round(tail(4.3027, freedom=2), 5)
    0.05
    """
    odd, angle = freedom % 2, math.atan(t / math.sqrt(freedom))
    i = np.arange(1, (freedom - odd) // 2)
    series = 1 + np.cumprod((2 * i - 1 + odd) / (2 * i + odd) * math.cos(angle) ** 2).sum()
    if not odd:
        return max(0.0, 1 - float(math.sin(angle) * series))
    beyond_one = math.sin(angle) * math.cos(angle) * series if freedom > 1 else 0.0
    return max(0.0, 1 - 2 / math.pi * float(angle + beyond_one))


@lru_cache
def critical(alpha: float, freedom: int) -> float:
    """The t whose two tails hold alpha, by bisection of its angle.

    >>> round(critical(0.05, freedom=2), 4)
    4.3027
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if tail(math.sqrt(freedom) * math.tan(middle), freedom) > alpha:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(high)


def interval(values: np.ndarray, alpha: float = ALPHA) -> tuple[float, float]:
    """1 − alpha for the mean of a few numbers, two at least."""
    half = critical(alpha, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def p_value(values: np.ndarray) -> float:
    """Of a mean of zero, two-sided. Numbers that are all the same have the limit: 1 if they are zero, else 0."""
    mean, error = abs(float(values.mean())), float(values.std(ddof=1)) / math.sqrt(len(values))
    if not error:
        return 0.0 if mean else 1.0
    return tail(mean / error, len(values) - 1)


@dataclass(frozen=True)
class Step:
    """One of several tests, corrected: significant if p is at most ALPHA; 1 − alpha is the level of its interval."""

    p: float
    alpha: float


def holm(p: Sequence[float]) -> list[Step]:
    """Adjusted p values: the chance of any false claim is at most ALPHA, however the tests depend on each other.

    The smallest p is multiplied by the number of tests, the next by one less, and so on until one is above ALPHA; none
    after that one is shown. Each interval has the level of the step that decided its test, so it leaves out zero
    exactly where a difference is shown.

    >>> [round(step.p, 3) for step in holm([0.04, 0.01, 0.03])]
    [0.06, 0.03, 0.06]
    """
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    adjusted = np.minimum(1, np.maximum.accumulate(np.asarray(p)[order] * factors))
    last = np.minimum(np.arange(len(p)), np.sum(adjusted <= ALPHA))  # the step at which a test was decided
    steps = [Step(float(a), ALPHA / int(factors[i])) for a, i in zip(adjusted, last, strict=True)]
    return [steps[rank] for rank in np.argsort(order, kind="stable")]
