"""A real browser over a real server, for tests of the labelling page."""

import contextlib
import shutil
import socket
import threading
import time

import pytest

from balent.apps.label.people import People
from balent.apps.label.server import application
from helpers.labelling_page import desk_of

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 120_000  # ms, for a busy machine: a test that waits for longer would wait forever


class Running:
    """The page of a desk at a port of this machine. It can be stopped and started again at the same port."""

    def __init__(self, desk, names=()):
        self.desk, self.names = desk, names
        with contextlib.closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.home = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        import uvicorn

        people = People(self.desk.project.path, self.names)
        self.links = people.links(self.home)
        app = application(self.desk, people, self.port)
        config = uvicorn.Config(app, port=self.port, log_level="error", ws="none", lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self):
        """Answers what has arrived: a response that is cut off leaves its file open, and a later test fails of it."""
        self.server.should_exit = True
        self.thread.join()


@contextlib.contextmanager
def running(project, names=(), clock=None, **more):
    """A server over a project whose model is not ready: questions are random checks, or what a test proposes.

    Its clock stands still, so that no lease ends before a test says so.
    """
    desk = desk_of(project, clock, **more)
    desk.heard({"said": "features", "done": 0, "of": 1})
    server = Running(desk, names)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def chromium():
    """A browser; without one the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("the labelling page is tested in Debian's chromium, which is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Tab:
    """A tab with the page, as a person uses it."""

    def __init__(self, page):
        self.page, self.problems, self.requests = page, [], []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def item(self):
        """The number of the item that is shown, once there is one."""
        return int(self.page.wait_for_selector("#item[data-item]", timeout=PATIENCE).get_attribute("data-item"))

    def view(self, path):
        """Goes to another view, and waits until it shows something."""
        home = "/".join(self.page.url.split("/")[:3])
        self.page.goto(home + path)
        self.page.wait_for_selector("body:not([data-state=starting]) main > *")

    def press(self, key):
        """Presses a key; returns the item that was shown before."""
        before = self.item()
        self.page.keyboard.press(key)
        return before

    def stand_still(self):
        """Ends what the page does by itself every few seconds: on a busy machine it may come at any point of a test."""
        self.page.evaluate("for (let timer = 1; timer < 1000; timer += 1) clearInterval(timer)")

    def sent(self):
        """Waits until the server has everything."""
        self.until("document.body.dataset.unsent === '0'")

    def until(self, condition):
        self.page.wait_for_function(condition, timeout=PATIENCE)
