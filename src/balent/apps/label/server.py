"""The server: routes of the page. Each handler reads a request, calls the desk, and answers; the guard comes first."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from balent.apps.label import said
from balent.apps.label.desk import Desk
from balent.apps.label.guard import Guard, Json, error
from balent.apps.label.history import SHOW, history
from balent.apps.label.media import SIZES, of_item
from balent.apps.label.people import People
from balent.apps.label.said import Refused

STATIC = Path(__file__).with_name("static")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
VIEWS = ("/", "/grid", "/history", "/progress", "/classes", "/resolve")
FILES = {"csv": "csv", "jsonl": "jsonl", "labelstudio": "json", "doccano": "jsonl"}
ACTIONS = ("add", "rename", "merge", "describe")
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
Handler = Callable[[Request], Response]


def application(desk: Desk, people: People, port: int, hosts: tuple[str, ...] = (), *, proxy: bool = False) -> Guard:
    """The page over a desk.

    people      who may use it
    port        the one that it is served at
    hosts       names by which it may be called from elsewhere
    proxy       whether a proxy in front of it is trusted
    """
    handlers = Handlers(desk)
    app = Starlette(
        routes=[
            *(Route(path, handlers.page) for path in VIEWS),
            Route("/static/{name}", handlers.static),
            Route("/media/{item}", handlers.media),
            Route("/api/next", handlers.next),
            Route("/api/event", handlers.event, methods=["POST"]),
            Route("/api/leave", handlers.leave, methods=["POST"]),
            Route("/api/status", handlers.status),
            Route("/api/grid", handlers.grid),
            Route("/api/history", handlers.history),
            Route("/api/disagreements", handlers.disagreements),
            Route("/api/classes", handlers.classes, methods=["POST"]),
            Route("/api/export", handlers.export),
        ],
        exception_handlers={Refused: _refused, OSError: _failed, ValueError: _failed, 404: _missing, 405: _missing},
    )
    return Guard(app, people, port, hosts, proxy)


class Handlers:
    """One method per route. They run in threads, so a slow one keeps no other waiting."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "page.html", media_type="text/html")

    def static(self, request: Request) -> Response:
        """Only files of the folder, by their names."""
        known = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
        path = known.get(request.path_params["name"])
        if path is None:
            raise Refused(404, "there is no such file")
        return FileResponse(path, media_type=TYPES[path.suffix], headers={"Cache-Control": "no-cache"})

    def media(self, request: Request) -> Response:
        """A picture by the number of its item, never by a path."""
        name, size = request.path_params["item"], request.query_params.get("size", "screen")
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1
        if self.desk.project.settings.kind != "images" or not 0 <= number < len(self.desk.project.items):
            raise Refused(404, "there is no such picture")
        if size not in SIZES:
            raise Refused(422, f"size must be one of {', '.join(SIZES)}")
        content, kind = of_item(self.desk.project, number, size)
        return Response(content, media_type=kind, headers=FOREVER)

    def next(self, request: Request) -> Response:
        tab = said.tab(request.query_params.get("tab"))
        n = said.count(request.query_params.get("n"), 8, 24)
        return Json(self.desk.next(tab, _who(request), n, _page(request)))

    def event(self, request: Request) -> Response:
        found = said.said(request.scope["balent.body"], _who(request))
        self.desk.answer(found, _who(request))
        return Json({"ok": True, "id": found.id})

    def leave(self, request: Request) -> Response:
        self.desk.leave(*said.left(request.scope["balent.body"]))
        return Json({"ok": True})

    def status(self, request: Request) -> Response:
        tab = request.query_params.get("tab", "")
        return Json(self.desk.status(tab, _who(request)) | {"formats": self._formats()})

    def grid(self, request: Request) -> Response:
        tab, name = said.tab(request.query_params.get("tab")), request.query_params.get("class", "")
        n = said.count(request.query_params.get("n"), 24, 24)
        given = filter(None, request.query_params.get("without", "").split(","))
        without = [said.count(number, 0, 10**9) for number in given]
        return Json(self.desk.grid(tab, _who(request), name, n, without, _page(request)))

    def history(self, request: Request) -> Response:
        show = request.query_params.get("show", "all")
        if show not in SHOW:
            raise Refused(422, f"show must be one of {', '.join(SHOW)}")
        first = said.count(request.query_params.get("from"), 0, 10**9)
        n = said.count(request.query_params.get("n"), 60, 200)
        return Json(history(self.desk, _who(request), dict(request.query_params), first, n))

    def disagreements(self, request: Request) -> Response:
        return Json(self.desk.disagreements())

    def classes(self, request: Request) -> Response:
        body = request.scope["balent.body"]
        if not isinstance(body, dict) or body.get("action") not in ACTIONS:
            raise Refused(422, f"action must be one of {', '.join(ACTIONS)}")
        fields = {name: said.text(body.get(name, ""), name, said.LONGEST) for name in ("name", "to")}
        some = {name: said.text(body[name], name, said.LONGEST) if name in body else None for name in ("key", "note")}
        self.desk.change_classes(body["action"], fields["name"], fields["to"], some["key"], some["note"])
        return Json(self.desk.status("", _who(request)))

    def _formats(self) -> list[str]:
        """Doccano has texts and images only."""
        shown = self.desk.project.settings.kind in ("images", "text")
        return [format for format in FILES if shown or format != "doccano"]

    def export(self, request: Request) -> Response:
        """Labels as a file to download."""
        format = request.query_params.get("format", "csv")
        if format not in self._formats():
            raise Refused(422, f"format must be one of {', '.join(self._formats())}")
        with tempfile.TemporaryDirectory() as folder, self.desk.lock:
            path = Path(folder) / f"labels.{FILES[format]}"
            self.desk.project.export(format, path)
            content = path.read_bytes()
        name = f'attachment; filename="labels-{format}.{FILES[format]}"'
        return Response(content, media_type="application/octet-stream", headers={"Content-Disposition": name})


def _who(request: Request) -> str | None:
    found: str | None = request.scope["balent.who"]
    return found


def _page(request: Request) -> int:
    """When the page was opened, in milliseconds."""
    return said.count(request.query_params.get("page"), 0, 10**15)


def _refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return error(refused.status, refused.sentence)


def _failed(request: Request, failed: Exception) -> Response:
    """A full disk or a damaged journal: nothing was recorded, and the page tries again."""
    return error(503, str(failed))


def _missing(request: Request, missing: Any) -> Response:
    return error(missing.status_code, "there is nothing here")
