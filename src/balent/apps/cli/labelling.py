"""balent label: the labelling page."""

from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from balent.apps.cli.creation import (
    Duplicates,
    Elsewhere,
    Features,
    Id,
    Ids,
    Model,
    Moved,
    Seed,
    Strategy,
    Text,
)
from balent.apps.cli.opened import Wanted, home, is_project, made, opened_or_made
from balent.apps.cli.terminal import errors_in_words, say, show, stoppable

if TYPE_CHECKING:
    from balent.apps.label.serving import Address
    from balent.project.project import Project


def label(
    path: Annotated[
        Path | None, typer.Argument(help="The data, or the project's folder.", metavar="DATA", show_default=False)
    ] = None,
    classes: Annotated[str | None, typer.Option(help="Class names, separated by commas; more can be added.")] = None,
    text: Text = None,
    id: Id = None,
    target: Annotated[
        str | None,
        typer.Option(help="The accuracy to reach, such as 0.95; or the column with labels that are known."),
    ] = None,
    features: Features = None,
    ids: Ids = None,
    model: Model = None,
    strategy: Strategy = None,
    seed: Seed = None,
    audit: Annotated[
        int | None,
        typer.Option(min=0, help="One in how many questions is a random check. Default: 5; 1: all, 0: none."),
    ] = None,
    overlap: Annotated[int | None, typer.Option(min=1, help="How many people answer each random check.")] = None,
    duplicates: Duplicates = None,
    follow_links: Annotated[
        bool | None, typer.Option("--follow-links", help="Include links in a folder of images.")
    ] = None,
    people: Annotated[str | None, typer.Option(help="Names, separated by commas; each person gets a link.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port. Default: 8765, or the next free one.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; by default this machine only.")] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A name by which other machines call this one; may be repeated.")
    ] = None,
    proxy: Annotated[bool, typer.Option("--proxy", help="A proxy with TLS is in front: trust its headers.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Try the page with pictures that come with balent.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link only.")] = False,
    project: Elsewhere = None,
    data: Moved = None,
) -> None:
    """Label in the browser, with single key presses.  balent label photos --classes cat,dog

    Data without a project get one beside them. The page asks for the most useful items while the model learns from
    what you label. Every label is on disk at once; Ctrl-C ends the page, and the same command opens it again.
    """
    goal = _goal(target)
    column = None if goal is not None else target
    new = {"audit": audit, "overlap": overlap, "goal": goal, "follow_links": follow_links}
    changes = {name: value for name, value in new.items() if value is not None}
    names = (classes, text, id, column, features, ids, model, strategy, seed)
    with errors_in_words(), stoppable():
        from balent.apps.label.demo import CLASSES, pictures
        from balent.apps.label.people import checked
        from balent.apps.label.serving import Address, check_installed, serve

        check_installed()
        if (path is None) != demo:
            raise ValueError(
                "name the data: balent label photos --classes cat,dog; or try the page: balent label --demo"
            )
        given = checked([name.strip() for name in (people or "").split(",") if name.strip()])
        address = Address(host, port, tuple(allowed_host or ()), proxy)
        address.check()
        wanted = Wanted(*names, duplicates=duplicates)
        with pictures() if demo else nullcontext(Path(path or "")) as place:
            asked = replace(wanted, classes=CLASSES) if demo else wanted
            found = _project(place, asked, changes, project, data)
            if demo:
                say("these pictures are for trying the page: they are removed at the end, and so are their labels")
            say(f"{found.path}: {len(found.items.present()):,} items, {len(found.state.last):,} labelled")
            show_links = partial(_show, address=address, browser=not no_browser)
            serve(found, given, address, ready=show_links)
        say(f"ended; every label is on disk. How it stands: balent status {found.path}" if not demo else "ended")


def _project(path: Path, wanted: Wanted, changes: dict[str, Any], project: Path | None, data: Path | None) -> "Project":
    """Opens or makes the project. What may change from one session to the next is changed."""
    folder = home(path, project)
    if not is_project(folder):
        return made(path, folder, replace(wanted, **changes))
    found = opened_or_made(path, wanted, project, data)
    if changes:
        found.change(**changes)
    return found


def _goal(target: str | None) -> float | None:
    """The accuracy to reach, if that is what --target is."""
    try:
        value = float(target or "")
    except ValueError:
        return None
    if not 0 < value < 1:
        raise typer.BadParameter(
            f"the accuracy to reach must be between 0 and 1, but is {target}; for 95 % give 0.95",
            param_hint="--target",
        )
    return value


def _show(links: dict[str | None, str], ticket: str, *, address: "Address", browser: bool) -> None:
    for who, link in links.items():
        show(f"{who}: {link}" if who else f"open {link}")
    if not address.is_local and not address.proxy:
        say(
            "this page is open to other machines, without encryption: anybody on the way can read links and data. Put "
            "a proxy with TLS in front, such as caddy reverse-proxy --from NAME --to 127.0.0.1:PORT, and give --proxy"
        )
    say("Ctrl-C ends the page; every label is on disk at once")
    if browser and len(links) == 1:
        _open(ticket)


def _open(link: str) -> None:
    """Opens a browser if there is one with windows: one in the terminal would keep the server waiting."""
    import os
    import threading
    import webbrowser

    with suppress(webbrowser.Error):
        in_terminal = type(webbrowser.get()) is webbrowser.GenericBrowser
        if not in_terminal or "BROWSER" in os.environ:
            threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
