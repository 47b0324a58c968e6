"""Does a person ever wait while labelling?  A browser labels images at a person's pace, while the model learns.

    python benchmarks/bench_label.py [--images 3000] [--labels 200] [--per-minute 40] [--keep FOLDER]

A project of generated photos, its features computed before. Chromium (Debian's package) opens the page and presses the
key of the right class. Printed are the seconds from the command to the first item, how often the page had nothing to
show, milliseconds from a key press until the next item is painted and until the label is on disk, and how often the
model was trained meanwhile. --keep keeps the images and their features for the next time.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from balent import Project

CLASSES = {"disc": "1", "box": "2", "cross": "3", "ring": "4", "stripes": "5"}
WIDTH, HEIGHT = 480, 360
BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
WATCH = """
  window.waits = 0;
  new MutationObserver(() => { if (document.body?.dataset.state === 'waiting') window.waits += 1; })
    .observe(document, {subtree: true, attributes: true, attributeFilter: ['data-state']});
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--images", type=int, default=3000)
    asked.add_argument("--labels", type=int, default=200)
    asked.add_argument("--per-minute", type=float, default=40)
    asked.add_argument("--keep", type=Path, default=None)
    args = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = args.keep or Path(temporary)
        project = ready(place, args.images)
        pace, load = f"{args.labels} labels at {args.per_minute:.0f} per minute", os.getloadavg()[0]
        print(f"{args.images} images, {pace}; load {load:.1f}", flush=True)
        measured(project, args.labels, 60 / args.per_minute)


def ready(place: Path, images: int) -> Project:
    """A project without labels, whose features are computed."""
    folder, rng = place / "photos", np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(images):
        name = [*CLASSES][number % len(CLASSES)]
        path = folder / f"{number:05d}-{name}.jpg"
        if not path.exists():
            Image.fromarray(drawn(name, rng)).save(path, quality=90)
    home = place / "photos.balent"
    for old in ("journal.ndjson", "queue.json", "rounds.ndjson", "said.json", "curve.ndjson", "accuracy.json"):
        (home / old).unlink(missing_ok=True)
    project = Project(home) if (home / "project.toml").exists() else Project.create(home, folder, classes=[*CLASSES])
    project.compute_features()
    return project


def drawn(name: str, rng: np.random.Generator) -> np.ndarray:
    """A shape of any colour, size and place, on a background with some structure."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    cy, cx, r = rng.uniform(90, 270), rng.uniform(120, 360), rng.uniform(40, 85)
    down, right = y - cy, x - cx
    masks = {
        "disc": down**2 + right**2 < r * r,
        "box": (abs(down) < r) & (abs(right) < r),
        "cross": ((abs(down) < r / 4) | (abs(right) < r / 4)) & (abs(down) < r) & (abs(right) < r),
        "ring": (down**2 + right**2 < r * r) & (down**2 + right**2 > r * r / 3),
        "stripes": (abs(down) < r) & (abs(right) < r) & ((right // (r / 4)) % 2 == 0),
    }
    ground = rng.uniform(120, 255, 3) + 25 * np.sin(x / rng.uniform(20, 90) + y / rng.uniform(20, 90))[..., None]
    picture = np.where(masks[name][..., None], rng.uniform(0, 255, 3), ground)
    return np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)


def measured(project: Project, labels: int, pause: float) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=BROWSER)
        page = browser.new_page(bypass_csp=True, viewport={"width": 1400, "height": 900})
        page.add_init_script(WATCH)
        with opened(project, page):
            labelled(page, project, labels, pause)
            report(page)
        browser.close()
    lines = (project.path / "rounds.ndjson").read_text().splitlines()
    print(f"{len(lines):6d}      times the model was trained meanwhile")
    project.look()
    print(f"{len(project.state.last):6d}      labels in the journal")


@contextmanager
def opened(project: Project, page) -> Iterator[None]:
    """The page of a server that is started here, at its first item."""
    begun = time.perf_counter()
    command = [sys.executable, "-c", "from balent.apps.cli import app; app()", "label", str(project.path)]
    server = subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE, text=True)
    try:
        page.goto(re.search(r"http\S+", server.stdout.readline())[0])
        page.wait_for_selector("#item[data-item]", timeout=60_000)
        print(f"{time.perf_counter() - begun:6.2f} s    from the command to the first item")
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def labelled(page, project: Project, labels: int, pause: float) -> None:
    """Presses the key of the right class, at an even pace."""
    page.evaluate("window.waits = 0")
    for _ in range(labels):
        begun = time.perf_counter()
        number = int(page.get_attribute("#item[data-item]", "data-item"))
        page.keyboard.press(CLASSES[Path(project.items[number].id).stem.split("-")[1]])
        time.sleep(max(0, pause - (time.perf_counter() - begun)))


def report(page) -> None:
    page.wait_for_function("document.body.dataset.unsent === '0'")
    timings = page.evaluate("window.balent.timings")
    print(f"{page.evaluate('window.waits'):6d}      waits: times the page had nothing to show")
    for name, what in (
        ("shown", "from a key press to the next item, painted"),
        ("acknowledged", "to the label on disk"),
    ):
        found = np.array([timing[name] for timing in timings if timing.get(name) is not None])
        middle, late = np.percentile(found, [50, 99])
        print(f"{middle:6.1f} ms   {what}: median of {len(found)}; 99 % within {late:.1f} ms")


if __name__ == "__main__":
    main()
