"""Our numbers beside the paper's, at the label counts of its tables, and whether the order of strategies is the same.

An order of two strategies is decided in the paper if their difference is larger than t₄ standard errors of two means
of three repeats (Student's 97.5 %, 2.776), and here if the paired 95 % interval over seeds leaves out zero. Orders that
the paper decides agree, disagree, or are undecided here. This is a secondary comparison: each order is judged on its
own, without a correction for their number, and the sentences say so. Between evaluations our curves are straight lines.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from balent.report.findings import Findings, mean_std
from balent.report.published import REPEATS, published
from balent.report.significance import ALPHA, critical, interval
from balent.report.tables import plus_minus


@dataclass(frozen=True)
class Order:
    """Two strategies at one label count: which one is better here and in the paper; 0 where that is not decided."""

    labels: int
    one: str
    other: str
    here: int
    paper: int

    @property
    def verdict(self) -> str:
        if not self.paper:
            return "open"
        if not self.here:
            return "undecided"
        return "agrees" if self.here == self.paper else "disagrees"


@dataclass(frozen=True, eq=False)
class Beside:
    """One experiment and its table in the paper."""

    findings: Findings

    @cached_property
    def paper(self) -> dict[str, dict[int, tuple[float, float]]]:
        """By strategy, then by labels: mean and standard deviation; only what was run here too."""
        runs = self.findings.group.strategies
        found = {name: published(of[0].experiment, name) for name, of in runs.items()}
        return {name: numbers for name, numbers in found.items() if numbers}

    @cached_property
    def counts(self) -> list[int]:
        """Label counts of the paper's table that at least one run here has reached."""
        every = sorted({n for numbers in self.paper.values() for n in numbers})
        return [n for n in every if any(np.isfinite(self._here(name, n)).any() for name in self.paper)]

    def headings(self) -> list[str]:
        return ["strategy", *(word for n in self.counts for word in (f"{n:,} labels", "paper"))]

    def rows(self) -> list[list[str]]:
        """Accuracy in percent, alternately here and in the paper."""
        return [[name, *self._cells(name)] for name in self.findings.curves if name in self.paper]

    def _cells(self, name: str) -> Iterator[str]:
        for n in self.counts:
            yield plus_minus(*mean_std(self._here(name, n)))
            yield plus_minus(*self.paper[name].get(n, (np.nan, np.nan)))

    @cached_property
    def orders(self) -> list[Order]:
        pairs = combinations(self.paper, 2)
        return [order for one, other in pairs for n in self.counts for order in self._order(n, one, other)]

    def _order(self, n: int, one: str, other: str) -> Iterator[Order]:
        if n in self.paper[one] and n in self.paper[other]:
            here = self._paired(n, one, other)
            yield Order(n, one, other, here, _decided(self.paper[one][n], self.paper[other][n]))

    def _paired(self, n: int, one: str, other: str) -> int:
        """The sign of the difference over seeds that both have, if it is decided."""
        by_seed = [
            {
                run.seed: value
                for run, value in zip(self.findings.group.strategies[name], self._here(name, n), strict=True)
            }
            for name in (one, other)
        ]
        gains = np.array([by_seed[0][seed] - by_seed[1][seed] for seed in by_seed[0].keys() & by_seed[1].keys()])
        if len(gains) < 2 or not np.isfinite(gains).all():
            return 0
        low, high = interval(gains)
        return int(low > 0) - int(high < 0)

    def _here(self, name: str, n: int) -> np.ndarray:
        return self.findings.curves[name]["accuracy"].at(float(n))

    @cached_property
    def sentences(self) -> list[str]:
        """How many orders of the paper are found here, and which are not."""
        if not self.paper:
            return []
        if not self.counts:
            least = min(n for numbers in self.paper.values() for n in numbers)
            return [f"The paper's table starts at {least:,} labels, and no run here has that many"]
        found, against = self.tally, [_against(order) for order in self.orders if order.verdict == "disagrees"]
        decided = len(self.orders) - found["open"]
        said = f"the same here {found['agrees']}, reversed {found['disagrees']}, undecided {found['undecided']}"
        of_how_many = f"The paper's table decides the order of two strategies in {decided} of {len(self.orders)} cases"
        return [f"{of_how_many}: {said} (secondary, each at 5 % and not corrected)", *against]

    @cached_property
    def tally(self) -> Counter[str]:
        """How many orders agree, disagree, are undecided here, or open in the paper."""
        return Counter(order.verdict for order in self.orders)


def _decided(one: tuple[float, float], other: tuple[float, float]) -> int:
    """The sign of a difference in the paper, if it is larger than chance."""
    gain = one[0] - other[0]
    error = critical(ALPHA, 2 * REPEATS - 2) * ((one[1] ** 2 + other[1] ** 2) / REPEATS) ** 0.5
    return 0 if abs(gain) <= error else int(gain > 0) - int(gain < 0)


def _against(order: Order) -> str:
    ahead, behind = (order.one, order.other) if order.here > 0 else (order.other, order.one)
    return f"Reversed: with {order.labels:,} labels {ahead} is above {behind} here and below it in the paper"
