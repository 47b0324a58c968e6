"""Five things people come for: each is at most three clicks from the first page, and works as its page says.

The blocks of a page run literally, in a shell and in Python, in one folder. Two things are done for the reader: `pip
install` lines are left out, since the tests run what is installed, and a person sits at the labelling page.
"""

import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections import deque
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs"
TASKS = {
    "label a folder": "start/photos.md",
    "use my scikit-learn model": "start/model.md",
    "compare two strategies": "howto/compare.md",
    "resume a killed run": "howto/resume.md",
    "write a strategy": "howto/strategy.md",
}
CLICKS = 3
SAVED = r"(?:Save it as\s+`(?P<file>[\w.]+)`.*?)?"
BLOCK = re.compile(SAVED + r"^```(?P<language>sh|python)\n(?P<code>.*?)^```$", re.M | re.S)
ANSWERS = 12


def links(page):
    return [page.parent / target for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8"))]


def clicks(goal):
    """How many links lead from the first page to this one."""
    seen, waiting = {DOCS / "index.md": 0}, deque([DOCS / "index.md"])
    while waiting:
        page = waiting.popleft()
        for target in (link.resolve() for link in links(page) if link.resolve().is_relative_to(DOCS)):
            if target not in seen:
                seen[target] = seen[page] + 1
                waiting.append(target)
    return seen[goal.resolve()]


@pytest.mark.parametrize("page", TASKS.values(), ids=TASKS)
def test_a_task_is_three_clicks_from_the_first_page(page):
    assert clicks(DOCS / page) <= CLICKS


def photos(folder):
    from PIL import Image

    folder.mkdir()
    for i in range(40):
        pixels = np.random.default_rng(i).integers(0, 60, (48, 48, 3), dtype=np.uint8)
        pixels[:, :24] += np.uint8(180 * (i % 2))  # a bright half: a dog
        Image.fromarray(pixels).save(folder / f"{i:02}.png")


class Person:
    """Somebody at the labelling page, who knows which photos are dogs."""

    def __init__(self, link):
        self.root = re.match(r"http://[^/]+", link).group()
        jar = http.cookiejar.CookieJar()
        self.open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)).open
        self.open(link, timeout=120).read()

    def label(self, n):
        for item in json.load(self.open(f"{self.root}/api/next?n={n}&tab=t", timeout=120))["items"]:
            answer = ["cat", "dog"][int(item["id"].removesuffix(".png")) % 2]
            said = {"id": f"event-{item['item']}", "event": "label", "item": item["item"], "label": answer, "tab": "t"}
            request = urllib.request.Request(
                f"{self.root}/api/event", json.dumps(said).encode(), {"Content-Type": "application/json"}
            )
            assert self.open(request, timeout=120).status == 200


def at_the_page(line, folder, environment):
    """Runs `balent label`, labels some items, and ends it as Ctrl-C does."""
    server = subprocess.Popen(
        ["bash", "-c", f"exec {line}"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        link = next(found.group() for said in server.stdout if (found := re.search(r"http://\S+", said)))
        Person(link).label(ANSWERS)
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)


def in_a_shell(code, folder, environment):
    for line in code.splitlines():
        if line.startswith("balent label"):
            at_the_page(line, folder, environment)
        elif not line.startswith("pip install"):
            done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0 or line.startswith("timeout -s KILL"), (line, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("page", TASKS.values(), ids=TASKS)
def test_a_task_works_as_its_page_says(page, tmp_path, monkeypatch):
    photos(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    quiet = {"PYTHONWARNINGS": "default", "BROWSER": "true"}
    environment = os.environ | quiet | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    names = {"__name__": "__main__"}
    for block in BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["code"], encoding="utf-8")
        if block["language"] == "python":
            exec(compile(block["code"], page, "exec"), names)
        else:
            in_a_shell(block["code"], tmp_path, environment)
