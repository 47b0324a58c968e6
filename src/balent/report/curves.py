"""Learning curves over seeds: mean, spread, value at a label count, area, and labels needed for a level.

A curve of one run is joined by straight lines. Runs of one strategy need not be evaluated at the same
label counts: they are read where all of them have been.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from balent.report.load import Run


@dataclass(frozen=True, eq=False)
class Curve:
    """Runs of one strategy on common label counts: values [seeds, counts]."""

    labels: np.ndarray
    values: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.values.mean(0)

    @property
    def std(self) -> np.ndarray:
        """Sample standard deviation over seeds; NaN for a single seed."""
        return spread(self.values)

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean ± std; for a single seed the mean twice."""
        half = np.nan_to_num(self.std)
        return self.mean - half, self.mean + half

    def at(self, labels: float) -> np.ndarray:
        """The value of each seed at this many labels; NaN where the curve has none."""
        return np.array([np.interp(labels, self.labels, row, np.nan, np.nan) for row in self.values])

    def area(self, start: float, stop: float) -> np.ndarray:
        """Mean height between two label counts, of each seed: 1 is an oracle from the first label."""
        if stop <= start:
            return self.at(start)
        grid = np.unique([start, *self.labels[(self.labels > start) & (self.labels < stop)], stop])
        heights = np.array([np.interp(grid, self.labels, row) for row in self.values])
        return _trapezoids(heights, grid) / (stop - start)


def _trapezoids(heights: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The area below each row; numpy has a function for it that was renamed in version 2."""
    return np.asarray((np.diff(grid) * (heights[:, 1:] + heights[:, :-1]) / 2).sum(-1))


def spread(values: np.ndarray) -> np.ndarray:
    """Sample standard deviation over the first axis, NaN if that has one entry."""
    return np.asarray(values.std(0, ddof=1)) if len(values) > 1 else np.full(values.shape[1:], np.nan)


def curve(runs: Sequence[Run], name: str = "accuracy") -> Curve | None:
    """The curve of a recorded quantity; None if some run never recorded it."""
    recorded = [
        (run.labels[known], values[known])
        for run in runs
        for values in [run.series(name)]
        for known in [np.isfinite(values)]
    ]
    if any(len(labels) == 0 for labels, _ in recorded):
        return None
    start, stop = max(labels[0] for labels, _ in recorded), min(labels[-1] for labels, _ in recorded)
    every = np.unique(np.concatenate([labels for labels, _ in recorded]))
    grid = every[(every >= start) & (every <= stop)]
    return (
        Curve(grid, np.array([np.interp(grid, labels, values) for labels, values in recorded])) if len(grid) else None
    )


def rising(values: np.ndarray) -> np.ndarray:
    """The nearest curve (least squares) that never falls: neighbours that fall are replaced by their mean.

    More labels do not make a classifier worse; that one evaluation lies below the one before is noise. Without
    this step the first crossing of a level would be that of the luckiest evaluation.

    >>> rising(np.array([1.0, 3.0, 2.0, 4.0]))
    array([1. , 2.5, 2.5, 4. ])
    """
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, size = value, 1
        while blocks and blocks[-1][0] >= mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])


def labels_needed(labels: np.ndarray, values: np.ndarray, level: float) -> float:
    """Where the rising curve first reaches the level, on straight lines between evaluations; infinite if never.

    >>> labels_needed(np.array([10, 20, 30]), np.array([0.5, 0.7, 0.9]), 0.8)
    25.0
    """
    fit = rising(values)
    reached = np.flatnonzero(fit >= level - 1e-12)  # 0.7 + 0.2 < 0.9 in floating point
    if len(reached) == 0:
        return np.inf
    i = int(reached[0])
    if i == 0:
        return float(labels[0])
    share = (level - fit[i - 1]) / (fit[i] - fit[i - 1])
    return float(labels[i - 1] + min(share, 1.0) * (labels[i] - labels[i - 1]))
