"""What commands say, and where: results on standard output, all else on standard error."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

out = Console()
err = Console(stderr=True)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """What the person can mend is said in one sentence; what they cannot keeps its traceback."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C ends in a sentence: nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        say("stopped; what was done is kept. The same command goes on from there")
        raise typer.Exit(130) from None


def show(line: str) -> None:
    """A line of the result; may have markup."""
    out.print(line, highlight=False, soft_wrap=True)


def say(line: str) -> None:
    err.print(escape(line), highlight=False, soft_wrap=True)


def show_table(header: list[str], rows: Iterable[list]) -> None:
    table = Table(*header, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(f"{cell:.6g}" if isinstance(cell, float) else escape(str(cell)) for cell in row))
    out.print(table)


def write_csv(path: Path, header: list[str], rows: Iterator[list]) -> None:
    """All of it or nothing: the file appears under its name when it is complete."""
    from balent.learning.records import whole

    with whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header])
        csv.writer(file).writerows(rows)
