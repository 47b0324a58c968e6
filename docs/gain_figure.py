"""A panel for each set: what strategies gain on random, by labels per class, with the interval of the first of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from evidence_figure import STYLE
from gain_curves import Curves, titled
from matplotlib.figure import Figure

from balent.report.look import look
from balent.report.significance import interval

COLUMNS = 4


def figure(words: Sequence[str], folder: Path) -> str:
    """NAME head=… sets=… of=one,two FILE…: writes folder/NAME.png; returns its line in Markdown."""
    name, *rest = words
    chosen = dict(word.split("=") for word in rest if "=" in word)
    found = Curves.read(*(Path(word) for word in rest if "=" not in word)).only(chosen["head"], chosen["sets"])
    write(found, chosen["of"].split(","), folder / f"{name}.png")
    return f"![Points gained on random by labels per class, a panel for each data set]({name}.png)\n"


def write(found: Curves, strategies: Sequence[str], path: Path) -> None:
    looks, cases = look(strategies), found.cases
    with matplotlib.rc_context(STYLE):
        rows = -(-len(cases) // COLUMNS)
        drawn = Figure(figsize=(10, 0.5 + 2.1 * rows), layout="constrained")
        panels = list(drawn.subplots(rows, COLUMNS, squeeze=False).flat)
        for panel, case in zip(panels, cases, strict=False):
            for place, strategy in reversed([*enumerate(strategies)]):
                gained = found.gains(case, strategy, "random")
                if len(gained):
                    _draw(panel, found.counts, gained, strategy, looks[strategy], place == 0)
            panel.axhline(0, color="black", linewidth=0.8)
            panel.grid(alpha=0.25, linewidth=0.5)
            panel.set_xscale("log")
            panel.set_xticks(found.counts, map(str, found.counts))
            panel.minorticks_off()
            panel.set_title(titled(case).partition(", `")[0], fontsize=9)
        for panel in panels[len(cases) :]:
            panel.axis("off")
        drawn.supxlabel("labels per class", fontsize=9)
        drawn.supylabel("points of accuracy ahead of random", fontsize=9)
        lines = {line.get_label(): line for panel in panels for line in panel.get_lines()}
        drawn.legend([lines[s] for s in strategies], strategies, loc="outside upper center", ncols=6, frameon=False)
        drawn.savefig(path, dpi=120)


def _draw(panel: Any, counts: Sequence[int], gained: np.ndarray, name: str, style: Any, band: bool) -> None:
    """The mean of the seeds, and its 95 % interval."""
    at = counts[: gained.shape[1]]
    line = {"color": style.light, "linestyle": style.line, "linewidth": 2.0 if band else 1.2}
    panel.plot(at, gained.mean(0), label=name, **line)
    if band:
        low, high = np.array([interval(column) for column in gained.T]).T
        panel.fill_between(at, low, high, color=style.light, alpha=0.15, linewidth=0)
