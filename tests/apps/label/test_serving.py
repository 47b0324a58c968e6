"""`balent label` as people run it: it starts, is ended, is killed and is started again, and loses nothing."""

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import time
import webbrowser

import pytest
from helpers.labelling import CLASSES, clusters
from helpers.labelling_page import event, journal, named

from balent import Project
from balent.apps.cli import labelling

PATIENCE = 180.0  # seconds, for a busy machine; a start takes two
MAKE = ("--ids", "ids.txt", "--classes", ",".join(CLASSES))


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def command(*words, before=""):
    return [sys.executable, "-c", f"{before}from balent.apps.cli import app; app()", "label", *map(str, words)]


class Page:
    """A server in a process of its own, and a browser that has opened its first link."""

    def __init__(self, folder, *words, port=None, cookie=None, before=""):
        self.port, self.errors = port or free_port(), folder / f"errors-{time.monotonic_ns()}.txt"
        with open(self.errors, "w") as errors:
            line = command("rows.npy", "--no-browser", "--port", self.port, *words, before=before)
            self.process = subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.links = [self._link()]
        self.cookie = cookie or self._open()

    def _link(self):
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, (line, self.errors.read_text())
        return found.group()

    def _open(self):
        status, headers, _ = self.call("GET", self.links[0].partition(str(self.port))[2], cookie="")
        assert status == 303
        return headers["set-cookie"].partition(";")[0]

    def call(self, method, path, body=None, cookie=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Cookie": self.cookie if cookie is None else cookie}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        try:
            for _ in range(500):
                try:
                    connection.connect()
                    break
                except ConnectionRefusedError:  # the link is printed a moment before
                    time.sleep(0.01)
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, content = self.call("GET", path)
        assert status == 200, content
        return json.loads(content)

    def say(self, body):
        status, _, content = self.call("POST", "/api/event", body)
        assert status == 200, content
        return body

    def children(self):
        """The worker."""
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code, self.errors.read_text()


@pytest.fixture
def start(tmp_path):
    """Starts `balent label rows.npy`."""
    clusters(tmp_path)
    pages = []

    def page(*words, **more):
        pages.append(Page(tmp_path, *words, **more))
        return pages[-1]

    yield page
    for one in pages:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def until(done):
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    assert done()


def test_the_page_opens_and_ctrl_c_ends_it_quietly(start, tmp_path):
    page = start(*MAKE)
    assert page.get("/api/next?tab=a&n=4")["items"], "at once, with random checks"
    assert b"<!doctype html>" in page.call("GET", "/")[2].lower()
    workers = page.children()
    page.say(event("label", page.get("/api/next?tab=a&n=4")["items"][0]["item"], label="cat"))

    other = subprocess.run(
        command("rows.npy", "--no-browser"), cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert other.returncode == 2
    assert f"open already, at http://127.0.0.1:{page.port}" in other.stderr
    assert "Traceback" not in other.stderr

    code, errors = page.end()
    assert (code, "Traceback" in errors, "ended; every label is on disk" in errors) == (0, False, True), errors
    assert "token" not in errors
    until(lambda: not any(is_alive(pid) for pid in workers))
    assert len(named(Project(tmp_path / "rows.balent"), "label")) == 1


def test_a_server_that_was_killed_has_every_acknowledged_label_once_and_knows_its_cookie(start, tmp_path):
    page = start(*MAKE)
    said = []
    for item in page.get("/api/next?tab=a&n=6")["items"]:
        said.append(page.say(event("label", item["item"], label="dog", tab="a")))
    until(page.children)
    workers = page.children()
    page.end(signal.SIGKILL)
    until(lambda: not any(is_alive(pid) for pid in workers))  # its pipe is closed

    again = start(port=page.port, cookie=page.cookie)
    for body in said:  # the page does not know whether they arrived
        again.say(body)
    keys = [line["key"] for line in journal(Project(tmp_path / "rows.balent"))]
    assert [keys.count(body["id"]) for body in said] == [1] * 6
    assert again.get("/api/status")["labelled"] == 6
    items = {item["item"] for item in again.get("/api/next?tab=a&n=8")["items"]}
    assert items
    assert not items & {body["item"] for body in said}


def test_a_server_that_is_told_to_end_ends(start):
    """By a service manager: SIGTERM."""
    page = start(*MAKE)
    page.get("/api/status")
    code, errors = page.end(signal.SIGTERM)
    assert code in (0, -signal.SIGTERM)
    assert "Traceback" not in errors


def test_ctrl_c_ends_at_once_while_somebody_waits_for_the_worker(start):
    """The worker may be busy with a large project, and the grid waits for its reply: here for an hour."""
    page = start(*MAKE, before="from balent.apps.label import trainer; trainer.PATIENCE = 3600; ")
    until(lambda: page.get("/api/status")["model"]["state"] == "ready")
    (worker,) = page.children()
    os.kill(worker, signal.SIGSTOP)
    with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as raw:
        head = f"GET /api/grid?class=cat&tab=a HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nCookie: {page.cookie}\r\n\r\n"
        raw.sendall(head.encode())
        page.get("/api/status")  # the request before it has arrived
        code, errors = page.end()
    assert code == 0
    assert "Traceback" not in errors
    until(lambda: not is_alive(worker))


@pytest.mark.parametrize("times", [1, 2, 4])
def test_ctrl_c_pressed_again_and_again_in_the_middle_of_a_request_shows_no_traceback(start, tmp_path, times):
    """uvicorn printed one for the request that was cut off, and another one for the second Ctrl-C."""
    page = start(*MAKE)
    with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as raw:
        head = f"POST /api/event HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nCookie: {page.cookie}\r\n"
        raw.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        page.get("/api/status")  # the request before it has arrived
        workers = page.children()
        for _ in range(times - 1):
            page.process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        code, errors = page.end()
    assert code == 0, errors
    assert errors.splitlines()[-1].startswith("ended"), errors
    assert not any(word in errors for word in ("Traceback", "ERROR")), errors
    until(lambda: not any(is_alive(pid) for pid in workers))


def test_a_body_without_an_end_is_refused_while_it_is_read(start):
    """By the real server, which reads chunks from a socket."""
    page = start(*MAKE)
    with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as raw:
        head = f"POST /api/event HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nCookie: {page.cookie}\r\n"
        raw.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(17):  # 17 × 4,096 bytes: the end of the chunks never comes
            raw.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 413")
    assert page.get("/api/status")["labelled"] == 0


def test_each_person_gets_a_link(start):
    page = start(*MAKE, "--people", "ann, bob", "--audit", "1", "--overlap", "2")
    page.links.append(page._link())
    assert len({*page.links}) == 2
    found = page.get("/api/status")
    assert (found["who"], found["audit"]["every"]) == ("ann", 1)
    code, errors = page.end()
    assert code == 0, errors


def refused(folder, *words):
    found = subprocess.run(
        command("rows.npy", "--no-browser", *MAKE, *words), cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
    return found.stderr


def test_what_cannot_be_served_is_refused_in_words(tmp_path):
    clusters(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert re.search(rf"port {port}.*in use.*--port", refused(tmp_path, "--port", port), re.S)
    (tmp_path / "rows.balent" / "project.toml").unlink()
    assert "--allowed-host" in refused(tmp_path, "--host", "0.0.0.0")
    assert "leave out http://" in refused(tmp_path, "--allowed-host", "http://labels.example/")
    assert "different names" in refused(tmp_path, "--people", "ann,ann")
    assert not (tmp_path / "rows.balent" / "project.toml").exists(), "it is refused before a project is made"


WITHOUT = """
import sys

sys.modules["uvicorn"] = None
from balent.apps.cli import app

app(["label", "rows.npy", "--no-browser"])
"""


def test_without_the_extra_it_is_said_what_to_install(tmp_path):
    """A traceback was shown, and a project was made."""
    clusters(tmp_path)
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == 2
    assert "needs uvicorn; install it with: pip install 'balent[label]'" in found.stderr
    assert "Traceback" not in found.stderr
    assert not (tmp_path / "rows.balent").exists()


def test_the_demo_is_served_from_a_folder_that_is_removed_at_the_end(tmp_path):
    line = command("--demo", "--no-browser", "--port", port := free_port())
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        token = re.search(r"token=(\w+)", process.stdout.readline())[1]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/api/status", headers={"Cookie": f"balent-{port}={token}"})
        found = json.loads(connection.getresponse().read())
        connection.close()
    finally:
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=PATIENCE)[1]
    assert (found["items"], len(found["looks"]), found["looks"][7]) == (600, 10, {"name": "7", "key": "7", "note": ""})
    assert "they are removed at the end" in errors
    assert process.returncode == 0
    assert not any(tmp_path.iterdir())


# ── the browser that is opened ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("browser", "environment", "opens"),
    [
        (webbrowser.BackgroundBrowser("firefox"), {}, True),
        (webbrowser.GenericBrowser("w3m"), {}, False),
        (webbrowser.GenericBrowser("helper"), {"BROWSER": "helper"}, True),
        (None, {}, False),
    ],
    ids=["windows", "terminal", "wished", "none"],
)
def test_a_browser_in_the_terminal_is_not_opened_it_would_keep_the_server_waiting(
    monkeypatch, browser, environment, opens
):
    def found():
        if browser is None:
            raise webbrowser.Error("could not locate runnable browser")
        return browser

    called = queue.SimpleQueue()
    monkeypatch.delenv("BROWSER", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(webbrowser, "get", found)
    monkeypatch.setattr(webbrowser, "open", called.put)
    labelling._open("http://127.0.0.1:1/")
    if opens:
        assert called.get(timeout=PATIENCE) == "http://127.0.0.1:1/"
    else:
        assert called.empty()
