"""Features that are always the same, or no numbers: they cannot tell points apart."""

from collections.abc import Iterator

import torch

from balent.apps.doctor.finding import FAILURE, NOTE, OK, OPEN, WARNING, Figure, Finding
from balent.apps.doctor.patient import Patient
from balent.types import Features

FEWEST = 10  # points
SAME = 1e-6  # of the largest number in a column: what rounding of float32 leaves
MANY = 0.9  # of the features


def constants(patient: Patient) -> Iterator[Finding]:
    """Do the features differ from point to point?"""
    x = patient.vectors
    points, width = x.shape
    bad = int((~x.isfinite()).any(1).sum())
    if bad:
        says = f"{bad:,} of {points:,} points have features that are no numbers"
        yield Finding(FAILURE, says, "look for NaN in what computes them", Figure(float(bad)))
        return
    if points < FEWEST:
        yield Finding(OPEN, f"too few points to say: {points}")
        return
    dead = int(constant(x).sum())
    says = f"{dead:,} of {width:,} features are the same at all of {points:,} points"
    if dead == width:
        action = "no model can tell these points apart: check what computes the features, and its input"
        yield Finding(FAILURE, says, action, Figure(dead / width))
    elif dead >= MANY * width:
        yield Finding(WARNING, says, "check what computes the features: most of them say nothing", Figure(dead / width))
    else:
        yield Finding(NOTE if dead else OK, says, "they do no harm" if dead else "", Figure(dead / width))


def constant(x: Features) -> torch.Tensor:
    """Which columns are."""
    return (x.amax(0) - x.amin(0)) <= SAME * x.abs().amax(0)
