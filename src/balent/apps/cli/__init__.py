"""The command line: parse, call, print. torch is imported by the commands that need it, not by --help."""

from typing import Annotated

import typer

from balent.apps.cli.doctor import doctor
from balent.apps.cli.images import embed, simclr
from balent.apps.cli.labelling import label
from balent.apps.cli.listing import list_
from balent.apps.cli.picks import acquire
from balent.apps.cli.projects import COMMANDS
from balent.apps.cli.runs import report, run
from balent.apps.cli.scores import score
from balent.apps.cli.studies import study
from balent.apps.cli.terminal import err, out, show

__all__ = ["app", "err", "out"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Active learning with balanced entropy: of all that is not labelled yet, what should a person label next?",
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


for command in (label, *COMMANDS, doctor, score, acquire, run, report, embed, simclr, study):
    app.command()(command)
app.command(name="list")(list_)
