"""Everything that a report shows of one group of runs, computed once; tables, plots and pages only format it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from balent.notebook_cards import card
from balent.report.compare import Comparison, differences, paired, span
from balent.report.curves import Curve, curve, spread
from balent.report.lines import METRICS, OF_PICKS
from balent.report.load import BASELINE, Group
from balent.report.sentence import headline, no_comparison, sentence

COUNTS = 5  # label counts in a table, from the first evaluation to the last
PHASES = ("train", "evaluate", "score")


@dataclass(frozen=True, eq=False)
class Findings:
    """One experiment: curves, areas, comparisons with random, times."""

    group: Group
    comparisons: dict[str, Comparison]  # by strategy, corrected over the whole report; empty without random
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
    def order(self) -> list[str]:
        """All strategies, best first: by the primary comparison, random at zero; without random by area."""
        gains = {name: c.gain for name, c in self.comparisons.items()} | {BASELINE: 0.0}
        ranks = gains if self.comparisons else {name: self.area(name)[0] for name in self.curves}
        return sorted(self.curves, key=lambda name: -np.inf if np.isnan(ranks[name]) else ranks[name], reverse=True)

    @cached_property
    def sentences(self) -> list[str]:
        """The best first."""
        why = no_comparison(self.group)
        return [why] if why else [sentence(self.comparisons[name]) for name in self.order if name != BASELINE]

    @cached_property
    def headline(self) -> str:
        """The primary result in one sentence: what a reader should know if nothing else is read."""
        return no_comparison(self.group) or headline(
            [self.comparisons[name] for name in self.order if name != BASELINE]
        )

    @cached_property
    def span(self) -> tuple[float, float]:
        return span([run for runs in self.group.strategies.values() for run in runs])

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

    def _repr_html_(self) -> str:
        """For notebooks: what these runs show, and the mean accuracy of each strategy."""
        rows = [[name, *(_percent(self.accuracy(name, n)[0]) for n in self.counts)] for name in self.order]
        header = ["accuracy in % at", *(f"{n:g} labels" for n in self.counts)]
        return card(self.group.title, header, rows, self.sentences)

    def accuracy(self, strategy: str, labels: float) -> tuple[float, float]:
        """Mean and std over seeds; NaN where the strategy was not evaluated."""
        return mean_std(self.curves[strategy]["accuracy"].at(labels))

    def gains(self, strategy: str, labels: float) -> np.ndarray:
        """Accuracy minus that of random at a label count, one number per seed."""
        pairs = paired(self.group.strategies[strategy], self.group.strategies[BASELINE])
        return differences(pairs, labels, labels)[1]

    def area(self, strategy: str) -> tuple[float, float]:
        return mean_std(self.curves[strategy]["accuracy"].area(*self.span))

    def seconds(self, strategy: str) -> dict[str, float]:
        """Mean per round by phase, `score` over the rounds that query a batch; NaN where it was not recorded."""
        records = [record for run in self.group.strategies[strategy] for record in run.records if record.get("seconds")]
        querying = [record for record in records if record.get("picks")]
        return {phase: _mean(_phase(querying if phase == "score" else records, phase)) for phase in PHASES}

    def seconds_in_all(self, strategy: str) -> float:
        """Mean per run, all rounds and phases; NaN where it was not recorded."""
        runs = [[s for phase in PHASES for s in _phase(run.records, phase)] for run in self.group.strategies[strategy]]
        return _mean([sum(seconds) for seconds in runs if seconds])


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def _phase(records: Sequence[dict[str, Any]], phase: str) -> list[float]:
    found = ((record.get("seconds") or {}).get(phase) for record in records)
    return [seconds for seconds in found if seconds is not None]


def mean_std(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(spread(values))


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
