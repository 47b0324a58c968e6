"""Class imbalance: how many labels each class has, and whether the rarest has fewer than chance explains."""

from collections.abc import Iterator
from statistics import NormalDist

from balent.apps.doctor.finding import FAILURE, OK, OPEN, WARNING, Figure, Finding
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.tallies import LabelSet
from balent.project.audit import wilson

ALONE = 30  # labels of one class: another one with a share of 10 % would have shown itself with 96 % probability
TIMES = 3  # rarer than an equal share
LEVEL = 0.01  # of a false alarm in equally frequent classes, all classes together
RARE = 0.005  # a share of labels: at one in 200 and fewer, seals finds a class more quickly


def balance(patient: Patient) -> Iterator[Finding]:
    """Does every class have labels?"""
    labels = patient.labels
    counts, n = labels.counts, len(labels.y)
    present = int((counts > 0).sum())
    if not n:
        yield Finding(OPEN, "nothing is labelled yet")
    elif present == 1:
        yield _one_class(labels)
    else:
        yield _rarest(labels)


def _one_class(labels: LabelSet) -> Finding:
    n, name = len(labels.y), labels.names[int(labels.counts.argmax())]
    if n < ALONE:
        return Finding(OPEN, f"all {n} labels are {name}: too few to say whether there is another class")
    action = "a model needs two classes: look for items of another one, or check the column or folder labels come from"
    return Finding(FAILURE, f"all {n} labels are {name}", action, Figure(1.0))


def _rarest(labels: LabelSet) -> Finding:
    """The rarest class, against an equal share of the labels."""
    counts, n, classes = labels.counts, len(labels.y), len(labels.counts)
    fewest, most = int(counts.min()), int(counts.max())
    name, commonest = labels.names[int(counts.argmin())], labels.names[int(counts.argmax())]
    low, high = wilson(fewest, n, NormalDist().inv_cdf(1 - LEVEL / classes))
    says = f"{commonest} has {most} labels, {name} {fewest}" if most > fewest else f"every class has {most} labels"
    share = Figure(fewest / n, low, high)
    if high >= 1 / (TIMES * classes):
        return Finding(OK, says, figure=share)
    if fewest / n <= RARE:
        first = "label one or two of it by hand, then " if fewest < 2 else ""
        return Finding(
            WARNING, says, f"it is rare: {first}look among the neighbours of its labels with seals:auto", figure=share
        )
    return Finding(WARNING, says, "keep auto, which balances classes; random and top-k strategies do not", figure=share)
