"""The command line: parse, call, print. torch is imported by the commands that need it, not by --help."""

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from balent.apps.cli.connecting import connect
from balent.apps.cli.doctor import doctor
from balent.apps.cli.first_steps import first_steps
from balent.apps.cli.images import embed, simclr
from balent.apps.cli.labelling import label
from balent.apps.cli.listing import list_
from balent.apps.cli.picks import acquire
from balent.apps.cli.projects import ask, classes, export, predict, status, tell
from balent.apps.cli.runs import report, run
from balent.apps.cli.scores import score
from balent.apps.cli.studies import study
from balent.apps.cli.terminal import err, out, show

__all__ = ["app", "err", "out"]

# The order of --help: what people do first stands first. A new command takes its place here, and nowhere else.
PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Label data": (label, ask, tell, predict, status, export, classes),
    "Use a model or probabilities that you have": (acquire, score),
    "Compare strategies": (run, report, study),
    "Prepare, connect, look up": (embed, simclr, connect, doctor, list_),
}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Active learning with balanced entropy: of all that is not labelled yet, what should a person label next?",
    epilog="\n".join(["Start here:", "", *(f"  {line}" for line in first_steps())]),
)


def _version(asked: bool) -> bool:
    if asked:
        from importlib.metadata import version

        show(f"balent {version('balent')}")
        raise typer.Exit
    return asked


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that come before a command."""


def _help(command: Callable[..., None]) -> str:
    """The docstring, with the example of its first line on a line of its own, and paragraphs as wide as the screen."""
    first, *others = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    sentence, _, example = first.partition("  ")
    return "\n\n".join(
        [sentence, *([f"  {example}"] if example else []), *(text.replace("\n", " ") for text in others)]
    )


for panel, commands in PANELS.items():
    for command in commands:
        app.command(command.__name__.rstrip("_"), help=_help(command), rich_help_panel=panel)(command)
