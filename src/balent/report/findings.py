"""Everything a report says of one group of runs, worked out once; tables, plots and pages only show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from balent.report.compare import Comparison, comparisons
from balent.report.curves import Curve, curve, spread
from balent.report.load import METRICS, OF_PICKS, Group
from balent.report.sentence import no_comparison, sentence

COUNTS = 5  # label counts in a table, from the first evaluation to the last
PHASES = ("train", "evaluate", "score")


@dataclass(frozen=True, eq=False)
class Findings:
    """One experiment: curves, areas, comparisons with random, times."""

    group: Group
    wanted: tuple[int, ...] = ()

    @cached_property
    def curves(self) -> dict[str, dict[str, Curve]]:
        """By strategy, then by metric; what was not recorded is not there."""
        found = {
            strategy: {name: curve(runs, name) for name in (*METRICS, *OF_PICKS)}
            for strategy, runs in self.group.strategies.items()
        }
        return {strategy: {n: c for n, c in of.items() if c is not None} for strategy, of in found.items()}

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        return {c.strategy: c for c in comparisons(self.group)}

    @cached_property
    def sentences(self) -> list[str]:
        """The strongest first."""
        why = no_comparison(self.group)
        if why is not None:
            return [why]
        order = sorted(self.comparisons.values(), key=lambda c: -np.inf if c.saved is None else c.saved, reverse=True)
        return [sentence(c) for c in order]

    @cached_property
    def span(self) -> tuple[float, float]:
        """Label counts that every strategy was evaluated between: the only fair range of an area."""
        every = [c["accuracy"].labels for c in self.curves.values() if "accuracy" in c]
        return max(labels[0] for labels in every), min(labels[-1] for labels in every)

    @cached_property
    def counts(self) -> list[float]:
        """Label counts of the table: those asked for, or a few spread over the span."""
        if self.wanted:
            return [float(n) for n in self.wanted]
        start, stop = self.span
        every = np.unique(np.concatenate([c["accuracy"].labels for c in self.curves.values() if "accuracy" in c]))
        every = every[(every >= start) & (every <= stop)]
        chosen = np.linspace(0, len(every) - 1, COUNTS).round().astype(int) if len(every) else np.array([], int)
        return np.unique(every[chosen]).tolist()

    def accuracy(self, strategy: str, labels: float) -> tuple[float, float]:
        """Mean and std over seeds; NaN where the strategy was not evaluated."""
        return mean_std(self.curves[strategy]["accuracy"].at(labels))

    def area(self, strategy: str) -> tuple[float, float]:
        return mean_std(self.curves[strategy]["accuracy"].area(*self.span))

    def seconds(self, strategy: str) -> dict[str, float]:
        """Mean of a round by phase, `score` of the rounds that buy something; NaN where it was not recorded."""
        records = [record for run in self.group.strategies[strategy] for record in run.records if record.get("seconds")]
        buying = [record for record in records if record.get("picks")]
        return {phase: _mean(_phase(buying if phase == "score" else records, phase)) for phase in PHASES}

    def seconds_in_all(self, strategy: str) -> float:
        """Mean of a run, all of its rounds and phases; NaN where it was not recorded."""
        runs = [[s for phase in PHASES for s in _phase(run.records, phase)] for run in self.group.strategies[strategy]]
        return _mean([sum(seconds) for seconds in runs if seconds])


def _phase(records: Sequence[dict[str, Any]], phase: str) -> list[float]:
    found = ((record.get("seconds") or {}).get(phase) for record in records)
    return [seconds for seconds in found if seconds is not None]


def mean_std(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(spread(values))


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
