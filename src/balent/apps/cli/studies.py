"""balent study: figures and claims of the paper, recomputed."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from balent.apps.cli.terminal import errors_in_words, say, show, show_table
from balent.lookup import lookup


def study(
    name: Annotated[str, typer.Argument(help="moons, fano, …: see balent list; all; or claims, all in one table.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for figures and numbers.")] = Path("studies"),
    ending: Annotated[str, typer.Option("--format", help="Format of the figures: png, svg or pdf.")] = "png",
    page: Annotated[Path | None, typer.Option(help="Write claims and figures as a page of Markdown, too.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, to try it in seconds; the numbers are not results.")
    ] = False,
) -> None:
    """Recompute a figure of the paper and check its claims.  balent study moons

    Writes the figure, NAME.csv with the rows that are printed, and NAME.npz with what else the figure shows.
    """
    from balent.paper.studies import STUDIES, claims, drawing

    with errors_in_words():
        drawing.check(ending, page is not None)
        chosen = STUDIES if name in ("claims", "all") else {name: lookup(STUDIES, name, "study")}
        found = []
        for one in claims.found(chosen, quick):
            found.append(one)
            written = [str(path) for path in one.write(folder, ending)]
            say(f"{one.name}: {one.seconds:.0f} s; wrote {', '.join(written)}")
            if name != "claims":
                _rows(one.table)
        _verdicts(claims.rows(found))
        show(claims.count(found))
        for path in claims.write(found, folder, ending, page, _command()):
            say(f"wrote {path}")


def _rows(table: Any) -> None:
    """A table of a study, or its beginning."""
    from balent.paper.studies.claims import LONGEST, shown

    show_table(list(table.columns), ([shown(cell) for cell in row] for row in table.rows[:LONGEST]))
    if len(table.rows) > LONGEST:
        say(f"{LONGEST} of {len(table.rows)} rows; the others are in the .csv")


def _verdicts(rows: list[tuple[str, ...]]) -> None:
    """A claim in two lines: whether it holds, what and where; the paper's number, and ours."""
    colours = {"holds": "green", "does not hold": "red", "in part": "yellow"}
    for answer, claim, where, paper, ours, _ in rows:
        show(f"[bold {colours[answer]}]{answer}[/]: {escape(claim)} ({escape(where)})")
        show(f"    paper: {escape(paper)}   ours: {escape(ours)}")


def _command() -> str:
    return shlex.join(["balent", *sys.argv[1:]])
