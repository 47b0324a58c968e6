"""Serving the page: a port, a worker, links, and a clean end.

One server per project: leases are in its memory, so two servers would ask two people the same items.
"""

import contextlib
import errno
import fcntl
import importlib.util
import logging
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from balent.apps.label.desk import Desk
from balent.apps.label.leases import SECONDS
from balent.apps.label.link import Link
from balent.apps.label.people import People
from balent.project.project import Project

PORT = 8765
NEXT = 20  # ports that are tried after it
LOCK = "page.lock"
PACKAGES = {"starlette": "Starlette", "uvicorn": "uvicorn", "PIL": "Pillow"}
NAME = re.compile(r"[A-Za-z0-9._-]+(:\d{1,5})?|\[[0-9A-Fa-f:]+\](:\d{1,5})?")  # of a host


@dataclass(frozen=True)
class Address:
    """Where the page is served.

    host        the address to listen at
    port        None: 8765, or the next one that is free
    names       names by which the page may be called from elsewhere
    proxy       whether X-Forwarded headers of a proxy are trusted
    """

    host: str = "127.0.0.1"
    port: int | None = None
    names: tuple[str, ...] = ()
    proxy: bool = False

    def url(self, port: int) -> str:
        """As a person opens it."""
        if self.names:
            return f"{'https' if self.proxy else 'http'}://{self.names[0]}" + ("" if self.proxy else f":{port}")
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{port}"

    @property
    def is_local(self) -> bool:
        """Can only this machine open it?"""
        return self.host in ("127.0.0.1", "localhost", "::1")

    def check(self) -> None:
        """Other machines are let in only by name."""
        for name in self.names:
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"--allowed-host must be a name such as labels.example.org, but is {name!r}; leave out http:// and "
                    "what follows the name"
                )
        if not self.is_local and not self.names:
            raise ValueError(
                f"--host {self.host} lets other machines in: also give the name by which they call this one, "
                "--allowed-host NAME"
            )


def check_installed() -> None:
    """The server's packages are an extra."""
    missing = [name for module, name in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise ImportError(
            f"the labelling page needs {' and '.join(missing)}; install it with: pip install 'balent[label]'"
        )


def serve(
    project: Project,
    people: list[str],
    address: Address,
    *,
    ready: Callable[[dict[str | None, str], str], None],
    lease: float = SECONDS,
) -> None:
    """Serves the page until somebody ends the process.

    people      names; each gets a link
    ready       is called when the page can be opened, with the links, and with one for a browser that works once
    lease       seconds after which the items of an idle tab are given to others
    """
    import uvicorn

    from balent.apps.label.server import application

    address.check()
    with alone(project.path, address) as listening, desk_with_worker(project, lease) as desk:
        port = listening.getsockname()[1]
        app = application(desk, known := People(project.path, people), port, address.names, proxy=address.proxy)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=address.proxy,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=2,
        )

        class Server(uvicorn.Server):
            """Ends at once, also if a request waits for the worker."""

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                desk.trainer.give_up()
                super().handle_exit(sig, frame)

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                """Requests that take longer than two seconds are cut off, which uvicorn reports as an error."""
                logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
                await super().shutdown(sockets)

        ready(known.links(address.url(port)), known.ticket(address.url(port)))
        with _quiet_end():
            Server(config).run(sockets=[listening])


@contextlib.contextmanager
def desk_with_worker(project: Project, lease: float = SECONDS) -> Iterator[Desk]:
    """A desk whose worker runs."""
    desk = Desk(project, lease=lease)
    link = Link(project.path, desk.heard, desk.worker_started, desk.worker_stopped)
    desk.trainer.send = link.send
    link.start()
    try:
        yield desk
    finally:
        with _uninterrupted():
            link.close()


@contextlib.contextmanager
def alone(folder: Path, address: Address) -> Iterator[socket.socket]:
    """A port, and the word that no other server is open over this project."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(handle, 200, 0).decode(errors="replace").strip()
            raise BlockingIOError(
                f"the page of {folder} is open already, at {other}; open the link that was printed there, or end it "
                "there with Ctrl-C"
            ) from None
        with bound(address) as listening:
            os.ftruncate(handle, 0)
            os.pwrite(handle, address.url(listening.getsockname()[1]).encode(), 0)
            yield listening
    finally:
        os.close(handle)


def bound(address: Address) -> socket.socket:
    """A socket at the port that was asked for, or at the next free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    first = PORT if address.port is None else address.port
    for port in range(first, first + (NEXT if address.port is None else 1)):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address.host, port))
            listening.listen(128)  # from here on no other server gets this port, and a browser may connect
        except (OSError, OverflowError) as error:
            listening.close()
            problem = error
        else:
            return listening
    raise OSError(f"the page cannot be served at {address.host}, port {first}: {_words(problem)}")


def _words(problem: Exception) -> str:
    """What is wrong with an address, and which option to change."""
    sentence = getattr(problem, "strerror", None) or str(problem).rstrip(".")
    elsewhere = isinstance(problem, socket.gaierror) or getattr(problem, "errno", None) == errno.EADDRNOTAVAIL
    return f"{sentence}; " + ("give an address of this machine: --host" if elsewhere else "give another one: --port")


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """Ctrl-C is how a server ends; uvicorn raises it again after a clean shutdown."""
    with contextlib.suppress(KeyboardInterrupt):
        yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not leave the worker behind, in a folder that may be removed next."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
