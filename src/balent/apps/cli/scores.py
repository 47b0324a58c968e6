"""balent score: probabilities that were computed elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from balent.apps.cli.terminal import err, errors_in_words, say_left_out, show, show_table, write_rows

if TYPE_CHECKING:
    from balent.acquisition.ranking import Ranking


def score(
    probs: Annotated[
        str | None,
        typer.Argument(
            help="A .npy, .npz, .csv or .parquet with axes pool, draws, classes; a folder or pattern of shards."
        ),
    ] = None,
    measure: Annotated[
        list[str], typer.Option("--measure", "-m", help="A name, or FILE.py:NAME. May be given several times.")
    ] = ["balentacq"],  # noqa: B006
    top: Annotated[
        int | None, typer.Option(help="How many picks of each measure. Default: 10 on screen, all in a file.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a .csv or .parquet instead of a table; - is a CSV.")
    ] = None,
    logits: Annotated[bool, typer.Option("--logits", help="The numbers are logits, not probabilities.")] = False,
    error: Annotated[bool, typer.Option("--error", help="Add the Monte-Carlo standard error of each score.")] = False,
    column: Annotated[str | None, typer.Option(help="Which array of an .npz, which column of shards.")] = None,
    key: Annotated[str | None, typer.Option(help="The column of shards that identifies a point.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on without what cannot be read of shards; it is listed.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the random measure.")] = 0,
    example: Annotated[bool, typer.Option("--example", help="Score an example that balent makes itself.")] = False,
) -> None:
    """Score your own probabilities, of any framework.  balent score probs.npy -m balentacq --top 100 -o picks.csv

    CSV and parquet are in long form: columns point, draw, class, probability. One pass over the file serves all
    measures. --top lists the best points of each measure, best first; a CSV without --top has every point, in order.
    """
    from balent.acquisition import loading, ranking
    from balent.acquisition.drawn_rows import DrawnShards

    with errors_in_words():
        if example == (probs is not None):
            raise ValueError("name one file of probabilities, or give --example; see balent score --help")
        table = ranking.example() if probs is None else loading.probabilities(probs, column, key, skip_bad)
        job = ranking.Job(table, tuple(dict.fromkeys(measure)), logits, error, seed)
        with _progress(len(table)) as advance:
            if output is not None and top is None:
                write_rows(output, job.columns, job.every_point(advance))
            else:
                best = job.best(min(10, len(table)) if top is None else top, advance)
                write_rows(output, *best.rows()) if output else _show(best)
        if isinstance(table, DrawnShards):
            say_left_out(table.shards)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TextColumn("points"), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("scoring", total=total)
        yield lambda points: progress.advance(task, points)


def _show(best: "Ranking") -> None:
    show_table(*best.rows())
    for line in best.remarks():
        show(line)
