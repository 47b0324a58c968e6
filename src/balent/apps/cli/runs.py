"""balent run and balent report: experiments, and what they show."""

import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from balent.apps.cli.terminal import err, errors_in_words, out, say, show

if TYPE_CHECKING:
    from balent.report import Summary, TwoSets


def run(
    name: Annotated[str, typer.Argument(help="digits, moons, features, …: see balent list.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="The folder with data sets (or BALENT_DATA); or other data: a name, a file, or FILE.py:NAME."
        ),
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: see balent list; or FILE.py:NAME. Default: the experiment's own."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many; strategies share start set and weights of a seed.")] = 3,
    runs: Annotated[Path, typer.Option("--out", help="The directory that runs are written below.")] = Path("runs"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with runs that were stopped.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs side by side, one thread each. Default: one for each core.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read.")] = False,
    profile: Annotated[str, typer.Option(help="paper: as printed there; cpu: smaller, for two cores.")] = "paper",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE of any setting, as in epochs=50; several times.")
    ] = None,
) -> None:
    """Compare strategies on data whose labels are known.  balent run digits

    Every round trains on the labels so far, is evaluated, and labels a batch. Each line of the records is on disk
    before the next round starts: a run that was stopped or killed goes on with --resume, with the same results.
    At the end come a table, what it shows in words, and a page to open in a browser.

    Strategies, measures and data may be your own, FILE.py:NAME or MODULE:NAME; so may network and predictor, by --set.
    """
    from balent.apps.cli import screen
    from balent.paper.experiments import EXPERIMENTS, chosen
    from balent.simulation import experiment
    from balent.simulation.jobs import side_by_side

    with errors_in_words():
        specs = chosen(name, data, _names(strategies), seeds, settings or [], profile)
        own = {spec.data for spec in specs}
        folder = None if data is None or data in own else Path(data)
        if profile != "paper":
            say(f"{profile} profile: {EXPERIMENTS[name].shrunk(profile) or 'nothing is smaller'}")
        if resume:
            said = {"name", "data", "strategy", "seed", "profile", *(word.partition("=")[0] for word in settings or [])}
            specs = [experiment.continued(spec.directory(runs), spec, said) for spec in specs]
        for spec in specs:
            experiment.allowed(spec.directory(runs), spec, resume)
        count = min(jobs or screen.cores(), len(specs))
        try:
            _check_data({spec.data for spec in specs}, folder, skip_bad)
            news = side_by_side(specs, runs, count, resume=resume, folder=folder, skip_bad=skip_bad)
            errors = screen.watch(news, specs, count, err)
        except KeyboardInterrupt:
            say(f"stopped; all finished rounds are kept. Go on with: {_again()}")
            raise typer.Exit(130) from None
        if errors:
            done = f"{len(specs) - len(errors)} of {len(specs)} runs are complete"
            raise ValueError("\n".join([*dict.fromkeys(errors), f"{done}; go on with: {_again()}"]))
        places = list(dict.fromkeys(runs / spec.name for spec in specs))
        _report(places, html=(places[0] if len(places) == 1 else runs) / "report.html")


def _check_data(names: set[str], folder: Path | None, skip_bad: bool) -> None:
    """Data are read once before any run starts, so that a mistake in them is reported once, not by every run.

    Sets that consist of several files are decoded here, and runs map what was decoded.
    """
    from balent.data.sources import all_labelled, load

    for name in sorted(names):
        all_labelled(load(name, folder, skip_bad=skip_bad, say=lambda note: None))  # runs say it


def _names(strategies: str | None) -> list[str]:
    """Names with commas between; those in brackets separate settings, or belong to a path."""
    return re.findall(r"(?:[^,(]|\([^)]*\))+", strategies or "")


def _again() -> str:
    """The command that goes on where this one stops."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return shlex.join(["balent", *words, "--resume"])


def report(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs, or records.jsonl files.")],
    html: Annotated[Path | None, typer.Option(help="Write a page that works offline.")] = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Write every number of the report.")] = None,
    plot: Annotated[Path | None, typer.Option("--png", help="Write the curves as .png, .svg or .pdf.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the tables for LaTeX (booktabs).")] = None,
    figure: Annotated[
        str | None, typer.Option(help="One panel for a paper: accuracy, nll, brier, ece, … Needs -o.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file of --figure: .pdf, .svg or .png.")
    ] = None,
) -> None:
    """Show what runs found, as a table and a page.  balent report runs --html report.html

    The table has accuracy and the gain on random choice, each with its interval, and the labels that were saved.

    Two folders with runs of the same strategies and seeds are compared: balent report before after
    """
    with errors_in_words():
        if (figure is None) != (output is None):
            raise ValueError("--figure METRIC and -o FILE belong together, as in --figure accuracy -o curve.pdf")
        pair = _two_sets(runs)
        if pair is None:
            _report(runs, html, table, plot, latex, None if figure is None or output is None else (figure, output))
        else:
            _compare(pair, {"--html": html, "--png": plot, "--figure": output}, table, latex)


def _two_sets(runs: list[Path]) -> "TwoSets | None":
    """The comparison of two paths, if they hold the same strategies and seeds; else they are one report."""
    from balent.report import in_common, load, two_sets

    if len(runs) != 2:
        return None
    one, other = (load(path) for path in runs)
    return two_sets(str(runs[0]), one, str(runs[1]), other) if in_common(one, other) else None


def _compare(pair: "TwoSets", refused: dict[str, Path | None], table: Path | None, latex: Path | None) -> None:
    given = [option for option, path in refused.items() if path is not None]
    if given:
        raise ValueError(
            f"{given[0]} shows one set of runs, but two are compared here; give one of {pair.first}, {pair.second}"
        )
    _show(pair)
    _write((table, pair.csv), (latex, pair.latex))


def _report(
    runs: list[Path],
    html: Path | None = None,
    table: Path | None = None,
    plot: Path | None = None,
    latex: Path | None = None,
    figure: tuple[str, Path] | None = None,
) -> None:
    from balent.report import load, summary, write_figure, write_html, write_plot

    found = load(*runs)
    shown = summary(found)
    _show(shown)
    _write(
        (html, partial(write_html, found)), (table, shown.csv), (plot, partial(write_plot, found)), (latex, shown.latex)
    )
    if figure is not None:
        metric, path = figure
        say(f"wrote {path}: {write_figure(shown, path, metric)}")


def _show(shown: "Summary | TwoSets") -> None:
    out.print(shown.table())
    for line in shown.sentences:
        show(line)
    for line in shown.remarks:
        say(line)


def _write(*writers: tuple[Path | None, Callable[[Path], None]]) -> None:
    for path, write in writers:
        if path is not None:
            write(path)
            say(f"wrote {path}")
