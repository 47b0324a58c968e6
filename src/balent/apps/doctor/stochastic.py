"""Is the model stochastic where it should be?  Draws that are all the same make every measure of their spread a tie."""

from collections.abc import Iterator

from balent import adapt
from balent.apps.doctor.finding import FAILURE, NOTE, OK, WARNING, Figure, Finding, Silent
from balent.apps.doctor.patient import Patient

SAME = 1e-6  # standard deviation of a class probability over draws: what rounding of float32 leaves
FEW = 10  # draws
MANY = 0.5  # of the points


def stochastic(patient: Patient) -> Iterator[Finding]:
    """Do the draws differ?"""
    try:
        m = patient.moments
    except Silent as error:
        says, _, action = str(error).partition("; ")
        yield Finding(FAILURE, f"the model gives no draws: {says}", action or "mend the model; then ask again")
        return
    n, spread = adapt.traits(patient.sampled).n, m.var.amax(1).sqrt()
    same, points = float((spread <= SAME).double().mean()), len(spread)
    typical = float(spread.median())
    if n == 1:
        action = "measures of the spread of draws, such as bald and balentacq, need 20 or more"
        yield Finding(WARNING, "there is one draw only", action, Figure(1.0))
    elif same == 1:
        says = f"all {m.n} draws are the same at each of {points:,} points"
        yield Finding(FAILURE, says, _why(float(m.mean.amax(1).min())), Figure(1.0))
    elif same > MANY:
        says = f"draws do not differ at {same:.0%} of {points:,} points, so ranks are ties there"
        yield Finding(WARNING, says, "use a higher dropout rate, a lower learning rate or less training", Figure(same))
    elif n is not None and n < FEW:
        yield Finding(NOTE, f"{n} draws are few", "scores are noisy with fewer than 20 draws", Figure(float(n)))
    else:
        what = "moments without draws" if n is None else f"{n} draws"
        says = f"{what}; the probability of a class typically varies by ±{typical:.3f} over them"
        yield Finding(OK, says, figure=Figure(typical))


def _why(least_sure: float) -> str:
    """What to do, by what the model says where it is least sure."""
    if least_sure > 1 - SAME:
        return "every probability is 0 or 1: the model is saturated; scale its outputs, or train it less"
    return "dropout that changes nothing: look for p = 0, and for layers after it whose weights or inputs are zero"
