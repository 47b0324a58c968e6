"""Curves as a file: PNG, SVG or PDF by matplotlib, an extra. By default the paper's figure of four columns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from balent.report.findings import Findings
from balent.report.lines import METRICS, OF_PICKS
from balent.report.load import Run
from balent.report.look import look
from balent.report.summary import Summary, summary

FIGURE = ("accuracy", "nll", "epistemic", "aleatoric")
SUFFIXES = (".png", ".svg", ".pdf")
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "balent",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def write_plot(runs: Sequence[Run] | Summary, path: str | Path, metrics: Sequence[str] = FIGURE) -> None:
    """A row for each experiment, a column for each metric that was recorded; bands are ± std over seeds."""
    path = kind_of(path)
    for name in metrics:
        known_metric(name)
    with figure_class(_STYLE) as Figure:
        findings = (runs if isinstance(runs, Summary) else summary(runs)).findings
        columns = [name for name in metrics if any(name in curves for f in findings for curves in f.curves.values())]
        if not columns:
            raise ValueError(f"the records contain none of {', '.join(metrics)}")
        figure = Figure(figsize=(3.1 * len(columns) + 0.4, 2.9 * len(findings) + 0.5), layout="constrained")
        axes = figure.subplots(len(findings), len(columns), squeeze=False)
        for f, row in zip(findings, axes, strict=True):
            for name, panel in zip(columns, row, strict=True):
                _draw(panel, f, name)
            row[0].set_title(f.group.title, loc="left", fontweight="bold")
            _legend(figure, row, len(findings) == 1)
        save(figure, path, dpi=120)


def kind_of(path: str | Path) -> Path:
    """The path, if its ending is one that can be drawn."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"the name of a plot must end in {', '.join(SUFFIXES)}, but is {path.name}")
    return path


def known_metric(name: str) -> None:
    if name not in {**METRICS, **OF_PICKS}:
        raise ValueError(f"unknown metric {name!r}; known are {', '.join([*METRICS, *OF_PICKS])}")


@contextmanager
def figure_class(style: Mapping[Any, Any]) -> Iterator[Any]:
    """matplotlib's Figure, under a style that ends with this."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("plots need matplotlib: pip install 'balent[report]'; the HTML page does not") from None
    with matplotlib.rc_context(dict(style)):
        yield Figure


def save(figure: Any, path: Path, *, dpi: int) -> None:
    """The same records give the same file: it holds no date."""
    dates: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.savefig(path, dpi=dpi, metadata=dates.get(path.suffix.lower(), {}))


def _draw(panel: Any, f: Findings, name: str) -> None:
    for strategy, drawn in look(list(f.curves)).items():
        curve = f.curves[strategy].get(name)
        if curve is not None:
            panel.fill_between(curve.labels, *curve.band, color=drawn.light, alpha=0.12, linewidth=0)
            panel.plot(
                curve.labels,
                curve.mean,
                color=drawn.light,
                label=strategy,
                linewidth=1.5,
                linestyle=drawn.line,
            )
    panel.set_xlabel("labels")
    panel.set_ylabel({**METRICS, **OF_PICKS}[name])
    panel.grid(alpha=0.25, linewidth=0.5)


def _legend(figure: Any, row: Any, alone: bool) -> None:
    """Below the whole figure where one row uses it, else within the row's first panel."""
    lines, names = row[0].get_legend_handles_labels()
    if alone:
        figure.legend(lines, names, loc="outside lower center", ncols=len(row) * 2 - 1, frameon=False)
    else:
        row[0].legend(lines, names, fontsize=7, frameon=False)
