"""Runs as they go: a table that changes on a terminal, lines elsewhere."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from balent.simulation.experiment import Experiment
    from balent.simulation.jobs import News

QUIET = 10.0  # seconds without a line, elsewhere than on a terminal


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def watch(news: Iterable["News"], specs: Sequence["Experiment"], jobs: int, console: Console) -> list[str]:
    """Shows news until there are no more; returns why runs failed."""
    board = Board(specs, jobs)
    said: set[str] = set()
    with (
        Live(board, console=console, refresh_per_second=4, transient=True)
        if console.is_terminal
        else Lines(board, console) as view
    ):
        for item in news:
            board.add(item)
            if item.word is not None and item.word not in said:
                said.add(item.word)
                console.print(escape(item.word), highlight=False, soft_wrap=True)
            elif isinstance(view, Lines):
                view.add(item)
    return board.errors


@dataclass
class Board:
    """Strategy × seed: labels, accuracy, time left."""

    specs: Sequence["Experiment"]
    jobs: int
    records: dict["Experiment", list[dict[str, Any]]] = field(default_factory=dict)
    ended: set["Experiment"] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def add(self, news: "News") -> None:
        if news.record is not None:
            self.records.setdefault(news.spec, []).append(news.record)
        if news.ended:
            self.ended.add(news.spec)
        if news.error is not None:
            self.errors.append(str(news.error))

    def left(self, spec: "Experiment") -> float | None:
        """Seconds that a run has still to go: rounds cost what their labels cost."""
        if spec in self.ended:
            return 0.0
        every = [record for records in self.records.values() for record in records]
        cost = sum(map(seconds, every)) / max(1, sum(record["labels"] for record in every))
        done = self.records.get(spec, [])
        ahead = range(done[-1]["labels"] + spec.per_round if done else spec.start, spec.total + 1, spec.per_round)
        return cost * sum(ahead) if every else None

    def time_left(self) -> str:
        times = [self.left(spec) for spec in self.specs]
        known = [t for t in times if t is not None]
        return duration(max([sum(known) / self.jobs, *known])) if len(known) == len(times) else "…"

    def cell(self, spec: "Experiment") -> str:
        done = self.records.get(spec)
        if not done:
            return "failed" if spec in self.ended else "waits"
        state = "done" if spec in self.ended else duration(self.left(spec) or 0.0)
        known = [record["accuracy"] for record in done if record["accuracy"] is not None]
        return f"{done[-1]['labels']} labels  {known[-1]:.1%}  {state}"

    def __rich__(self) -> Table:
        seeds = sorted({spec.seed for spec in self.specs})
        done = f"{len(self.ended)} of {len(self.specs)} runs, {self.time_left()} left"
        table = Table("strategy", *(f"seed {seed}" for seed in seeds), box=None, header_style="bold", caption=done)
        for strategy in dict.fromkeys(spec.strategy for spec in self.specs):
            row = [self.cell(spec) for spec in self.specs if spec.strategy == strategy]
            table.add_row(escape(strategy), *row)
        return table


@dataclass
class Lines:
    """A line when a run ends, and now and then before."""

    board: Board
    console: Console
    last: float = field(default_factory=monotonic)

    def add(self, news: "News") -> None:
        if news.error is None and (news.ended or (news.record is not None and monotonic() - self.last > QUIET)):
            self.last = monotonic()
            line = f"{news.spec.strategy}, seed {news.spec.seed}: {self.board.cell(news.spec)}"
            self.console.print(escape(f"{line}; all: {self.board.time_left()} left"), highlight=False, soft_wrap=True)

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def pace(unit: str, console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """A function of what is done, what there is in all, and a word: a bar on a terminal, lines elsewhere."""
    begun: list[tuple[int, float]] = []  # what an earlier process did took no time of ours
    said, lines = monotonic(), 0
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[line]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(unit, total=None, line="")

        def show(done: int, total: int, word: str) -> None:
            nonlocal said, lines
            begun[:] = begun or [(done, monotonic())]
            rate = (done - begun[0][0]) / (monotonic() - begun[0][1] + 1e-9)
            left = duration((total - done) / rate) if rate > 0 else "…"
            line = f"{unit}, {rate:.3g} a second, {left} left{word}"
            bar.update(task, completed=done, total=total, line=line)
            last = lines > 0 and done == total  # a line that says less would stay as the last word
            if not console.is_terminal and (last or monotonic() - said > QUIET):
                said, lines = monotonic(), lines + 1
                console.print(f"{done} of {total} {line}", highlight=False, soft_wrap=True)

        yield show


@contextmanager
def counted(unit: str, console: Console) -> Iterator[Callable[[int, int | None], None]]:
    """The same as a function of what is done and what there is in all, if that is known."""
    with pace(unit, console) as show:
        yield lambda done, total: show(done, total or done, "")


def seconds(record: dict[str, Any]) -> float:
    return sum(record["seconds"].values())


def duration(time: float) -> str:
    """As minutes and seconds."""
    minutes, rest = divmod(round(time), 60)
    return f"{minutes}:{rest:02d}"
