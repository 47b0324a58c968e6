"""kill -9 at random moments: of Learners with every predictor, and of runs. The end is that of an undisturbed one."""

import json
import multiprocessing
import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch
from helpers.labelled import blobs, network
from helpers.runs import IMAGES, finish, timeless
from sklearn.ensemble import RandomForestClassifier
from torch import nn

from balent import Learner
from balent.predictors import PREDICTORS, VariationalLinear

POOL, LABELS = blobs(60, seed=5)
ROUNDS, K = 6, 5
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torture.kills", "torch._dynamo"])


def predictor(name: str, seed: int):
    """A small one of each kind, warm-started with every other seed where it can be."""
    if name == "gaussian_process":
        return PREDICTORS[name](3, iterations=5, features=64)
    if name == "logistic":
        return PREDICTORS[name](3)
    if name == "classifier":
        return PREDICTORS[name](RandomForestClassifier(5), 3)
    model = nn.Sequential(VariationalLinear(4, 8), nn.Linear(8, 3)) if name == "variational_dropout" else network()
    members = {"members": 4} if name == "ensemble" else {}
    return PREDICTORS[name](model, epochs=8, warm_start=seed % 2 == 0, **members)


def learner(name: str, folder, seed: int) -> Learner:
    torch.manual_seed(seed)
    return Learner(predictor(name, seed), POOL, "bald", seed=seed, directory=folder, draws=4, say=lambda word: None)


def drive(name: str, folder: str, seed: int) -> None:
    """Ask and tell up to the last round, from wherever the directory is."""
    torch.set_num_threads(1)
    with learner(name, folder, seed) as driven:
        while True:
            waiting = driven.pending.indices
            driven.tell(waiting, LABELS[waiting])
            if len(driven.asked) == ROUNDS:
                return
            driven.ask(K)


def asked(folder: str) -> list:
    events = [json.loads(line) for line in (Path(folder) / "journal.ndjson").read_text().splitlines()]
    return [[event.get(name) for name in ("event", "indices", "ids", "labels", "names", "scores")] for event in events]


def picked(folder: str) -> list:
    """Without scores: in another order of points their last bits differ."""
    return [event[:-1] for event in asked(folder)]


def _answer(driven: Learner) -> None:
    """By name: an id is the number that the point has among LABELS."""
    waiting = driven.pending.indices.tolist()
    numbers = [int(LABELS[int(driven.ids[i])]) for i in waiting]
    driven.tell(waiting, [driven.classes[number % len(driven.classes)] for number in numbers])


STEPS = (
    lambda driven: driven.ask(K),
    _answer,
    lambda driven: driven.retract(driven.asked[0][:2]),
    _answer,
    lambda driven: driven.commit(driven.propose(K)),
    lambda driven: driven.skip(driven.pending.indices[:1]),
    lambda driven: driven.add_class("bird"),
    _answer,
    lambda driven: driven.retract(sorted(driven.labels.skipped)),
    lambda driven: driven.ask(K),
    _answer,
)  # one event each


def change(name: str, folder: str, seed: int) -> None:
    """Every kind of event, from wherever the directory is; each process has the points in another order."""
    torch.set_num_threads(1)
    order = torch.randperm(len(POOL), generator=torch.Generator().manual_seed(random.randrange(1 << 30)))
    settings = {"ids": [f"{i:02}" for i in order.tolist()], "classes": ["cat", "dog"], "draws": 8}
    reserve = [settings["ids"].index(f"{i:02}") for i in range(5)]
    made = PREDICTORS[name](2)
    with Learner(made, POOL[order], seed=seed, directory=folder, reserve=reserve, **settings) as driven:
        for step in STEPS[len(driven.events.happened) - 3 :]:  # after start, classes and reserve
            step(driven)


def run(tries: int, seed: int) -> dict[str, Counter]:
    """So many kills of each: Learners with every predictor, and runs."""
    names = {f"kill -9, Learner with {name}": (name, drive, asked) for name in PREDICTORS}
    names["kill -9, every event, any order of points"] = ("logistic", change, picked)
    found = {words: _killed(tries, seed, *how) for words, how in names.items()}
    return {**found, "kill -9, balent run": _killed(tries, seed, "run", _finish, _records)}


def _finish(name: str, folder: str, seed: int) -> None:
    finish(replace(IMAGES, warm_start=seed % 2 == 0, total=60, epochs=10, seed=seed), Path(folder) / "run")


def _records(folder: str) -> list:
    lines = (Path(folder) / "run" / "records.jsonl").read_text().splitlines()
    return timeless(json.loads(line) for line in lines)


def _killed(tries: int, seed: int, name: str, work, result) -> Counter:
    """Four kills a directory; what the last process leaves is compared with an undisturbed one."""
    found: Counter = Counter()
    moments = random.Random(seed)
    for turn in range(-(-tries // 4)):
        with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as killed:
            codes = [_process(work, name, whole, seed + turn)]
            for _ in range(4):
                _process(work, name, killed, seed + turn, moments.uniform(0.0, 0.8))
            codes.append(_process(work, name, killed, seed + turn))
            right = not any(codes) and result(whole) == result(killed)
        found["right" if right else "traceback" if any(codes) else "silent"] += 4
    return found


def _process(work, name: str, folder: str, seed: int, after: float | None = None) -> int:
    process = CONTEXT.Process(target=work, args=(name, folder, seed))
    process.start()
    process.join(after)
    process.kill()
    process.join()
    return process.exitcode if after is None else 0
