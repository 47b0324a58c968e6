"""Options that several commands of a project share: which project, and the settings of a new one."""

from pathlib import Path
from typing import Annotated

import typer

Elsewhere = Annotated[
    Path | None, typer.Option("--project", help="The project's folder, if it is not beside the data.")
]
Moved = Annotated[Path | None, typer.Option("--data", help="Where the data are now, if they have moved.")]

Text = Annotated[str | None, typer.Option(help="New project: the column with the texts.")]
Id = Annotated[str | None, typer.Option(help="New project: the column with the ids.")]
Features = Annotated[
    str | None,
    typer.Option(help="New project: a backbone, tfidf, the folder of a sentence model, or an .npy with --ids."),
]
Ids = Annotated[Path | None, typer.Option(help="New project: a file with an id per row of an .npy.")]
Model = Annotated[str | None, typer.Option(help="New project: FILE.py:FACTORY of a model of your own.")]
Strategy = Annotated[str | None, typer.Option(help="New project: the strategy that chooses items; see balent list.")]
Seed = Annotated[int | None, typer.Option(help="New project: the seed of all random choices.")]
Duplicates = Annotated[
    str | None, typer.Option(help="New project: once (equal items are labelled once, the default) or keep.")
]
FollowLinks = Annotated[
    bool | None, typer.Option("--follow-links", help="New project: follow links in a folder of images.")
]
