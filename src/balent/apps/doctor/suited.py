"""Which strategy fits, and when another one would: what docs/strategies.md recommends, applied to what is at hand."""

from collections.abc import Callable, Iterator

from balent.apps.doctor.balance import RARE
from balent.apps.doctor.duplication import MANY, redundant
from balent.apps.doctor.finding import NOTE, OK, Finding, Incomparable, Missing
from balent.apps.doctor.meaning import probes
from balent.apps.doctor.patient import Patient
from balent.strategies.auto import AUTO, BY_SCORES, RECOMMENDED, resolved, why_not

HUGE = 10_000  # labels of one round
WHY = {
    RECOMMENDED: "it covers the pool, more closely where the model cannot decide, with all classes in balance",
    BY_SCORES: "it ranks points one by one",
}


def suited(patient: Patient) -> Iterator[Finding]:
    """Does the strategy suit this pool?"""
    asked, compared = patient.evidence.strategy, _compared(patient)
    sampled = patient.comparing
    recommended = str(resolved(AUTO, sampled, compared=compared))
    why = why_not(AUTO, sampled, compared=compared) or WHY[recommended]
    stands = f"{AUTO} stands for {recommended} here: {why}"
    says = stands if asked == AUTO else f"{asked} as chosen; {stands}"
    advice = [*_advice(patient, asked)]
    yield Finding(NOTE if advice else OK, says, "; ".join(advice))


def _advice(patient: Patient, asked: str) -> Iterator[str]:
    """When another strategy would do better."""
    if patient.k >= HUGE:
        yield f"for batches of {patient.k:,} points cluster_margin is faster"
    if _holds(_is_rare, patient):
        yield f"for the rare class seals:{asked} looks among the neighbours of its labels"
    if asked != AUTO and _holds(_has_duplicates, patient):
        yield f"for a pool with duplicates masks per point, or diverse:{asked}"
    if _holds(_tells_little, patient):
        yield "where features do not tell classes apart, no strategy is better than random"


def _compared(patient: Patient) -> bool:
    """Taken for granted as long as nothing speaks against it."""
    try:
        return len(patient.vectors) > 0
    except Incomparable:
        return False
    except Missing:
        return True


def _holds(predicate: Callable[[Patient], bool], patient: Patient) -> bool:
    """Is it known to be so?"""
    try:
        return predicate(patient)
    except Missing:
        return False


def _is_rare(patient: Patient) -> bool:
    """A class with a label at least, and few among many."""
    labels = len(patient.labels.y)
    return any(0 < count <= RARE * labels for count in patient.labels.counts.tolist())


def _has_duplicates(patient: Patient) -> bool:
    return not patient.equal.once and redundant(patient.equal, patient.evidence.size) >= MANY


def _tells_little(patient: Patient) -> bool:
    return not any(skill.low > 0 for skill in probes(patient))
