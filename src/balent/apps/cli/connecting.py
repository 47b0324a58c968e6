"""balent connect: a project together with another labelling tool."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from balent.apps.cli.opened import opened
from balent.apps.cli.terminal import err, errors_in_words, say, show, stoppable

if TYPE_CHECKING:
    from balent.apps.connect.bridge import Bridge
    from balent.apps.connect.hearing import Heard
    from balent.apps.connect.task_data import Place
    from balent.project.project import Project

TOOLS = ("labelstudio",)
SHARE = 5  # between two looks at least this many times the time that a look takes
AWAY = 30.0  # seconds until the next try, if the server is away


def connect(
    tool: Annotated[str, typer.Argument(help="labelstudio.", metavar="TOOL")],
    path: Annotated[Path, typer.Argument(help="The data, or the project's folder.", metavar="PROJECT")],
    url: Annotated[str, typer.Option(help="The address of Label Studio.")] = "http://127.0.0.1:8080",
    token_file: Annotated[
        Path | None, typer.Option(help="A file with your token; else it is read from LABEL_STUDIO_TOKEN.")
    ] = None,
    project: Annotated[
        int | None, typer.Option(min=1, help="The number of a project there. Default: one is made, and found again.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of a new project there.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many questions are open after a round.")] = 20,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="With --watch: seconds between two looks.")] = 10.0,
    images: Annotated[
        str,
        typer.Option(
            help="Who serves images: serve (balent, with --watch), local (Label Studio's local files), or the URL "
            "by which annotators reach balent's server."
        ),
    ] = "serve",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of balent's server of images.")] = 8766,
    only_asked: Annotated[
        bool, typer.Option("--only-asked", help="Make tasks of the items that are asked only: for large data.")
    ] = False,
) -> None:
    """Label in another tool, in balent's order.  balent connect labelstudio photos --token-file token.txt

    Makes a project in Label Studio, sends the items and the order in which to label them, and reads the answers. The
    token is never an argument. The command can be stopped at any moment and repeated: nothing is told twice or lost.
    """
    from balent.apps.connect.bridge import Bridge
    from balent.apps.connect.http_json import Server
    from balent.apps.connect.labelstudio import LabelStudio
    from balent.apps.connect.secret_token import token
    from balent.project.log import held

    with errors_in_words(), stoppable():
        if tool not in TOOLS:
            raise ValueError(f"the tool must be {' or '.join(TOOLS)}, but is {tool!r}")
        server = Server(url, token(token_file))
        found = opened(path)
        if server.is_open:
            say(f"{url} is not encrypted: others on the way can read the token and the data; use https://")
        with held(found.path / "connect.lock", patience=1.0), _images(found, images, port, watch, server.url) as place:
            bridge = Bridge(found, LabelStudio(server), place, k, only_asked)
            new = bridge.connect(project, title)
            say(f"{'made' if new else 'found'} project {bridge.number} of {server.url}")
            if watch:
                _watch(bridge, every)
            else:
                _once(bridge)


@contextlib.contextmanager
def _images(project: "Project", images: str, port: int, watch: bool, url: str) -> Iterator["Place"]:
    """Where images are, and their server if there is one."""
    from balent.apps.connect.http_json import checked
    from balent.apps.connect.task_data import local_files

    if project.settings.kind != "images" or images == "local":
        yield local_files(project)
        return
    from balent.apps.connect.image_server import served_at, serving

    base = f"http://127.0.0.1:{port}" if images == "serve" else checked(images)
    if not watch:
        say("images are shown while balent serves them, so annotators need --watch (or give --images local)")
        yield served_at(project, base)
        return
    with serving(project, port, url) as real:
        base = f"http://127.0.0.1:{real}" if images == "serve" else base
        say(f"images are served at port {real}: whoever has the address of an image can see that image")
        yield served_at(project, base)


def _once(bridge: "Bridge") -> None:
    from balent.apps.cli import screen

    with screen.pace("features", err) as step:
        heard, ranked = bridge.sync(lambda done, of: step(done, of, ""))
    _say_problems(heard, set())
    if bridge.twice:
        say(f"{bridge.twice} items have more than one task there; answers to any of them count")
    show(escape(_line(bridge, heard.labels, heard.skips)))
    if ranked:
        say("the order is new: Label All Tasks shows the tasks in it")
    elif not bridge.is_more() and not bridge.project.state.pending:
        say("every item is labelled or skipped")


def _watch(bridge: "Bridge", every: float) -> None:
    """Looks again and again; one line says how it stands."""
    from balent.apps.connect.http_json import Away

    labels, skips, said = 0, 0, set[str]()
    with _status() as status, contextlib.suppress(KeyboardInterrupt):
        say("Ctrl-C ends this; every label that was read is on disk")
        while True:
            begun = time.monotonic()
            try:
                heard, _ = bridge.sync()
            except Away as away:
                status(f"{away}; trying again")
                time.sleep(max(every, min(AWAY, 3 * every)))
                continue
            labels, skips = labels + heard.labels, skips + heard.skips
            _say_problems(heard, said)
            status(_line(bridge, labels, skips))
            time.sleep(max(every, SHARE * (time.monotonic() - begun)))
    say(f"ended; every label that was read is on disk. How it stands: balent status {bridge.project.path}")


def _line(bridge: "Bridge", labels: int, skips: int) -> str:
    state = bridge.project.state
    return (
        f"{labels} labels and {skips} skips read; {len(state.labels()):,} of {len(bridge.project.items.present()):,} "
        f"items labelled, {len(state.pending)} questions open, {len(bridge.tasks):,} tasks"
    )


def _say_problems(heard: "Heard", said: set[str]) -> None:
    """Each once."""
    for problem in heard.problems:
        if problem not in said:
            say(problem)
    said |= {*heard.problems}


@contextlib.contextmanager
def _status() -> Iterator[Any]:
    """A function of a line: it changes in place on a terminal, and is written when it is another one elsewhere."""
    last = ""

    def line(text: str) -> None:
        nonlocal last
        if text != last:
            say(text)
        last = text

    if not err.is_terminal:
        yield line
        return
    with err.status("") as live:
        yield lambda text: live.update(escape(text))
