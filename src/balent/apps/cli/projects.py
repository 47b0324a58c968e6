"""balent ask, tell, predict, status, export and classes: a labelling project without writing Python."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from balent.apps.cli.creation import (
    Duplicates,
    Elsewhere,
    Features,
    FollowLinks,
    Id,
    Ids,
    Model,
    Moved,
    Seed,
    Strategy,
    Text,
)
from balent.apps.cli.opened import Wanted, opened, opened_or_made
from balent.apps.cli.overview import overview
from balent.apps.cli.terminal import err, errors_in_words, say, show, show_table, stoppable, wrote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from balent.project.items import Changes
    from balent.project.project import Project
    from balent.project.questions import Item

FEW = 3  # of a long list
Where = Annotated[Path, typer.Argument(help="The data, or the project's folder.", metavar="PROJECT")]


def ask(
    path: Where,
    k: Annotated[int, typer.Option("-k", min=1, help="How many items to ask.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a .csv or .jsonl instead of a table; - is a CSV.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="New project: class names, separated by commas.")] = None,
    text: Text = None,
    id: Id = None,
    target: Annotated[str | None, typer.Option(help="New project: a column with labels that are known.")] = None,
    features: Features = None,
    ids: Ids = None,
    model: Model = None,
    strategy: Strategy = None,
    seed: Seed = None,
    audit: Annotated[
        int | None, typer.Option(help="New project: one in how many questions is a random check. Default: 5; 0: none.")
    ] = None,
    overlap: Annotated[int | None, typer.Option(help="New project: how many people answer a random check.")] = None,
    duplicates: Duplicates = None,
    follow_links: FollowLinks = None,
    goal: Annotated[float | None, typer.Option(help="New project: the accuracy to reach, such as 0.95.")] = None,
    pending: Annotated[
        bool, typer.Option("--pending", help="Repeat all unanswered items instead of asking new ones.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not compute features: ask random checks until they are there.")
    ] = False,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """Ask which items to label next.  balent ask photos --classes cat,dog -k 20 -o ask.csv

    Data without a project get one beside them: photos.balent for photos, tickets.balent for tickets.csv. Fill in a
    column `label` of the file, then: balent tell photos.balent ask.csv. Asking again gives new items.
    """
    names = (classes, text, id, target, features, ids, model, strategy, seed, audit, overlap, duplicates)
    with errors_in_words(), stoppable():
        found = opened_or_made(path, Wanted(*names, follow_links, goal), project, data)
        _look(found)
        items = found.pending() if pending else _asked(found, k, wait=not no_wait)
        _write_questions(found, items, output)


def tell(
    path: Where,
    answers: Annotated[
        Path, typer.Argument(help="A CSV, TSV or JSONL with columns id and label; or the export of another tool.")
    ],
    who: Annotated[str | None, typer.Option(help="Who answered, if the file has no column who.")] = None,
    add_classes: Annotated[
        bool, typer.Option("--add-classes", help="Add classes that are not known, instead of refusing the file.")
    ] = False,
    resolve: Annotated[bool, typer.Option("--resolve", help="Decide items that people disagree on.")] = False,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """Record answers.  balent tell photos.balent answers.csv --who ann

    Columns are id, label, and, if you like, who, skip, seconds and note; others are ignored. An empty label is
    unanswered. Items need not have been asked. If one line is refused, nothing of the file is recorded. Exports of
    Label Studio (JSON), doccano, CVAT (ImageNet) and Argilla are read as they are.
    """
    from balent.project import tool_files
    from balent.project.telling import apply

    with errors_in_words(), stoppable():
        found = opened(path, project, data)
        lines = tool_files.read(answers, found)
        told = apply(found, lines, who, add_classes=add_classes, resolve=resolve, source=str(answers))
        show(escape(str(told)))


def predict(
    path: Where,
    new: Annotated[
        Path | None, typer.Argument(help="Other data of the same kind; else all items of the project.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The CSV to write. Default: predictions.csv in the project.")
    ] = None,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """Predict the class of every item.  balent predict photos.balent -o predictions.csv

    The columns are id, label, probability, uncertainty (0 is certain, 1 a guess) and given, the label that a person
    gave. The model is trained on all labels; it is kept in the project for use elsewhere.
    """
    from balent.apps.cli import screen

    with errors_in_words(), stoppable():
        if new is not None and output is None:
            raise ValueError(f"name the file to write: balent predict {path} {new} -o FILE.csv")
        found = opened(path, project, data)
        _look(found)
        with screen.pace("features", err) as step:
            lines = found.predict(output, data=new, progress=lambda done, of: step(done, of, ""))
        if new is None:
            _say_left_out(found, found.unreadable())
        wrote(output or found.path / "predictions.csv")
        say(f"{len(lines)} predictions; how good they are: balent status {found.path}")


def status(
    path: Where,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with lists in full.")] = False,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """Show labels, accuracy with its interval, and advice.  balent status photos.balent

    Accuracy is counted on random checks only, by models that have not seen them; it takes a few fits after new labels.
    """
    from balent.apps.cli import screen

    with errors_in_words(), stoppable():
        found = opened(path, project, data)
        with screen.pace("models", err) as step:
            standing = found.status(progress=lambda done, of: step(done, of, ""))
        if as_json:
            typer.echo(json.dumps(standing, indent=2))
        else:
            for line in overview(str(found.path), _near(found.settings.place(found.path)), standing):
                show(escape(line))


def export(
    path: Where,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write; for images by class a folder. Default: exports/ in the project."
        ),
    ] = None,
    format: Annotated[
        str, typer.Option(help="csv, jsonl, labelstudio, doccano, argilla, cvat, folders or imagenet.")
    ] = "csv",
    everything: Annotated[bool, typer.Option("--all", help="Unlabelled items too (files only).")] = False,
    links: Annotated[bool, typer.Option("--links", help="Links to images instead of copies.")] = False,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """Write labels for other tools.  balent export photos.balent --format folders -o by-class

    A second export to the same place replaces the first. Other files are never replaced by folders.
    """
    from balent.project import exports

    with errors_in_words(), stoppable():
        found = opened(path, project, data)
        place = exports.place(found, format) if output is None else output
        lines = exports.export(found, format, place, everything=everything, links=links)
        for line in exports.left_out(found):
            say(line)
        wrote(place)
        say(f"{len(lines)} items")


def classes(
    path: Where,
    add: Annotated[list[str] | None, typer.Option(help="NAME of a new class.")] = None,
    rename: Annotated[list[str] | None, typer.Option(help="OLD=NEW: another name.")] = None,
    merge: Annotated[list[str] | None, typer.Option(help="A=B: labels of A become labels of B.")] = None,
    note: Annotated[list[str] | None, typer.Option(help="NAME=TEXT: a note on what belongs to a class.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="NAME=K: the key for a class on the labelling page.")] = None,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """List, add, rename and merge classes.  balent classes photos.balent --rename cat=cats --add bird

    Every option can be given several times. Labels follow their class.
    """
    with errors_in_words(), stoppable():
        found = opened(path, project, data)
        for name in add or ():
            found.add_class(name)
        for pair in rename or ():
            found.rename_class(*_pair(found, pair))
        for pair in merge or ():
            found.merge_classes(*_pair(found, pair))
        for pair in note or ():
            found.describe_class(_pair(found, pair)[0], note=_pair(found, pair)[1])
        for pair in key or ():
            found.describe_class(_pair(found, pair)[0], key=_pair(found, pair)[1])
        _show_classes(found)


# ── how ──────────────────────────────────────────────────────────────────────────────────────────────


def _look(project: "Project") -> None:
    """Looks for new, renamed, changed and removed items, and says what it found."""
    from balent.apps.cli import screen

    with screen.pace("items", err) as step:
        changes = project.refresh(progress=lambda done, of: step(done, of, ""))
    if line := _changes(changes):
        say(line)
    _say_left_out(project, project.kind.skipped)


def _say_left_out(project: "Project", reasons: "Mapping[str, str]") -> None:
    """Names the first items that cannot be used."""
    for id, reason in [*reasons.items()][:FEW]:
        say(f"{id} is left out: {reason}")
    if (more := len(reasons) - FEW) > 0:
        say(f"{more} more are left out; balent status {project.path} --json lists all")


def _changes(changes: "Changes") -> str:
    counts = {name: len(getattr(changes, name)) for name in ("new", "renamed", "changed", "removed")}
    return ", ".join(f"{count} {name} item{'' if count == 1 else 's'}" for name, count in counts.items() if count)


def _asked(project: "Project", k: int, *, wait: bool) -> list["Item"]:
    from balent.apps.cli import screen
    from balent.project import asking

    if wait:
        with screen.pace("features", err) as step:
            project.compute_features(progress=lambda done, of: step(done, of, ""))
        _say_left_out(project, project.unreadable())
    return asking.ask(project, k)


def _write_questions(project: "Project", items: list["Item"], output: Path | None) -> None:
    from balent.project.exchange import write_questions

    if output is None:
        show_table(
            ["rank", "id", "guess", "probability", "why"],
            ([i.rank, i.id, i.guess or "", "" if i.probability is None else i.probability, i.why] for i in items),
        )
        say(f"to a file: balent ask {project.path} --pending -o ask.csv")
        return
    try:
        write_questions(items, output)
    except OSError:
        say(f"the questions are kept; write them to another file: balent ask {project.path} --pending -o FILE")
        raise
    wrote(output)
    say(f"{len(items)} items; fill in a column label, then: balent tell {project.path} {output}")


def _near(place: Path) -> str:
    """A path as one would type it here."""
    near = os.path.relpath(place)
    return str(place) if near.startswith("..") else near


def _pair(project: "Project", text: str) -> tuple[str, str]:
    """NAME=TEXT: the name is that of a class, so both parts may have a = in them."""
    cuts = [i for i, character in enumerate(text) if character == "="]
    found = [(text[:i], text[i + 1 :]) for i in cuts if text[:i] in project.state.classes]
    if found:
        return found[-1]
    if not cuts:
        raise ValueError(f"NAME=TEXT was expected, but {text!r} has no =")
    project.state.classes.number(text[: cuts[0]])
    raise AssertionError("a class that is not known is refused")


def _show_classes(project: "Project") -> None:
    from collections import Counter

    looks = {look.name: look for look in project.settings.classes}
    counts = Counter(project.state.labels().values())
    rows = [
        [name, counts[number], looks[name].key if name in looks else "", looks[name].note if name in looks else ""]
        for name, number in project.state.classes.names().items()
    ]
    show_table(["class", "labels", "key", "note"], rows)
