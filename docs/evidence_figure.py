"""The figures of evidence.md: the gain of each strategy on random, also by settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from balent.report.compare import Comparison, paired
from balent.report.findings import Findings
from balent.report.load import BASELINE
from balent.report.look import COLOURS, look

STYLE: dict[Any, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def write_gains(f: Findings, path: Path) -> None:
    """Left: points gained at each label count, mean of the seeds. Right: over the curve, with corrected intervals."""
    found, order = f.comparisons, [name for name in reversed(f.order) if name != BASELINE]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, max(2.6, 1.4 + 0.22 * len(order))), layout="constrained")
        left, right = figure.subplots(1, 2)
        for place, name in enumerate(order):
            drawn = look(list(f.curves))[name]
            _draw_curve(left, f, name, drawn.light, drawn.line)
            _draw_interval(right, place, found[name], drawn.light, drawn.line)
        for panel, draw in ((left, left.axhline), (right, right.axvline)):
            draw(0, color="black", linewidth=0.8)
            panel.grid(alpha=0.25, linewidth=0.5)
        left.set(xlabel="labels", ylabel="gain on random, in points")
        right.set(
            xlabel="gain on random's area, in points (corrected 95 % CI)", yticks=range(len(order)), yticklabels=order
        )
        right.set_ylim(-0.6, len(order) - 0.4)
        figure.savefig(path, dpi=120)


def _gained(f: Findings, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Label counts, and the accuracy gained on random's run of the same seed, in the mean of the seeds."""
    labels, runs = f.curves[name]["accuracy"].labels, f.group.strategies
    pairs = paired(runs[name], runs[BASELINE])
    each = [np.interp(labels, *run.accuracies) - np.interp(labels, *other.accuracies) for run, other in pairs]
    return labels, np.mean(each, 0)


def _draw_curve(panel: Any, f: Findings, name: str, colour: str, dashes: Any) -> None:
    labels, gained = _gained(f, name)
    panel.plot(labels, 100 * gained, color=colour, linewidth=1.3, linestyle=dashes)


def _draw_interval(panel: Any, place: int, found: Comparison, colour: str, dashes: Any) -> None:
    panel.plot([100 * found.low, 100 * found.high], [place, place], color=colour, linewidth=1.5, linestyle=dashes)
    panel.plot([100 * found.gain], [place], "o", color=colour, markersize=5)


def write_settings(found: Sequence[Findings], path: Path) -> None:
    """A panel for each pool, a row for each strategy under each noise: the gain on random's area."""
    pools: dict[str, dict[str, Comparison]] = {}
    for f in found:
        pools.setdefault(_setting(f, "data"), {}).update((_noise(f, name), c) for name, c in f.comparisons.items())
    rows = sorted({row for gained in pools.values() for row in gained}, reverse=True)
    kinds = dict(zip(sorted({_kind(row) for row in rows}), COLOURS, strict=False))
    with matplotlib.rc_context(STYLE):
        lines = -(-len(pools) // 2)
        figure = Figure(figsize=(9, lines * max(2.0, 0.8 + 0.19 * len(rows))), layout="constrained")
        panels = figure.subplots(lines, 2, sharey=True, sharex="row", squeeze=False).flat
        for panel, pool in zip(
            panels, sorted(pools, key=len), strict=False
        ):  # duplicates last: 3xdigits, a longer name
            for name, c in pools[pool].items():
                _draw_interval(panel, rows.index(name), c, kinds[_kind(name)], "-")
            panel.axvline(0, color="black", linewidth=0.8)
            panel.grid(alpha=0.25, linewidth=0.5)
            panel.set(title=pool, xlabel="gain on random's area, in points")
            panel.set(yticks=range(len(rows)), yticklabels=rows, ylim=(-0.6, len(rows) - 0.4))
        figure.savefig(path, dpi=120)


def _setting(f: Findings, key: str) -> str:
    return str(next(iter(f.group.strategies.values()))[0].settings[key])


def _noise(f: Findings, strategy: str) -> str:
    """A strategy, and where its noise comes from; numbers so that rows sort."""
    draws = _setting(f, "draws")
    return f"{strategy}, masks {_setting(f, 'masks')}, {draws:>3}{' draws' if draws.isdigit() else ''}"


def _kind(row: str) -> str:
    """Rows of one colour: all but the number of draws."""
    return row.rpartition(",")[0]
