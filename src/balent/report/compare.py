"""Does a strategy need fewer labels than random? Compared seed by seed, with an interval that few seeds deserve.

    r_s  = log(labels of the strategy / labels of random)     for seed s, both at the same accuracy level
    mean(r) ± t_{0.975, S − 1} · sd(r) / √S                   then labels saved = 1 − exp(r)

The seeds of two strategies share start set and initial weights, so differences are taken before averages. Labels
needed multiply (twice as many for everybody in a hard seed), hence logarithms. Student's t rather than a bootstrap:
of 3 seeds a bootstrap has 10 distinct resamples, and its 95 % interval holds the truth 73 % of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from balent.report.curves import Curve, labels_needed, rising
from balent.report.load import BASELINE, Group, Run

# Student's t, 97.5 %, for 1 to 30 degrees of freedom; beyond, three terms of Cornish and Fisher have five digits.
# fmt: off
_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)
# fmt: on
GAIN = 0.9  # of what random gains: nearer to its end the curve is flat, and labels needed are a matter of luck


@dataclass(frozen=True)
class Gain:
    """Accuracy gained on random, seed by seed, with its 95 % interval."""

    gain: float
    low: float
    high: float
    labels: float | None = None  # with so many labels; None: on average over the whole curve


@dataclass(frozen=True)
class Comparison:
    """A strategy against random. Shares are of random's labels; positive is saved, negative is needed on top."""

    strategy: str
    seeds: int
    level: float | None = None  # None: there is no accuracy at which the two can be compared
    saved: float | None = None
    low: float | None = None
    high: float | None = None
    unreached: float | None = None  # the level that random reaches and the strategy does not in some seed
    censored: int = 0  # in how many seeds it does not
    budget: float = np.nan  # with how many labels it does not
    gains: tuple[Gain, ...] = ()  # over the curve, and at its end; none for one seed

    @property
    def verdict(self) -> str:
        """fewer, more, undecided (the interval has both), single (no interval), never or nothing."""
        if self.seeds == 0 or (self.saved is None and not self.censored):
            return "nothing"
        if self.saved is None:
            return "never"
        if self.low is None or self.high is None:
            return "single"
        return "fewer" if self.low > 0 else "more" if self.high < 0 else "undecided"


def t975(freedom: int) -> float:
    """The 97.5 % quantile of Student's t."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def interval(logs: np.ndarray) -> tuple[float, float]:
    """95 % for the mean of a few numbers, two at least."""
    half = t975(len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return float(logs.mean() - half), float(logs.mean() + half)


def level(runs: Sequence[Run]) -> float | None:
    """The highest round accuracy up to 90 % of what all of these runs gain, if there is one above their start.

    Whole percents where possible, else tenths: people remember 90 %. The strategies have no say in it: a level
    chosen where they do best would find a winner among equals.
    """
    fits = [rising(run.accuracies[1]) for run in runs]
    start, end = max(fit[0] for fit in fits), min(fit[-1] for fit in fits)
    for steps in (100, 1000):
        rounded = float(np.floor((start + GAIN * (end - start)) * steps + 1e-9) / steps)
        if rounded > start:
            return rounded
    return None


def comparisons(group: Group) -> list[Comparison]:
    """Every strategy of the group against random; empty if random was not run."""
    others = {name: runs for name, runs in group.strategies.items() if name != BASELINE}
    return [
        versus(name, runs, group.strategies[BASELINE]) for name, runs in others.items() if BASELINE in group.strategies
    ]


def versus(name: str, runs: Sequence[Run], baseline: Sequence[Run]) -> Comparison:
    """At a level that random reaches; where the strategy does not get there, at the highest that both do.

    The lower level errs on the side of the strategy, and the sentence names both.
    """
    pairs = paired(runs, baseline)
    goal = level(baseline)
    found = Comparison(name, len(pairs), gains=gains(pairs))
    if not pairs or goal is None:
        return found
    missed = [run for run, _ in pairs if not np.isfinite(_needed(run, goal))]
    if missed:
        budget = float(min(run.labels[-1] for run in missed))
        found = replace(found, unreached=goal, censored=len(missed), budget=budget)
    common = level([run for pair in pairs for run in pair]) if missed else goal
    if common is None:
        return found
    logs = np.log([_needed(run, common) / _needed(other, common) for run, other in pairs])
    found = replace(found, level=common, saved=1 - float(np.exp(logs.mean())))
    if len(pairs) == 1:
        return found
    low, high = interval(logs)
    return replace(found, low=1 - float(np.exp(high)), high=1 - float(np.exp(low)))


def paired(runs: Sequence[Run], others: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Runs of one seed, which share start set and first weights."""
    partner = {run.seed: run for run in others}
    return [(run, partner[run.seed]) for run in runs if run.seed in partner]


def gains(pairs: Sequence[tuple[Run, Run]]) -> tuple[Gain, ...]:
    """What was gained on the partner, between label counts that all were evaluated at; nothing without an interval."""
    spans = [run.accuracies[0][[0, -1]] for pair in pairs for run in pair]
    start, stop = max((a for a, _ in spans), default=0.0), min((b for _, b in spans), default=0.0)
    if len(pairs) < 2 or start >= stop:
        return ()
    curves = [[_curve(run) for run in pair] for pair in pairs]
    areas = np.array([own.area(start, stop)[0] - other.area(start, stop)[0] for own, other in curves])
    ends = np.array([own.at(stop)[0] - other.at(stop)[0] for own, other in curves])
    return (
        Gain(float(areas.mean()), *interval(areas)),
        Gain(float(ends.mean()), *interval(ends), float(stop)),
    )


def _curve(run: Run) -> Curve:
    labels, accuracies = run.accuracies
    return Curve(labels, accuracies[None])


def _needed(run: Run, level: float) -> float:
    return max(1.0, labels_needed(*run.accuracies, level))  # a start set of none has no logarithm
