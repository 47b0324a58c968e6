"""Label noise: the share of labels that are wrong, from a model that has not seen them.

Wrong labels contradict the model however sure it is; hard points contradict it where it is unsure. So the labels y of
points with held-out probabilities p are taken as

    P(y) = (1 − w) q(y) + w (1 − q(y)) / (C − 1),        q ∝ p^t

where t sharpens or softens the model's confidence, and w is the share of wrong labels (the lapse rate of psychometrics:
Wichmann & Hill, 2001). The interval of w is where the profile of the likelihood, over t, is within its 95 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from balent.apps.doctor.finding import FAILURE, NOTE, OK, OPEN, WARNING, Figure, Finding
from balent.apps.doctor.patient import Patient

FEWEST = 100  # labels; with fewer the interval of w is too wide to act on
LARGE, SOME = 0.08, 0.05  # what the share of wrong labels surely exceeds: a failure, a warning
CLEAR = 0.6  # accuracy above chance, without the wrong labels: below it noise and hard points look alike
SHARES = np.linspace(0, 0.6, 121)
POWERS = np.geomspace(0.1, 10, 41)
DROP = 1.92  # of the log-likelihood: half of the 95 % quantile of χ² with one degree of freedom
TINY = 1e-12  # probabilities are means of float32 numbers: 0 stands for "less than the smallest of them"


@dataclass(frozen=True)
class Noise:
    """The share of wrong labels, its interval, and the accuracy above chance among the others (0 is chance)."""

    share: float
    low: float
    high: float
    skill: float


def noise(p: Float[np.ndarray, "labels classes"], y: Int[np.ndarray, " labels"]) -> Noise:
    """By maximum likelihood.

    >>> sure = np.array([[0.99, 0.01]] * 100)
    >>> noise(sure, np.arange(100) % 5 // 4).share  # every fifth label is another
    0.2
    """
    likely, classes = profile(p, y), p.shape[1]
    inside = SHARES[likely >= likely.max() - DROP]
    share = float(SHARES[likely.argmax()])
    right = float((p.argmax(1) == y).mean()) / (1 - share)
    return Noise(share, float(inside[0]), float(inside[-1]), (right - 1 / classes) / (1 - 1 / classes))


def profile(p: Float[np.ndarray, "labels classes"], y: Int[np.ndarray, " labels"]) -> Float[np.ndarray, " shares"]:
    """The log-likelihood of each share, at the power that suits it best."""
    at, others, best = np.arange(len(y)), p.shape[1] - 1, np.full(len(SHARES), -np.inf)
    for power in POWERS:
        z = power * np.log(np.maximum(p, TINY))
        e = np.exp(z - z.max(1, keepdims=True))
        q = (e[at, y] / e.sum(1))[:, None]
        likely = np.log(np.maximum((1 - SHARES) * q + SHARES * (1 - q) / others, TINY)).sum(0)
        best = np.maximum(best, likely)
    return best


def mislabelled(patient: Patient) -> Iterator[Finding]:
    """How many labels are wrong?"""
    held = patient.held_out
    if len(held.y) < FEWEST:
        yield Finding(OPEN, f"too few labels to say: {len(held.y)} of the {FEWEST} that it takes")
        return
    found = noise(held.p, held.y)
    share = Figure(found.share, found.low, found.high)
    of = f"of {len(held.y):,} labels {found.share:.0%} seem wrong ({found.low:.0%} to {found.high:.0%})"
    if found.skill < CLEAR:
        yield Finding(OPEN, "the model is too often wrong to tell wrong labels from hard points")
    elif found.low >= LARGE:
        yield Finding(
            FAILURE, of, f"label the worst of them again before you go on: {patient.evidence.doubtful}", figure=share
        )
    elif found.low >= SOME:
        yield Finding(WARNING, of, f"look at the worst of them: {patient.evidence.doubtful}", figure=share)
    else:
        yield Finding(NOTE if found.low > 0 else OK, of, figure=share)
