"""Images for a page of another origin: by addresses that cannot be guessed, re-encoded, and nothing else.

The labelling page serves images to its own page only, by a cookie that other sites do not get. An annotator of Label
Studio has no such cookie. So the address itself is the secret: it has a code made of the item, its content and the
secret of this project. Whoever has the address of an image can see that image, and no other. The server listens on
this machine only; a proxy in front of it lets others in. No torch here.
"""

import contextlib
import hashlib
import hmac
import importlib.util
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from balent.apps.connect.task_data import Place
from balent.apps.label.media import of_item
from balent.apps.label.people import NAME, secret_of
from balent.apps.label.said import Refused
from balent.project.project import Project

PATH = re.compile(r"/media/(\d{1,9})/([0-9a-f]{32})")
SECONDS = 20.0  # for a request
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


def code(project: Project, number: int) -> str:
    """What the address of an image ends with. A changed file has another address."""
    about = f"connect {number} {project.items[number].fingerprint}"
    return hmac.new(secret_of(project.path / NAME), about.encode(), hashlib.sha256).hexdigest()[:32]


def served_at(project: Project, base: str) -> Place:
    """Images as the server below gives them, with the address by which annotators reach it."""
    return lambda number: f"{base}/media/{number}/{code(project, number)}"


@contextlib.contextmanager
def serving(project: Project, port: int, origin: str) -> Iterator[int]:
    """Serves images in the background; gives the port.

    origin      the page that may read the pixels, as http://127.0.0.1:8080
    """
    if importlib.util.find_spec("PIL") is None:
        raise ImportError("to serve images needs Pillow; install it with: pip install 'balent[images]'")
    handler = type("Handler", (Images,), {"project": project, "origin": _origin(origin)})
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or error
        raise OSError(f"images cannot be served at port {port}: {words}; give another one: --port") from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class Images(BaseHTTPRequestHandler):
    """Answers GET and HEAD of one kind of address."""

    project: Project
    origin: str
    timeout = SECONDS
    server_version, sys_version = "balent", ""

    def do_GET(self) -> None:
        try:
            content, kind = self._image()
        except Refused as refused:
            self._send(refused.status, refused.sentence.encode(), "text/plain; charset=utf-8")
        except Exception:  # a full disk, say: no path and no traceback leaves the machine
            self._send(503, b"this image cannot be shown now", "text/plain; charset=utf-8")
        else:
            self._send(200, content, kind)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: addresses are secrets."""

    def _image(self) -> tuple[bytes, str]:
        found = PATH.fullmatch(self.path)
        project, number = self.project, int(found[1]) if found else -1
        if found is None or number >= len(project.items) or not hmac.compare_digest(code(project, number), found[2]):
            raise Refused(404, "there is no such picture")
        return of_item(project, number, "screen")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        with contextlib.suppress(OSError):  # a browser that does not wait
            self.send_response(status)
            about = {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Access-Control-Allow-Origin": self.origin,
            }
            good = {"Cache-Control": "private, max-age=86400" if status == 200 else "no-store"}
            for name, value in {**HEADERS, **about, **good}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
