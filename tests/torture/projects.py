"""kill -9 of projects: while items are looked for, features computed, items asked and told, predictions written.

Nothing that was acknowledged is lost, and the end is that of an undisturbed project. What a process has acknowledged
stands in a file of its own, written after each `tell`.
"""

import json
import multiprocessing
import random
import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic

import numpy as np

from balent import Project
from balent.project import features

ITEMS, ROUNDS, K = 120, 4, 10
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torture.projects", "torch._dynamo"])
CLASSES = ["cat", "dog", "bird"]


def rows(items: int = ITEMS) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (np.eye(3, 6)[np.arange(items) % 3] * 3 + rng.normal(size=(items, 6))).astype(np.float32)


def drive(folder: str) -> None:
    """From wherever the folder is to the end: all rounds, then predictions. Half-way items are added and renamed."""
    place = Path(folder)
    features.BLOCK = 7  # many blocks, so that kills fall between them
    project = _opened(place)
    while True:
        waiting = project.pending()
        if waiting:
            project.tell({item.id: _truth(project, item.id) for item in waiting}, who="ann", key=_key(waiting))
            _acknowledge(place, [item.id for item in waiting])
        if project.state.rounds == ROUNDS // 2:
            _write(place, 2 * ITEMS, "new")
        if project.state.rounds == ROUNDS:
            break
        project.ask(K)
    project.predict()


def _opened(place: Path) -> Project:
    path = place / "p.balent"
    if not (place / "rows.npy").exists():
        _write(place, ITEMS, "item")
    if (path / "project.toml").exists():
        return Project(path)
    return Project.create(path, place / "rows.npy", classes=CLASSES, ids=place / "ids.txt")


def _write(place: Path, items: int, name: str) -> None:
    """The data: ids are written first, so that a kill between both leaves a project that refuses to look."""
    for file, write in {
        "ids.txt": lambda path: path.write_text("\n".join(f"{name} {i}" for i in range(items))),
        "rows.npy": lambda path: np.save(path, rows(2 * ITEMS)[:items]),
    }.items():
        partial = place / f"partial.{file}"
        write(partial)
        partial.replace(place / file)


def _truth(project: Project, id: str) -> str:
    return CLASSES[int(id.split()[1]) % 3]


def _key(waiting: list) -> str:
    """Of the event: a process that repeats it after a kill records it once."""
    return "round " + " ".join(sorted(item.id.split()[1] for item in waiting))


def _acknowledge(place: Path, ids: list[str]) -> None:
    with (place / "acknowledged.txt").open("a") as file:
        file.writelines(f"{id.split()[1]}\n" for id in ids)


def result(folder: str) -> tuple:
    """What is left at the end: labels by content, asked items in order, predictions."""
    path = Path(folder) / "p.balent"
    events = [json.loads(line) for line in (path / "journal.ndjson").read_text().splitlines()]
    said = [
        (event["event"], [id.split()[1] for id in event["ids"]], event.get("labels"))
        for event in events
        if event["event"] != "class"
    ]
    return said, (path / "predictions.csv").read_text()


def run(tries: int, seed: int) -> dict[str, Counter]:
    """So many kills, four of each project."""
    found: Counter = Counter()
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as whole:
        start = monotonic()
        code, expected = _process(whole), result(whole)
        seconds = monotonic() - start
        found["traceback"] += code != 0
        for _ in range(-(-tries // 4)):
            found[_killed(expected, moments, seconds)] += 4
    return {"kill -9, Project": found}


def _killed(expected: tuple, moments: random.Random, seconds: float) -> str:
    """Each process has a share of the time that an undisturbed one takes."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(4):
            _process(folder, moments.uniform(0.0, seconds / 2))
            if _lost(folder):
                return "silent"
        if _process(folder) != 0:
            return "traceback"
        return "right" if result(folder) == expected and not _lost(folder) else "silent"


def _lost(folder: str) -> bool:
    """Was something acknowledged that the journal does not have?"""
    acknowledged, journal = Path(folder) / "acknowledged.txt", Path(folder) / "p.balent" / "journal.ndjson"
    if not acknowledged.exists():
        return False
    lines = [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]
    kept = {id.split()[1] for line in lines if line["event"] == "label" for id in line["ids"]}
    return bool(set(acknowledged.read_text().split()) - kept)


def _process(folder: str, seconds: float | None = None) -> int | None:
    """The exit code; None if it was killed."""
    process = CONTEXT.Process(target=drive, args=(folder,))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    return process.exitcode
