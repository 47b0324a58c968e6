"""One clean panel for a paper: as wide as a column, with embedded fonts, and readable in grey.

Lines have markers and dashes beside their colours. Text stays text in a PDF (TrueType), and becomes outlines in an SVG,
so that it looks the same everywhere.
"""

from pathlib import Path
from typing import Any

import numpy as np

from balent.report.findings import Findings
from balent.report.lines import METRICS, OF_PICKS
from balent.report.look import look
from balent.report.plots import figure_class, kind_of, known_metric, save
from balent.report.summary import Summary

WIDTH, HEIGHT = 3.3, 2.4  # inches
INSIDE = 5  # lines whose legend fits into the panel
MARKS = 8  # markers on a line, about
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "balent",
}


def write_figure(s: Summary, path: str | Path, metric: str = "accuracy") -> str:
    """Draws one metric of one experiment, and returns what a caption should say."""
    path, f = kind_of(path), _only(s)
    known_metric(metric)
    if not any(metric in curves for curves in f.curves.values()):
        raise ValueError(f"the records of {f.group.title} have no {metric}; choose from {', '.join(_recorded(f))}")
    with figure_class(_STYLE) as Figure:
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        panel = figure.subplots()
        for strategy in f.order:
            _draw(panel, f, strategy, metric)
        _label(panel, metric)
        _legend(figure, panel)
        save(figure, path, dpi=300)
    return _caption(f, metric)


def _only(s: Summary) -> Findings:
    """One panel shows one experiment."""
    if len(s.findings) > 1:
        titles = ", ".join(f.group.title for f in s.findings)
        raise ValueError(
            f"a figure shows one experiment, but these runs are of {len(s.findings)}: {titles}; name one folder"
        )
    return s.findings[0]


def _recorded(f: Findings) -> list[str]:
    return [name for name in (*METRICS, *OF_PICKS) if any(name in curves for curves in f.curves.values())]


def _draw(panel: Any, f: Findings, strategy: str, metric: str) -> None:
    curve, drawn = f.curves[strategy].get(metric), look(list(f.curves))[strategy]
    if curve is None:
        return
    scale = _scale(metric)
    low, high = curve.band
    panel.fill_between(curve.labels, scale * low, scale * high, color=drawn.light, alpha=0.14, linewidth=0)
    panel.plot(
        curve.labels,
        scale * curve.mean,
        color=drawn.light,
        label=strategy,
        linewidth=1.1,
        linestyle=drawn.line,
        marker=drawn.marker or None,
        markersize=3,
        markevery=max(1, round(len(curve.labels) / MARKS)),
    )


def _scale(metric: str) -> int:
    return 100 if metric == "accuracy" else 1


def _label(panel: Any, metric: str) -> None:
    panel.set_xlabel("labels")
    panel.set_ylabel({**METRICS, **OF_PICKS}[metric] + (" (%)" if metric == "accuracy" else ""))
    panel.grid(axis="y", alpha=0.3, linewidth=0.4)
    panel.margins(x=0.02)


def _legend(figure: Any, panel: Any) -> None:
    lines, names = panel.get_legend_handles_labels()
    if len(lines) <= INSIDE:
        panel.legend(lines, names, loc="best", frameon=False, handlelength=2.6, borderpad=0.2, labelspacing=0.3)
    else:
        figure.legend(
            lines, names, loc="outside upper center", ncols=3, frameon=False, handlelength=2.6, columnspacing=1
        )


def _caption(f: Findings, metric: str) -> str:
    counts = sorted({len(runs) for runs in f.group.strategies.values()})
    if counts == [1]:
        return f"{metric} by number of labels, one seed"
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    span = np.round(f.span).astype(int)
    return (
        f"{metric} by number of labels ({span[0]} to {span[1]}): mean of {many} seeds, bands ± one standard deviation"
    )
