"""The table of checks, and what they find. A check is a function of the patient that yields findings."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from balent.apps.doctor.balance import balance
from balent.apps.doctor.calibrated import calibrated
from balent.apps.doctor.constants import constants
from balent.apps.doctor.duplication import duplicates, near_duplicates
from balent.apps.doctor.effort import effort
from balent.apps.doctor.finding import OPEN, Finding, Missing, Silent
from balent.apps.doctor.meaning import meaning
from balent.apps.doctor.mislabelled import mislabelled
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.prospects import prospects
from balent.apps.doctor.stochastic import stochastic
from balent.apps.doctor.suited import suited

Check = Callable[[Patient], Iterator[Finding]]

CHECKS: dict[str, Check] = {
    "draws": stochastic,
    "calibration": calibrated,
    "features": constants,
    "meaning": meaning,
    "duplicates": duplicates,
    "near-duplicates": near_duplicates,
    "classes": balance,
    "label noise": mislabelled,
    "accuracy": prospects,
    "strategy": suited,
    "effort": effort,
}


def findings(patient: Patient) -> Iterator[Finding]:
    """Of every check, in the order of the table; what cannot be told is open, with the reason."""
    for about, check in CHECKS.items():
        try:
            for found in check(patient):
                yield replace(found, about=about)
        except Silent:
            yield Finding(OPEN, "the model gives no draws", about=about)
        except Missing as reason:
            yield Finding(OPEN, str(reason), about=about)
