"""How many files does a reader visit to follow one block, one question, one round?

Counts, for three walks, the files of balent that run and how often the running function changes file: one block of the
pool through `acquire`, one `Learner.ask`, one round of `balent run`. A walk of n + 1 steps less one of n steps is one
step.

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
    """The files in which functions of balent run, in order, thread by thread."""

    def __init__(self) -> None:
        self.last: dict[int, str] = {}
        self.changes, self.files = 0, set[str]()

    def __call__(self, frame, event, arg) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(ROOT) or frame.f_code.co_name.startswith("<"):
            return
        if event == "return":
            frame = frame.f_back
            path = frame.f_code.co_filename if frame else path
            if not path.startswith(ROOT):
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


def step(work: Callable[[int], Callable[[], object]], n: int = 3) -> tuple[int, int]:
    """Changes of file in one step, and the files that it visits."""
    for warm in (n, n + 1):
        work(warm)()
    short, long = walked(work(n)), walked(work(n + 1))
    return long.changes - short.changes, len(long.files)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.2), nn.ReLU(), nn.Linear(64, 5))


def acquire(blocks: int) -> Callable[[], object]:
    sampled = balent.MCDropout(network()).sample(20, seed=0)
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
    print(f"{'one step of':28s}{'changes of file':>16s}{'files':>8s}")
    for name, work in (
        ("acquire (a block)", acquire),
        ("Learner.ask (a question)", ask),
        ("balent run (a round)", run),
    ):
        changes, files = step(work)
        print(f"{name:28s}{changes:16d}{files:8d}")


if __name__ == "__main__":
    main()
