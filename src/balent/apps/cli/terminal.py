"""Output of the commands: results on standard output, everything else on standard error, in visible characters."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from balent.apps.visible import visible


class Screen(Console):
    """A console that shows control characters instead of obeying them, in tables too."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


out = Screen()
err = Screen(stderr=True)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Errors that the user can fix are reported in one sentence; other errors keep their traceback."""
    try:
        yield
    except (ModuleNotFoundError, BrokenPipeError):  # who reads our output has seen enough: typer ends quietly
        raise
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        err.print(f"[bold red]error:[/] {escape(_sentence(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory. {error}".strip()
    return str(error)


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C ends in a sentence: nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        say("stopped; everything done so far is kept. Run the same command again to continue")
        raise typer.Exit(130) from None


def show(line: str) -> None:
    """A line of the result; may have markup."""
    out.print(line, highlight=False, soft_wrap=True)


def say(line: str) -> None:
    err.print(escape(line), highlight=False, soft_wrap=True)


def say_left_out(points: object) -> None:
    """What of shards could not be read."""
    from balent.data.shards import Shards

    if isinstance(points, Shards) and points.skipped:
        say(f"left out of {len(points.shards):,} shards:")
        for entry in points.skipped:
            say(f"  {entry}")


def show_table(header: list[str], rows: Iterable[list[Any]]) -> None:
    table = Table(*header, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(f"{cell:.6g}" if isinstance(cell, float) else escape(str(cell)) for cell in row))
    out.print(table)


def write_csv(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """All of it or nothing: the file appears under its name when it is complete."""
    from balent.data import cells

    cells.write(path, header, rows)
    wrote(path)


def write_rows(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """A .parquet, or else a CSV: all of it or nothing."""
    from balent.data import parquet_file

    if path.suffix.lower() != ".parquet":
        return write_csv(path, header, rows)
    parquet_file.write(path, header, rows)
    return wrote(path)


def wrote(path: Path) -> None:
    """Where the result is; who reads it on standard output knows."""
    from balent.data.outputs import is_standard_output

    if not is_standard_output(path):
        say(f"wrote {path}")
