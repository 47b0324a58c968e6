"""Are probabilities what they say?  The expected calibration error, with what chance alone would show.

With few labels a perfectly calibrated model has an error far from 0, so the error is compared with that of labels drawn
from the model's own probabilities (consistency resampling: Bröcker & Smith, 2007). A finding beyond "ok" needs an error
that one in a hundred such sets of labels would have, and a confidence that is off by GAP.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from balent.apps.doctor.finding import NOTE, OK, OPEN, WARNING, Figure, Finding
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.tallies import HeldOut
from balent.simulation.evaluation import calibration_error

FEWEST = 50  # labels
RANDOM = 100  # random checks from which on they are used alone: they are a sample of the data, chosen labels are not
DRAWN = 500  # sets of labels
RARE = 0.99  # quantile of their errors
GAP = 0.05  # confidence minus accuracy


@dataclass(frozen=True)
class Calibration:
    """error ± deviation (by the bootstrap); chance: the error that one calibrated model in a hundred would exceed.

    gap: mean confidence minus accuracy; positive is overconfident.
    """

    error: float
    deviation: float
    chance: float
    gap: float


def calibration(
    p: Float[np.ndarray, "labels classes"], y: Int[np.ndarray, " labels"], rng: np.random.Generator
) -> Calibration:
    """Of probabilities and labels."""
    sums = p.cumsum(1)
    drawn = [(rng.random((len(y), 1)) * sums[:, -1:] < sums).argmax(1) for _ in range(DRAWN)]
    rows = [rng.integers(len(y), size=len(y)) for _ in range(DRAWN)]
    again = np.array([_error(p[at], y[at]) for at in rows])
    chance = float(np.quantile([_error(p, labels) for labels in drawn], RARE))
    return Calibration(_error(p, y), float(again.std()), chance, float(p.max(1).mean() - (p.argmax(1) == y).mean()))


def calibrated(patient: Patient) -> Iterator[Finding]:
    """Do probabilities hold on labels that the model has not seen?"""
    held, of = _chosen(patient.held_out)
    if len(held.y) < FEWEST:
        yield Finding(OPEN, f"too few labels to say: {len(held.y)} of the {FEWEST} that it takes")
        return
    found = calibration(held.p, held.y, np.random.default_rng(patient.seed))
    says = (
        f"calibration error {found.error:.2f} ± {found.deviation:.2f} on {len(held.y):,} {of}; chance alone: up to "
        f"{found.chance:.2f}"
    )
    off = Figure(found.error, found.error - 2 * found.deviation, found.error + 2 * found.deviation)
    if found.error <= found.chance or abs(found.gap) < GAP:
        yield Finding(OK, says, figure=off)
    elif found.gap < 0:
        action = f"it is right {-found.gap:.0%} more often than it says: do not read its probabilities as accuracies"
        yield Finding(NOTE, f"{says}; the model is underconfident", action, figure=off)
    else:
        action = (
            f"it is right {found.gap:.0%} less often than it says: regularise, or train less; prefer auto or margin"
        )
        yield Finding(WARNING, f"{says}; the model is overconfident", action, figure=off)


def _chosen(held: HeldOut) -> tuple[HeldOut, str]:
    """Random checks alone, where there are enough."""
    at = held.random
    if at.sum() < RANDOM:
        return held, "labels that the model has not seen"
    return HeldOut(held.p[at], held.y[at], held.random[at]), "random checks"


def _error(p: Float[np.ndarray, "labels classes"], y: Int[np.ndarray, " labels"]) -> float:
    return calibration_error(torch.from_numpy(p), torch.from_numpy(y))
