"""Workers that share jobs: each has two at a time, and results come in the order of the jobs.

What has arrived before its turn is held back. A job is handed out only if not too many of those before it are
missing, so memory does not grow with the number of jobs, also if one worker is slow. When a worker dies, others do its
jobs: to wait until there is room for it again could take for ever.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from balent.acquisition.engines import cluster
from balent.acquisition.engines.cluster import Call, Handle, Lost, Reference
from balent.acquisition.engines.likeness import Refused
from balent.acquisition.engines.span_worker import Done

EACH = 2  # jobs at a time: the next one is there when one is done
AHEAD = 8  # jobs per worker that may be done before their turn
TRIES = 5  # of a job: one that ends every worker must not go round for ever
Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What to call on a worker, and what it is in words."""

    call: Call
    name: str


@dataclass
class Crew:
    """The workers of a cluster; those that died and were not started again yet are `missing`."""

    workers: list[Handle]
    say: Say
    missing: dict[Reference, Handle] = field(default_factory=dict)

    def results(self, jobs: Sequence[Job], arrived: Callable[[int, Done], None]) -> Iterator[Done]:
        """The results in the order of the jobs; `arrived` is called with each as soon as it is there."""
        shift, held, turn = Shift(self, jobs), dict[int, Done](), 0
        while turn < len(jobs):
            shift.hand_out(turn)
            for number, done in shift.wait():
                arrived(number, done)
                held[number] = done
            while turn in held:
                yield held.pop(turn)
                turn += 1

    def lose(self, worker: Handle) -> None:
        """Goes on without a worker until it is back."""
        if worker in self.workers:
            self.workers.remove(worker)
            self.missing[cluster.back(worker)] = worker

    def welcome(self, reference: Reference) -> None:
        """A worker that was started again; or will not be."""
        worker = self.missing.pop(reference)
        try:
            cluster.result(reference, "a new start")
            self.workers.append(worker)
        except Lost as error:
            if not (self.workers or self.missing):
                raise RuntimeError(f"no worker is left: {error}") from None

    def refuse(self, worker: Handle, error: Refused) -> None:
        """Goes on without a worker for good; it may have been started again on another kind of machine."""
        if worker in self.workers:
            self.workers.remove(worker)
            cluster.end([worker])
            if not (self.workers or self.missing):
                raise error
            self.say(str(error))


@dataclass
class Shift:
    """Who does which of the jobs."""

    crew: Crew
    jobs: Sequence[Job]
    flying: dict[Reference, tuple[int, Handle]] = field(default_factory=dict)
    lost: Counter[int] = field(default_factory=Counter)
    waiting: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = deque(range(len(self.jobs)))

    def hand_out(self, turn: int) -> None:
        """The next jobs, to those who have the fewest."""
        busy = dict.fromkeys(self.crew.workers, 0)
        for _, worker in self.flying.values():
            if worker in busy:
                busy[worker] += 1
        limit = turn + AHEAD * (len(busy) + len(self.crew.missing))
        while busy and self.waiting and self.waiting[0] < limit:
            worker = min(busy, key=lambda one: busy[one])
            if busy[worker] >= EACH:
                return
            number = self.waiting.popleft()
            self.flying[self.jobs[number].call(worker)] = number, worker
            busy[worker] += 1

    def wait(self) -> Iterator[tuple[int, Done]]:
        """The jobs that are done by now, at least one unless a worker was lost or came back."""
        for reference in cluster.ready([*self.flying, *self.crew.missing]):
            if reference in self.crew.missing:
                self.crew.welcome(reference)
                continue
            number, worker = self.flying.pop(reference)
            try:
                yield number, cluster.result(reference, self.jobs[number].name)
            except Refused as error:
                self.crew.refuse(worker, error)
                self._again(number)
            except Lost as error:
                self._count(number, worker, error)
                self.crew.lose(worker)
                self._again(number)

    def _again(self, number: int) -> None:
        """Before those that come after it."""
        self.waiting = deque(sorted([number, *self.waiting]))

    def _count(self, number: int, worker: Handle, error: Lost) -> None:
        """Says it; and counts it for the job that the worker was doing, which is the first of those it had."""
        self.crew.say(f"{self.jobs[number].name}, is done again: {error}")
        if worker in self.crew.workers:  # else it was counted before
            doing = min([number, *(other for other, one in self.flying.values() if one == worker)])
            self.lost[doing] += 1
            if self.lost[doing] >= TRIES:
                raise RuntimeError(
                    f"{self.jobs[doing].name}, ended its worker {TRIES} times, perhaps for lack of memory; use smaller "
                    f"spans (--span-rows) or fewer workers: {error}"
                )
