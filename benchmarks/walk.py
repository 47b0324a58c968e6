"""How many files does a reader visit to follow one block, one question, one round?

Counts the files of balent whose functions are called, and how often a call is in another file than the call before it
in the same thread; returns do not count. The compiled kernel is used if there is one. Posterior samples have masks per
point, and have been used once before, so their network is planned. Four walks: one `acquire` of a pool of one block,
from its first check to its picks (it also tries two points before the scan); each further block; one `Learner.ask`; one
round of `balent run`. The last three are a walk of n + 1 steps less one of n steps.

    python benchmarks/walk.py
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

import balent
from balent.paper.experiments import DIGITS

ROOT = str(Path(balent.__file__).parent)
BLOCK = 256


class Trail:
    """The files whose functions are called, in order, thread by thread."""

    def __init__(self) -> None:
        self.last: dict[int, str] = {}
        self.changes, self.files = 0, set[str]()

    def __call__(self, frame, event, arg) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(ROOT):
            return
        thread = threading.get_ident()
        self.changes += self.last.get(thread, path) != path
        self.last[thread] = path
        self.files.add(path)


def walked(work: Callable[[], object]) -> Trail:
    trail = Trail()
    threading.setprofile(trail)
    sys.setprofile(trail)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trail


def once(work: Callable[[int], Callable[[], object]]) -> tuple[int, int]:
    """Changes of file in a walk of one step, and the files that it visits."""
    walk = work(1)
    walk()
    trail = walked(walk)
    return trail.changes, len(trail.files)


def step(work: Callable[[int], Callable[[], object]], n: int = 3) -> tuple[int, int]:
    """Changes of file in one more step, and the files that all steps visit."""
    for warm in (n, n + 1):
        work(warm)()
    short, long = walked(work(n)), walked(work(n + 1))
    return long.changes - short.changes, len(long.files)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.2), nn.ReLU(), nn.Linear(64, 5))


def acquire(blocks: int) -> Callable[[], object]:
    sampled = balent.MCDropout(network()).sample(20, seed=0, masks="per-point")
    pool = torch.randn(blocks * BLOCK, 16)
    return lambda: balent.acquire(sampled, pool, 5, "balentacq")


def ask(times: int) -> Callable[[], object]:
    pool = torch.randn(BLOCK, 16)
    learner = balent.Learner(balent.MCDropout(network(), epochs=2), pool, "balentacq", draws=20)
    learner.tell(range(20), [i % 5 for i in range(20)])
    return lambda: [learner.ask(1) for _ in range(times)]


def run(rounds: int) -> Callable[[], object]:
    tiny = replace(DIGITS, strategy="balentacq", epochs=1, draws=10, evaluation_draws=10, start=20, per_round=5)
    return lambda: list(balent.run(replace(tiny, total=20 + 5 * rounds)))


def main() -> None:
    torch.manual_seed(0)
    print(f"{'walk':28s}{'changes of file':>16s}{'files':>8s}")
    for name, count, work in (
        ("acquire, one block", once, acquire),
        ("acquire, each further block", step, acquire),
        ("Learner.ask, one question", step, ask),
        ("balent run, one round", step, run),
    ):
        changes, files = count(work)
        print(f"{name:28s}{changes:16d}{files:8d}")


if __name__ == "__main__":
    main()
