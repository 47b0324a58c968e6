"""Numbers in rows: a table for the terminal, a CSV for everything else."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from balent.data import cells
from balent.report import sentence
from balent.report.compare import Comparison
from balent.report.curves import spread
from balent.report.findings import Findings
from balent.report.load import BASELINE
from balent.report.significance import interval

MOST = 3  # strategies whose gains fit into 80 columns
COLUMNS = ["experiment", "strategy", "seeds", "quantity", "at", "mean", "std", "low", "high", "p"]


def table(findings: Sequence[Findings]) -> RenderableType:
    """For each experiment the strategies, the best first; and their gains by the number of labels."""
    return Group(*(shown for f in findings for shown in (_table(f), _by_labels(f)) if shown is not None))


def _table(f: Findings) -> Table:
    """Fits into 80 columns: unless other label counts are wanted, the accuracy at the last one."""
    counts = f.counts if f.wanted else f.counts[-1:]
    shown = plain(f"{f.group.title}: accuracy in %, {seeds(f)}", headings(f, counts), rows(f, counts))
    shown.caption, shown.caption_justify = escape(caption(f)), "left"
    return shown


def _by_labels(f: Findings) -> Table | None:
    """A line per label count: is a strategy ahead from the first labels on?  None where there is nothing to compare."""
    names = [name for name in f.order if name in f.comparisons and f.comparisons[name].tests][:MOST]
    if not names or f.wanted:
        return None
    body = [[f"{n:g}", *(gain_at(f.gains(name, n)) for name in names)] for n in f.counts]
    shown = plain(f"{f.group.title}: points ahead of {BASELINE}", ["labels", *names], body)
    shown.caption, shown.caption_justify = "paired by seed, 95 % CI of each number, not corrected.", "left"
    return shown


def gain_at(gains: np.ndarray) -> str:
    """+1.2 (−0.5 to 2.9), in points; 0.0 where both had the same labels."""
    if not gains.any():
        return sentence.points(0.0)
    low, high = interval(gains)
    return f"{sentence.points(float(gains.mean()))} ({_to(sentence.points(low), sentence.points(high))})"


def caption(f: Findings) -> str:
    """What the last columns are."""
    area = f"area: mean accuracy from {f.span[0]:.0f} to {f.span[1]:.0f} labels."
    if not f.comparisons:
        return area
    tests = max(c.tests for c in f.comparisons.values())
    many = f" corrected for {tests} comparisons (Holm)" if tests > 1 else ""
    gain, saved = (f", 95 % CI{many}", ", 95 % CI not corrected") if tests else ("", "")
    return (
        f"{area} gain: area minus the area of {BASELINE}, paired by seed{gain}. saved: labels saved, secondary{saved}."
    )


def plain(title: str, names: Sequence[str], body: Sequence[Sequence[str]]) -> Table:
    """Names on the left, numbers on the right."""
    shown = Table(title=escape(title), title_justify="left", box=None, header_style="bold", title_style="bold")
    for i, heading in enumerate(names):
        shown.add_column(escape(heading), justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in body:
        shown.add_row(*map(escape, row))
    return shown


def markdown(names: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """The same in Markdown; a bar inside a cell is escaped."""
    lines = [names, ["---"] * len(names), *body]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def seeds(f: Findings) -> str:
    counts = sorted({len(runs) for runs in f.group.strategies.values()})
    return sentence.seeds(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def headings(f: Findings, counts: Sequence[float]) -> list[str]:
    level = _level(f)
    saved = "saved" if level is None else f"saved at {sentence.level(level)}"
    return ["strategy", *(f"{n:g} labels" for n in counts), "area", "gain", saved]


def _level(f: Findings) -> float | None:
    """The accuracy level of all comparisons, if it is the same: then it stands once, in the heading."""
    levels = {c.saved.level for c in f.comparisons.values() if c.saved.share is not None}
    return levels.pop() if len(levels) == 1 else None


def rows(f: Findings, counts: Sequence[float]) -> list[list[str]]:
    """Accuracies in percent ± std over seeds, the mean area, its gain on random, labels saved; the best first."""
    return [
        [
            name,
            *(plus_minus(*f.accuracy(name, n)) for n in counts),
            plus_minus(f.area(name)[0], math.nan),
            gain(f.comparisons.get(name)),
            saved(f.comparisons.get(name), _level(f)),
        ]
        for name in f.order
    ]


def gain(c: Comparison | None) -> str:
    """+1.2 (−0.5 to 2.9), in points, with its corrected interval; one seed has none."""
    if c is None or not c.areas:
        return "–"
    points = sentence.points(c.gain)
    return points if math.isnan(c.low) else f"{points} ({_to(sentence.points(c.low), sentence.points(c.high))})"


def _to(low: str, high: str) -> str:
    return f"{low} to {high}".replace("+", "")


def plus_minus(mean: float, std: float) -> str:
    """In percent, like 91.2 ± 0.8; a single seed has no ±."""
    if math.isnan(mean):
        return "–"
    return f"{100 * mean:.1f}" if math.isnan(std) else f"{100 * mean:.1f} ± {100 * std:.1f}"


def saved(c: Comparison | None, above: float | None = None) -> str:
    """38 % (25 to 48), with its accuracy level if that is not in the heading; negative: labels needed in addition."""
    if c is None:
        return "–"
    s = c.saved
    if s.share is None:
        return f"not {sentence.level(s.unreached)}" if s.censored else "–"
    interval = "" if s.low is None or s.high is None else f" ({round(100 * s.low)} to {round(100 * s.high)})"
    level = "" if s.level == above else f" at {sentence.level(s.level)}"
    return f"{round(100 * s.share)} %{interval}{level}".replace("-", "−")


def write_csv(findings: Sequence[Findings], path: Path) -> None:
    write_rows((row for f in findings for row in _long(f)), path)


def write_rows(rows: Iterable[Sequence[object]], path: Path) -> None:
    """Rows of COLUMNS, all or nothing: the file appears under its name when it is complete."""
    cells.write(path, COLUMNS, ([_cell(c) for c in row] for row in rows))


def _long(f: Findings) -> Iterator[list[object]]:
    """Rows of COLUMNS. `at` is a label count, or the accuracy level of `labels_saved`."""
    for strategy, curves in f.curves.items():
        head = [f.group.title, strategy, len(f.group.strategies[strategy])]
        for name, curve in curves.items():
            for at, mean, std in zip(curve.labels, curve.mean, curve.std, strict=True):
                yield [*head, name, at, mean, std, None, None, None]
        yield [*head, "area", None, *f.area(strategy), None, None, None]
        for phase, seconds in f.seconds(strategy).items():
            yield [*head, f"seconds_{phase}", None, seconds, None, None, None, None]
        if strategy in f.comparisons:
            yield from ([f.group.title, strategy, *row] for row in _compared(f.comparisons[strategy]))


def _compared(c: Comparison) -> Iterator[list[object]]:
    """The primary comparison with its corrected p and interval, then the secondary ones: not corrected, no p."""
    ends, s = np.array(c.ends), c.saved
    if c.areas:
        yield [c.seeds, "area_gain", None, c.gain, float(spread(np.array(c.areas))), c.low, c.high, c.p]
        low, high = interval(ends) if len(ends) > 1 else (None, None)
        yield [c.seeds, "final_gain", c.span[1], float(ends.mean()), float(spread(ends)), low, high, None]
    yield [c.seeds, "labels_saved", s.level, s.share, None, s.low, s.high, None]


def _cell(value: object) -> object:
    """Empty where the value is unknown; label counts without a decimal point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, float):
        return value
    number = float(f"{value:.10g}")
    return int(number) if number.is_integer() else number
