"""Several runs side by side: a process for each, with one thread each, and their records as they arrive.

Networks that fit a few hundred labels are too small for several cores, so each run gets one core. With one thread,
sums also do not depend on the number of runs. A run's process ends with the process that started it, however that
ends; its records are on disk by then.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from balent.acquisition import pages
from balent.loop.journal import Record
from balent.simulation.experiment import Experiment, run

# Imported once for all processes; an optimizer imports torch._dynamo at its first step, which takes more than a second.
PRELOADED = ["balent.simulation.experiment", "balent.paper.experiments", "torch._dynamo"]
EXPECTED = (ValueError, TypeError, OSError)  # errors that the user can fix


@dataclass(frozen=True)
class News:
    """From one run: a record, a message for the user, or why it failed. A run that ends well sends none of them."""

    spec: Experiment
    record: Record | None = None
    word: str | None = None
    error: str | None = None

    @property
    def ended(self) -> bool:
        return self.record is None and self.word is None


def side_by_side(specs: Sequence[Experiment], runs: Path, jobs: int, **options: Any) -> Iterator[News]:
    """News of all runs, at most `jobs` of them at a time. A run that fails ends with its error; the others go on.

    `options` are those of `run`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    here = Path.cwd()  # where relative paths begin, in every process
    waiting, active = deque(specs), dict[Connection, tuple[Experiment, Any]]()
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                spec = waiting.popleft()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_run, args=(spec, here, runs, options, theirs))
                process.start()
                theirs.close()
                active[ours] = spec, process
            for pipe in wait(list(active)):
                assert isinstance(pipe, Connection)
                yield _news(pipe, *active[pipe], active)
    finally:
        for _, process in active.values():
            process.terminate()
        for _, process in active.values():
            process.join()


def _news(pipe: Connection, spec: Experiment, process: Any, active: dict[Connection, tuple[Experiment, Any]]) -> News:
    try:
        news = pipe.recv()
    except EOFError:
        process.join()
        news = News(spec, error=f"{_title(spec)} {_ending(process.exitcode)}")
    if news.ended:
        process.join()
        pipe.close()
        del active[pipe]
    return news


def _run(spec: Experiment, here: Path, runs: Path, options: dict[str, Any], pipe: Connection) -> None:
    """Runs one experiment, in its own process."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process at the terminal
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.chdir(here)
    torch.set_num_threads(1)
    pages.keep()
    try:
        for record in run(spec, spec.directory(runs), **options, say=lambda word: pipe.send(News(spec, word=word))):
            pipe.send(News(spec, record=record))
        pipe.send(News(spec))
    except EXPECTED as error:
        pipe.send(News(spec, error=f"{_title(spec)}: {error}"))
    except Exception:  # a fault in code: the person who reads this needs the place
        pipe.send(News(spec, error=f"{_title(spec)} failed:\n{traceback.format_exc()}"))


def _ending(code: int) -> str:
    """How a process ended that did not report its end itself."""
    return f"was killed by signal {-code}" if code < 0 else f"ended without a result (exit code {code})"


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _title(spec: Experiment) -> str:
    return f"{spec.strategy}, seed {spec.seed}"
