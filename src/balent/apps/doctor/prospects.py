"""What random checks will be able to show: how wide the interval of the accuracy is, now and when labelling is done."""

from collections.abc import Iterator

from balent.apps.doctor.finding import NOTE, OK, OPEN, Figure, Finding
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.tallies import Audit
from balent.project.audit import FEWEST, more_for, wilson

GUESS = 90  # % right, until there are checks that tell it
HALF = 0.03  # of the interval that one wants


def prospects(patient: Patient) -> Iterator[Finding]:
    """How precisely will the accuracy be known?"""
    audit = patient.audit
    if not audit.every:
        yield Finding(NOTE, "no accuracy will be shown: random checks are off", "set audit = 5 in project.toml")
        return
    right, of = (GUESS, 100) if audit.right is None else (audit.right, audit.answered)
    share, wanted = right / of, of + more_for(right, of, HALF)
    goal = min(patient.goal, patient.evidence.size or patient.goal)
    later = planned(audit, len(patient.labels.y), goal)
    says = (
        f"{_now(audit)}; at {goal:,} labels {later:,} checks give ±{half(share, later):.0%} if it is {share:.0%}; "
        f"±{HALF:.0%} takes {wanted:,}"
    )
    if wanted > audit.most:
        action = f"only {audit.most:,} items are set aside for checks: ±{half(share, audit.most):.0%}"
        yield Finding(NOTE, says, action, Figure(half(share, later)))
    else:
        yield Finding(OK if audit.answered >= FEWEST else OPEN, says, figure=Figure(half(share, later)))


def planned(audit: Audit, labels: int, goal: int) -> int:
    """Random checks when there are `goal` labels."""
    return min(audit.most, audit.answered + max(0, goal - labels) // audit.every)


def half(share: float, n: int) -> float:
    """Half of the width of Wilson's interval of an accuracy."""
    if not n:
        return 0.5
    low, high = wilson(round(share * n), n)
    return (high - low) / 2


def _now(audit: Audit) -> str:
    if audit.right is None or audit.answered < FEWEST:
        return f"{audit.answered} random checks so far, accuracy is shown from {FEWEST} on"
    low, high = wilson(audit.right, audit.answered)
    return f"right on {audit.right} of {audit.answered} random checks: {low:.0%} to {high:.0%}"
