"""Is a strategy more accurate than random? One test per strategy, paired by seed, corrected over all of a report.

    d_s  = area of the strategy − area of random              for seed s; area: mean accuracy over the label counts
    mean(d) ± t_{1 − α/2, S − 1} · sd(d) / √S                 α: 5 %, divided as Holm's correction asks

The area is the primary comparison: it exists for every curve, and it decides what is claimed and the order of the
strategies. Accuracy at the end and labels saved are secondary: shown with intervals that are not corrected, never
claimed. The seeds of two strategies share start set and initial weights, so differences are taken before averages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from balent.report.curves import Curve
from balent.report.load import BASELINE, Group, Run
from balent.report.saved import Saved, labels_saved
from balent.report.significance import ALPHA, holm, interval, p_value

DIGITS = 12  # of an area: what is smaller comes from rounding, and its spread would say nothing


@dataclass(frozen=True)
class Comparison:
    """A strategy against random. Accuracies are shares: 0.01 is a point."""

    strategy: str
    seeds: int = 0
    span: tuple[float, float] = (np.nan, np.nan)  # the label counts between which all strategies were evaluated
    areas: tuple[float, ...] = ()  # differences of areas, one per seed
    ends: tuple[float, ...] = ()  # secondary: differences of accuracy at the end of the span
    saved: Saved = field(default_factory=Saved)  # secondary
    p: float = np.nan  # corrected; NaN: not tested
    low: float = np.nan  # of the mean of the areas, corrected
    high: float = np.nan
    tests: int = 0  # how many comparisons of the report the correction is for

    @property
    def gain(self) -> float:
        """The difference of areas in the mean of the seeds; NaN if there is none."""
        return float(np.mean(self.areas)) if self.areas else np.nan

    @property
    def verdict(self) -> str:
        """more or less (accurate than random), undecided, single (one seed has no interval) or nothing."""
        if not self.areas:
            return "nothing"
        if self.seeds == 1:
            return "single"
        return "undecided" if not self.p <= ALPHA else "more" if self.gain > 0 else "less"


def comparisons(groups: Sequence[Group]) -> list[dict[str, Comparison]]:
    """Every strategy against random, by group; an empty dict where random was not run."""
    found = [[versus(group, name) for name in _compared(group)] for group in groups]
    rest = iter(corrected([c for of in found for c in of]))
    return [{c.strategy: next(rest) for c in of} for of in found]


def _compared(group: Group) -> list[str]:
    return [name for name in group.strategies if name != BASELINE] if BASELINE in group.strategies else []


def versus(group: Group, name: str) -> Comparison:
    """One strategy, not tested yet: the correction needs all of them."""
    baseline = group.strategies[BASELINE]
    pairs = paired(group.strategies[name], baseline)
    found = Comparison(name, len(pairs), saved=labels_saved(pairs, baseline))
    start, stop = span(list(chain.from_iterable(group.strategies.values())))
    if not pairs or start >= stop:
        return found
    areas, ends = differences(pairs, start, stop)
    return replace(found, span=(start, stop), areas=tuple(areas.tolist()), ends=tuple(ends.tolist()))


def corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """The same with p values and intervals, where two seeds or more make a test."""
    tested = [i for i, c in enumerate(found) if len(c.areas) > 1]
    result = list(found)
    for i, step in zip(tested, holm([p_value(np.array(found[i].areas)) for i in tested]), strict=True):
        low, high = interval(np.array(found[i].areas), step.alpha)
        result[i] = replace(found[i], p=step.p, low=low, high=high, tests=len(tested))
    return result


def span(runs: Sequence[Run]) -> tuple[float, float]:
    """The label counts between which all of these were evaluated: the only fair range of an area."""
    evaluated = [run.accuracies[0] for run in runs]
    return float(max(labels[0] for labels in evaluated)), float(min(labels[-1] for labels in evaluated))


def paired(runs: Sequence[Run], others: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Runs of one seed, which share start set and first weights."""
    partner = {run.seed: run for run in others}
    return [(run, partner[run.seed]) for run in runs if run.seed in partner]


def differences(pairs: Sequence[tuple[Run, Run]], start: float, stop: float) -> tuple[np.ndarray, np.ndarray]:
    """First run minus second, pair by pair: area between two label counts, and accuracy at the second count."""
    curves = [[curve_of(run) for run in pair] for pair in pairs]
    areas = [own.area(start, stop)[0] - other.area(start, stop)[0] for own, other in curves]
    ends = [own.at(stop)[0] - other.at(stop)[0] for own, other in curves]
    return np.round(areas, DIGITS), np.round(ends, DIGITS)


def curve_of(run: Run) -> Curve:
    """The accuracies of one run."""
    labels, accuracies = run.accuracies
    return Curve(labels, accuracies[None])
