"""balent doctor: a project, or a model and its pool, looked over before anybody labels."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from balent.apps.cli.creation import Elsewhere
from balent.apps.cli.opened import opened
from balent.apps.cli.terminal import errors_in_words, show, stoppable

if TYPE_CHECKING:
    from balent.apps.doctor.patient import Evidence


def doctor(
    subject: Annotated[str, typer.Argument(help="A project or its data; or a MODEL, as for balent acquire.")],
    pool: Annotated[str | None, typer.Argument(help="With a MODEL: its pool, as for balent acquire.")] = None,
    labelled: Annotated[
        str | None,
        typer.Option(
            help="With a MODEL: labelled points that it was not trained on; an .npz with x and y, or FILE.py:FACTORY."
        ),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", "-s", help="With a MODEL: the strategy you plan. Default: auto.")
    ] = None,
    draws: Annotated[str | None, typer.Option(help="With a MODEL: how many draws. Default: 100.")] = None,
    column: Annotated[str | None, typer.Option(help="With a MODEL: which column of shards, which array.")] = None,
    key: Annotated[str | None, typer.Option(help="With a MODEL: the column of shards that identifies a point.")] = None,
    size: Annotated[int | None, typer.Option(help="With a MODEL: pixels per side of images. Default: 224.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many labels per round you plan.")] = 20,
    labels: Annotated[int, typer.Option(min=1, help="How many labels you plan in all.")] = 500,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    project: Elsewhere = None,
) -> None:
    """Look a project over before labelling, or a model before a run.  balent doctor photos.balent

    A line for each check: its number, and what to do. Nothing is written. The exit code is 1 if something would spoil
    the run, such as a model without dropout.
    """
    from balent.apps.doctor import sheet
    from balent.apps.doctor.examination import findings
    from balent.apps.doctor.patient import Patient

    with errors_in_words(), stoppable():
        wishes = {
            "labelled": labelled,
            "strategy": strategy,
            "draws": draws,
            "column": column,
            "key": key,
            "size": size,
        }
        _check(pool, project, {name: value for name, value in wishes.items() if value is not None})
        evidence = _project(subject, project) if pool is None else _model(subject, pool, wishes)
        found = [*findings(Patient(evidence, k=k, goal=labels))]
        title = subject if pool is None else f"{subject} on {pool}"
        if as_json:
            typer.echo(json.dumps(sheet.as_json(title, found), indent=2))
        else:
            for line in sheet.lines(title, found):
                show(line)
        if sheet.spoils(found):
            raise typer.Exit(1)


def _check(pool: str | None, project: Path | None, wishes: dict[str, Any]) -> None:
    """Refuses options of the other form."""
    if pool is None and wishes:
        raise ValueError(f"--{next(iter(wishes))} belongs to a model and its pool: balent doctor MODEL POOL")
    if pool is not None and project is not None:
        raise ValueError("--project belongs to a project: balent doctor PROJECT")


def _project(subject: str, elsewhere: Path | None) -> "Evidence":
    from balent import by_name
    from balent.apps.doctor.of_project import OfProject

    if by_name.is_name(subject) and not Path(subject).exists():
        raise ValueError(f"a model needs a pool: balent doctor {subject} POOL")
    return OfProject(opened(Path(subject), elsewhere))


def _model(name: str, pool: str, wishes: dict[str, Any]) -> "Evidence":
    from balent.acquisition import loading
    from balent.apps.doctor import of_model

    strategy = wishes["strategy"] or "auto"
    draws = wishes["draws"] or "100"
    sampled = loading.sampled(name, draws, strategy, seed=0, masks="auto", design="independent")
    points = loading.pool(pool, wishes["column"], wishes["key"], size=wishes["size"] or 224)
    labelled = None if wishes["labelled"] is None else of_model.opened(wishes["labelled"])
    return of_model.OfModel(sampled, points, strategy, labelled)
