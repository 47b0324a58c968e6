"""Do the features tell the classes apart?  Two probes on labelled points, against chance.

The first is the vote of the nearest labelled points (leave-one-out, columns scaled alike), the second the model by
cross-fitting. Their skill is Cohen's κ: 0 is chance, 1 always right. Features have a meaning where either probe is
above chance, and none where both are surely below WEAK: each with an interval of 99 %. Between them it is open.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from balent.apps.doctor.finding import FAILURE, OK, OPEN, Figure, Finding, Missing
from balent.apps.doctor.patient import Patient
from balent.geometry.distances import Points, squared
from balent.project.audit import Z99, wilson
from balent.types import Features

NEAREST = 5
FEWEST = 30  # labels
MOST = 2000  # that vote
WEAK = 0.15  # κ


@dataclass(frozen=True)
class Skill:
    """κ of guesses, with its interval of 99 %."""

    kappa: float
    low: float
    high: float

    @classmethod
    def of(cls, guess: Int[np.ndarray, " labels"], y: Int[np.ndarray, " labels"]) -> "Skill":
        """By Wilson's interval of the agreement; the agreement by chance follows from how often each class occurs."""
        classes, n = max(int(guess.max()), int(y.max())) + 1, len(y)
        chance = float(np.bincount(guess, minlength=classes) @ np.bincount(y, minlength=classes)) / n**2
        right = int((guess == y).sum())
        shares = (right / n, *wilson(right, n, Z99))
        return cls(*((share - chance) / max(1 - chance, 1 / n) for share in shares))


def meaning(patient: Patient) -> Iterator[Finding]:
    """Do the features say which class a point is of?"""
    both, n = probes(patient), len(patient.labels.y)
    best = max(both, key=lambda skill: skill.kappa)
    numbers = Figure(best.kappa, best.low, best.high)
    says = f"κ {best.kappa:.2f} ({best.low:.2f} to {best.high:.2f}) on {n:,} labels: 0 is chance, 1 always right"
    if any(skill.low > 0 for skill in both):
        yield Finding(OK, says, figure=numbers)
    elif all(skill.high < WEAK for skill in both):
        action = "these features do not tell the classes apart: use others before you label more"
        yield Finding(FAILURE, says, action, figure=numbers)
    else:
        yield Finding(OPEN, f"too few labels to say: {says}", figure=numbers)


def probes(patient: Patient) -> list[Skill]:
    """The skill of neighbours and of the model, if there is one."""
    labels = patient.labels
    n, classes = len(labels.y), int((labels.counts > 0).sum())
    if n < FEWEST or classes < 2:
        of = f"{n} labels of {classes} {'class' if classes == 1 else 'classes'}"
        raise Missing(f"too few labels to say: {of}" if n else "nothing is labelled yet")
    y = labels.y[:MOST]
    return [Skill.of(votes(patient.evidence.labelled(patient)[:MOST], y), y), *_by_model(patient)]


def votes(x: Features, y: Int[np.ndarray, " labels"]) -> Int[np.ndarray, " labels"]:
    """The commonest class among the nearest other points; of several the one of the nearest."""
    scaled = (x - x.mean(0)) / x.std(0).clamp_min(torch.finfo(x.dtype).tiny)
    points = Points.of(torch.where(x.std(0) > 0, scaled, 0))
    distances = squared(points, points).fill_diagonal_(torch.inf)
    near = y[distances.topk(min(NEAREST, len(y) - 1), largest=False).indices.numpy()]
    counts = (near[:, :, None] == np.arange(int(y.max()) + 1)).sum(1)
    first = (near[:, :1] == np.arange(counts.shape[1])) * 0.5
    return (counts + first).argmax(1)


def _by_model(patient: Patient) -> Iterator[Skill]:
    """The same of the model, if there is one."""
    try:
        held = patient.held_out
    except Missing:
        return
    yield Skill.of(held.p.argmax(1), held.y)
