"""Pictures of the labelling page: digits that come with balent, labelled by a program, in Debian's chromium.

python docs/page_shots.py                   the pictures of docs/page/
python docs/page_shots.py --all FOLDER      every view, wide and narrow, light and dark: to be looked at
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.sync_api import Page, sync_playwright

from balent import Project
from balent.apps.label.demo import CLASSES, pictures
from balent.data import arrays, sources

WIDE, NARROW = (1400, 900), (390, 844)
VIEWS = {"label": "/", "grid": "/grid", "history": "/history", "progress": "/progress", "classes": "/classes"}
SHOTS = [("label", WIDE, "light"), ("label", NARROW, "dark"), ("progress", WIDE, "light")]
ROUNDS, BATCH = 9, 20


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--all", type=Path, default=None, metavar="FOLDER")
    folder = asked.parse_args().all
    everything = [
        (view, size, scheme) for view in [*VIEWS, "resolve"] for size in (WIDE, NARROW) for scheme in ("light", "dark")
    ]
    shots, place = (everything, folder) if folder else (SHOTS, Path(__file__).with_name("page"))
    place.mkdir(exist_ok=True, parents=True)
    with tempfile.TemporaryDirectory() as home, pictures() as photos:
        project = labelled(photos, Path(home))
        server, link = started(project)
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                for view, size, scheme in shots:
                    taken(browser, link, view, size, scheme, place)
                browser.close()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def labelled(photos: Path, home: Path) -> Project:
    """A project that two people have worked on, and once disagreed."""
    project = Project.create(home / "digits.balent", photos, classes=CLASSES.split(","))
    truth = arrays.npz(Path(sources.__file__).with_name("digits.npz"), "labels")
    for number in range(ROUNDS):
        batch = project.ask(BATCH)
        answers = {item.id: str(truth[int(Path(item.id).stem)]) for item in batch}
        project.tell(answers, who=("ann", "bob")[number % 2])
        project.status()
    checks = [item.id for item in batch if item.why == "random check"]
    project.tell({checks[0]: str((int(answers[checks[0]]) + 1) % 10)}, who="bob")
    project.tell({id: answers[id] for id in checks[1:]}, who="bob")
    return project


def started(project: Project) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-c", "from balent.apps.cli import app; app()", "label", str(project.path)]
    server = subprocess.Popen([*command, "--no-browser", "--people", "ann"], stdout=subprocess.PIPE, text=True)
    link = re.search(r"http\S+", server.stdout.readline())[0]
    home, _, token = link.partition("/?token=")
    asked = Request(f"{home}/api/status", headers={"Cookie": f"balent-{home.rsplit(':')[-1]}={token}"})
    while json.load(urlopen(asked))["counted"] == 0:
        time.sleep(0.2)
    return server, link


def taken(browser, link: str, view: str, size: tuple[int, int], scheme: str, place: Path) -> None:
    page: Page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.goto(link)
    page.goto(link.split("/?")[0] + VIEWS.get(view, f"/{view}"))
    page.wait_for_selector(f"body[data-view={view}]")
    if view == "label":
        page.wait_for_selector("#item[data-item]")
        while page.query_selector("button.class.guess") is None:  # random checks are shown without a guess
            page.keyboard.press("s")
            page.wait_for_timeout(300)
    page.wait_for_timeout(1500)
    page.screenshot(
        path=place / f"{view}-{'wide' if size == WIDE else 'phone'}{'' if scheme == 'light' else '-dark'}.png"
    )
    page.close()


if __name__ == "__main__":
    main()
