"""Numbers in rows: a table for the terminal, a CSV for everything else."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from balent import cells
from balent.report import sentence
from balent.report.compare import Comparison
from balent.report.findings import Findings
from balent.report.load import BASELINE

COLUMNS = ["experiment", "strategy", "seeds", "quantity", "at", "mean", "std", "low", "high"]


def table(findings: Sequence[Findings]) -> RenderableType:
    """A table for each experiment, the largest area first."""
    return Group(*(_table(f) for f in findings))


def _table(f: Findings) -> Table:
    """Fits into 80 columns: unless asked for others, after a quarter, half and all of the labels."""
    counts = f.counts if f.wanted or len(f.counts) < 5 else [f.counts[i] for i in (1, 2, 4)]
    return plain(f"{f.group.title}: accuracy in %, {seeds(f)}", headings(f, counts), rows(f, counts))


def plain(title: str, names: Sequence[str], body: Sequence[Sequence[str]]) -> Table:
    """Names on the left, numbers on the right."""
    shown = Table(title=escape(title), title_justify="left", box=None, header_style="bold", title_style="bold")
    for i, heading in enumerate(names):
        shown.add_column(escape(heading), justify="left" if i == 0 else "right", no_wrap=i == 0)
    for row in body:
        shown.add_row(*map(escape, row))
    return shown


def markdown(names: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """The same for a page of text; a bar in a cell would end it."""
    lines = [names, ["---"] * len(names), *body]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def seeds(f: Findings) -> str:
    counts = sorted({len(runs) for runs in f.group.strategies.values()})
    return sentence.seeds(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def headings(f: Findings, counts: Sequence[float]) -> list[str]:
    level = _level(f)
    saved = "labels saved" if level is None else f"saved at {sentence.level(level)}"
    return ["strategy", *(f"{n:g} labels" for n in counts), "area", saved]


def _level(f: Findings) -> float | None:
    """The accuracy that all comparisons are for, if there is one: then it stands once, above them."""
    levels = {c.level for c in f.comparisons.values() if c.saved is not None}
    return levels.pop() if len(levels) == 1 else None


def rows(f: Findings, counts: Sequence[float]) -> list[list[str]]:
    """Accuracies in percent ± std over seeds, the area likewise, labels saved with their interval."""
    order = sorted(f.curves, key=lambda name: f.area(name)[0], reverse=True)
    return [
        [
            name,
            *(plus_minus(*f.accuracy(name, n)) for n in counts),
            plus_minus(*f.area(name)),
            saved(f.comparisons.get(name), _level(f)),
        ]
        for name in order
    ]


def plus_minus(mean: float, std: float) -> str:
    """In percent, like 91.2 ± 0.8; a single seed has no ±."""
    if math.isnan(mean):
        return "–"
    return f"{100 * mean:.1f}" if math.isnan(std) else f"{100 * mean:.1f} ± {100 * std:.1f}"


def saved(c: Comparison | None, above: float | None = None) -> str:
    """38 % (25 to 48), with its accuracy level if that does not stand above; a minus is needed on top."""
    if c is None:
        return "–"
    if c.saved is None:
        return f"not {sentence.level(c.unreached)}" if c.censored else "–"
    interval = "" if c.low is None or c.high is None else f" ({100 * c.low:.0f} to {100 * c.high:.0f})"
    level = "" if c.level == above else f" at {sentence.level(c.level)}"
    return f"{100 * c.saved:.0f} %{interval}{level}".replace("-", "−")


def write_csv(findings: Sequence[Findings], path: Path) -> None:
    """All of it or nothing: the file appears under its name when it is complete."""
    cells.write(path, COLUMNS, ([_cell(c) for c in row] for f in findings for row in _long(f)))


def _long(f: Findings) -> Iterator[list]:
    """Rows of COLUMNS. `at` is a label count, or the accuracy that `labels_saved` is for."""
    for strategy, curves in f.curves.items():
        head = [f.group.title, strategy, len(f.group.strategies[strategy])]
        for name, curve in curves.items():
            for at, mean, std in zip(curve.labels, curve.mean, curve.std, strict=True):
                yield [*head, name, at, mean, std, None, None]
        yield [*head, "area", None, *f.area(strategy), None, None]
        for phase, seconds in f.seconds(strategy).items():
            yield [*head, f"seconds_{phase}", None, seconds, None, None, None]
        c = f.comparisons.get(strategy)
        if strategy != BASELINE and c is not None:
            yield [head[0], strategy, c.seeds, "labels_saved", c.level, c.saved, None, c.low, c.high]


def _cell(value: object) -> object:
    """Empty for what is not known, and label counts without a decimal point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, float):
        return value
    number = float(f"{value:.10g}")
    return int(number) if number.is_integer() else number
