"""How many labels a strategy saves: labels needed for the same accuracy, relative to random. A secondary figure.

    r_s  = log(labels of the strategy / labels of random)     for seed s, both at the same accuracy level
    mean(r) ± t_{0.975, S − 1} · sd(r) / √S                   then labels saved = 1 − exp(r)

Labels needed multiply (twice as many for every strategy in a hard seed), hence logarithms. The interval is not
corrected for the number of strategies, and no claim is based on it: a strategy that never reaches random's level is
measured at a lower one, so the savings of two strategies need not be comparable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from balent.report.curves import labels_needed, rising
from balent.report.load import Run
from balent.report.significance import interval

GAIN = 0.9  # of what random gains: nearer to its end the curve is flat, and labels needed are a matter of luck


@dataclass(frozen=True)
class Saved:
    """Shares of random's labels: positive is saved, negative is needed in addition."""

    level: float | None = None  # None: there is no accuracy at which the two can be compared
    share: float | None = None
    low: float | None = None  # None: a single seed
    high: float | None = None
    unreached: float | None = None  # the level that random reaches and the strategy does not in some seed
    censored: int = 0  # in how many seeds it does not
    budget: float = np.nan  # with how many labels it does not


def labels_saved(pairs: Sequence[tuple[Run, Run]], baseline: Sequence[Run]) -> Saved:
    """At a level that random reaches; if the strategy does not get there, at the highest that both reach."""
    goal = level(baseline)
    if not pairs or goal is None:
        return Saved()
    missed = [run for run, _ in pairs if not np.isfinite(_needed(run, goal))]
    if not missed:
        return _at(goal, pairs, Saved())
    budget = float(min(run.labels[-1] for run in missed))
    found = Saved(unreached=goal, censored=len(missed), budget=budget)
    common = level([run for pair in pairs for run in pair])
    return found if common is None else _at(common, pairs, found)


def _at(goal: float, pairs: Sequence[tuple[Run, Run]], found: Saved) -> Saved:
    logs = np.log([_needed(run, goal) / _needed(other, goal) for run, other in pairs])
    found = replace(found, level=goal, share=1 - float(np.exp(logs.mean())))
    if len(pairs) == 1:
        return found
    low, high = interval(logs)
    return replace(found, low=1 - float(np.exp(high)), high=1 - float(np.exp(low)))


def level(runs: Sequence[Run]) -> float | None:
    """The highest round accuracy up to 90 % of what all of these runs gain, if there is one above their start.

    Whole percents where possible, else tenths: people remember 90 %. The level depends on random alone: one chosen
    where the strategies do best would find a winner among equals.
    """
    fits = [rising(run.accuracies[1]) for run in runs]
    start, end = max(fit[0] for fit in fits), min(fit[-1] for fit in fits)
    for steps in (100, 1000):
        rounded = float(np.floor((start + GAIN * (end - start)) * steps + 1e-9) / steps)
        if rounded > start:
            return rounded
    return None


def _needed(run: Run, level: float) -> float:
    return max(1.0, labels_needed(*run.accuracies, level))  # an empty start set has no logarithm
