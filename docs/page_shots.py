"""Pictures of the labelling page, in Debian's chromium: projects that a program has labelled, and every view of them.

python docs/page_shots.py                   the pictures of docs/page/, of digits that come with balent
python docs/page_shots.py --all FOLDER      images, texts and rows; wide and narrow, light and dark: to be looked at
"""

import argparse
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from balent import Project
from balent.apps.label.demo import CLASSES, pictures
from balent.data import arrays, sources

WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
VIEWS = ("label", "grid", "history", "progress", "classes", "resolve")
STATES = ("check", "help", "new", "zoom", "offline", "locked")  # of the view label
SHOTS = [("label", WIDE, "light"), ("label", NARROW, "dark"), ("progress", WIDE, "light")]
ROUNDS, BATCH, ITEMS = 9, 20, 300
WORDS = {
    "billing": ("invoice", "charged twice", "refund", "card", "receipt"),
    "delivery": ("parcel", "courier", "late", "address", "damaged"),
    "login": ("password", "account", "locked", "code", "screen"),
}
FILL = (
    "I have been waiting",
    "since last week",
    "please help",
    "again",
    "and now",
    "the",
    "with my",
    "it was",
    "thanks",
)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--all", type=Path, default=None, metavar="FOLDER")
    folder = asked.parse_args().all
    looks = [(size, scheme) for size in (WIDE, NARROW) for scheme in ("light", "dark")]
    everything = [(shot, *look) for shot in (*VIEWS, *STATES) for look in looks]
    kinds = (images, texts, rows) if folder else (images,)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home, pictures() as photos:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for kind in kinds:
            with served(labelled(*kind(Path(home), photos))) as link:
                for shot in everything if folder else SHOTS:
                    place = folder / kind.__name__ if folder else Path(__file__).with_name("page")
                    place.mkdir(exist_ok=True, parents=True)
                    taken(browser, link, *shot, place)
        browser.close()


# ── projects ─────────────────────────────────────────────────────────────────────────────────────────


def images(home: Path, photos: Path) -> tuple[Project, dict[str, str]]:
    truth = arrays.npz(Path(sources.__file__).with_name("digits.npz"), "labels")
    project = Project.create(home / "digits.balent", photos, classes=CLASSES.split(","), goal=0.95)
    return project, {item.id: str(truth[int(Path(item.id).stem)]) for item in project.items.all}


def texts(home: Path, _: Path) -> tuple[Project, dict[str, str]]:
    rng, truth = random.Random(0), {f"T-{10000 + i}": [*WORDS][i % 3] for i in range(ITEMS)}
    lines = [{"ticket": id, "body": text(rng, name)} for id, name in truth.items()]
    (home / "tickets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    project = Project.create(
        home / "tickets.balent", home / "tickets.jsonl", text="body", id="ticket", classes=[*WORDS]
    )
    project.describe_class("billing", note="money went wrong, or a question about an invoice")
    return project, truth


def text(rng: random.Random, name: str) -> str:
    """Something between a line and several paragraphs."""
    parts = rng.choice((5, 12, 40, 300))
    said = " ".join(rng.choice(WORDS[name] if rng.random() < 0.25 else FILL) for _ in range(parts))
    return ".\n\n".join(said[i : i + 400].strip().capitalize() for i in range(0, len(said), 400))


def rows(home: Path, _: Path) -> tuple[Project, dict[str, str]]:
    rng, truth = random.Random(0), {f"C{i:05d}": ("stays", "leaves")[i % 2] for i in range(ITEMS)}
    lines = [{"customer": id, **row(rng, leaves=name == "leaves")} for id, name in truth.items()]
    (home / "customers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    classes = ["stays", "leaves"]
    return Project.create(home / "customers.balent", home / "customers.jsonl", id="customer", classes=classes), truth


def row(rng: random.Random, *, leaves: bool) -> dict[str, object]:
    return {
        "age": rng.randint(18, 80),
        "country": rng.choice(("France", "Germany", "Côte d’Ivoire", None)),
        "monthly charge (EUR)": round(rng.gauss(60 if leaves else 35, 12), 2),
        "calls to support": rng.randint(3, 12) if leaves else rng.randint(0, 4),
        "months": rng.randint(0, 20) if leaves else rng.randint(6, 90),
        "last comment": rng.choice(("", "too expensive", "all fine, thanks")),
    }


def labelled(project: Project, truth: dict[str, str]) -> Project:
    """Two people have worked on it, and once disagreed."""
    for number in range(ROUNDS):
        batch = project.ask(BATCH)
        project.tell({item.id: truth[item.id] for item in batch}, who=("ann", "bob")[number % 2])
        project.status()
    first, *others = [item.id for item in batch if item.why == "random check"]
    other = next(name for name in project.state.classes.names() if name != truth[first])
    project.tell({first: other, **{id: truth[id] for id in others}}, who="bob")
    return project


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def served(project: Project) -> Iterator[str]:
    """The page, once the model is there."""
    command = [sys.executable, "-c", "from balent.apps.cli import app; app()", "label", str(project.path)]
    server = subprocess.Popen([*command, "--no-browser", "--people", "ann"], stdout=subprocess.PIPE, text=True)
    try:
        link = re.search(r"http\S+", server.stdout.readline())[0]
        home, _, token = link.partition("/?token=")
        asked = Request(f"{home}/api/status", headers={"Cookie": f"balent-{home.rsplit(':')[-1]}={token}"})
        while json.load(urlopen(asked))["counted"] == 0:
            time.sleep(0.2)
        yield link
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def taken(browser: Browser, link: str, shot: str, size: dict[str, int], scheme: str, place: Path) -> None:
    """One picture, from a browser of its own."""
    phone = {"has_touch": True, "is_mobile": True} if size is NARROW else {}
    context = browser.new_context(viewport=size, color_scheme=scheme, **phone)
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("#item[data-item]")
    if shot in VIEWS[1:]:
        page.goto(f"{link.split('/?')[0]}/{shot}")
        page.wait_for_selector(f"body[data-view={shot}]")
    else:
        arranged(page, shot)
    page.wait_for_timeout(1500)
    name = f"{shot}-{'wide' if size is WIDE else 'phone'}{'' if scheme == 'light' else '-dark'}.png"
    page.screenshot(path=place / name)
    context.close()


def arranged(page: Page, state: str) -> None:
    """The view label, at a random check or at an item with a guess; then what the state is about."""
    while (page.query_selector("button.class.guess") is None) != (state == "check"):
        page.keyboard.press("s")
        page.wait_for_timeout(300)
    if state == "offline":
        page.context.set_offline(True)
    if state == "locked":
        page.context.clear_cookies()
    page.keyboard.press({"help": "?", "new": "n", "zoom": "z", "offline": "1", "locked": "1"}.get(state, "Shift"))


if __name__ == "__main__":
    main()
