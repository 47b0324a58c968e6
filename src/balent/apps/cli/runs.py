"""balent run and balent report: experiments, and what they show."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from balent.apps.cli.terminal import err, errors_in_words, out, say, show


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
) -> None:
    """Show what runs found, as a table and a page.  balent report runs --html report.html

    The table has accuracy and the gain on random choice, each with its interval, and the labels that were saved.
    """
    with errors_in_words():
        _report(runs, html, table, plot)


def _report(runs: list[Path], html: Path | None = None, table: Path | None = None, plot: Path | None = None) -> None:
    from balent.report import load, summary, write_html, write_plot

    found = load(*runs)
    shown = summary(found)
    out.print(shown.table())
    for line in shown.sentences:
        show(line)
    for line in shown.remarks:
        say(line)
    writers = ((html, lambda path: write_html(found, path)), (table, shown.csv), (plot, lambda p: write_plot(found, p)))
    for path, write in writers:
        if path is not None:
            write(path)
            say(f"wrote {path}")
