"""The events of a Learner: with a directory, each is on disk before it counts; without one, they are in memory.

The directory is locked as long as its events are open. No torch here.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from balent.loop import journal
from balent.loop.labels import Event, Labels
from balent.loop.places import Places

Say = Callable[[str], None]


class Events:
    """What happened to the points of a pool, and the labels that follow from it."""

    def __init__(self, directory: Path | None, places: Places, say: Say) -> None:
        self.directory, self.places = directory, places
        self.happened: list[Event] = []  # those of a journal as they stand there, until `add_up`; then by positions
        self.labels = Labels()
        self.closed = False
        self._lock = contextlib.ExitStack()
        if directory is not None:
            with contextlib.ExitStack() as opening:
                opening.enter_context(journal.locked(directory))
                self._read(say)
                self._lock = opening.pop_all()

    def _read(self, say: Say) -> None:
        note = journal.repair(self.path)
        if note:
            say(note)
        if not self.path.exists():
            return
        self.happened = journal.read(self.path)
        if not self.happened:
            raise ValueError(
                f"{self.path} is empty, but a journal begins with a line: its labels are lost; restore the file, "
                "or remove the directory to start again"
            )
        try:
            self.places.read(self.happened)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.path}: the event 'pin' is damaged: {error}; restore the file") from error

    @property
    def path(self) -> Path:
        return self.file("journal.ndjson")  # not .jsonl: those are records

    def file(self, name: str) -> Path:
        """A file of the directory."""
        assert self.directory is not None
        return self.directory / name

    @property
    def keeps(self) -> bool:
        """May files be written?"""
        return self.directory is not None and not self.closed

    @property
    def asked(self) -> list[list[int]]:
        """The positions of every ask, in order."""
        asks = [event["indices"] for event in self.happened if event["event"] == "ask"]
        return [[i for i in indices if i < self.places.points] for indices in asks]

    @property
    def grown(self) -> int:
        """How many events there were when the last class was added to others: weights from before do not fit."""
        numbers = [n for n, event in enumerate(self.happened, 1) if event["event"] == "classes"]
        return numbers[-1] if len(numbers) > 1 else 0

    def begin(self, event: Event) -> None:
        """The first event."""
        if self.directory is not None:
            journal.begin(self.path, event)
        self.happened = [event]

    def add_up(self, say: Say) -> None:
        """The labels that follow from the events of a journal."""
        whole, placed = Labels(), list[Event]()
        for number, event in enumerate(self.happened, 1):
            try:
                placed.append(self.places.placed(event))
                whole.add(placed[-1])
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{self.path}, line {number}: {error}") from error
        self.happened, self.labels = placed, whole.within(self.places.points)
        self._check_places(whole, say)

    def after(self, number: int) -> Labels:
        """The labels that follow from the first events."""
        return Labels.of(self.happened[:number]).within(self.places.points)

    def add(self, event: Event) -> None:
        """One more event, by positions: on disk first, so a crash loses nothing that was acknowledged."""
        self.check_open()
        if self.directory is not None:
            journal.append(self.path, self.places.named(event))
        self.happened.append(event)
        self.labels.add(event)

    def check_open(self) -> None:
        if self.closed:
            raise ValueError("this Learner is closed, and its directory may be in use elsewhere; make a new Learner")

    def close(self) -> None:
        self.closed = True
        self._lock.close()

    def _check_places(self, whole: Labels, say: Say) -> None:
        """Points beyond the pool: ids that it no longer has, or positions that it never had."""
        beyond = [i for i in (*whole.closed(), *whole.reserve) if i >= self.places.points]
        if beyond and self.places.ids is None:
            raise ValueError(
                f"{self.path} names point {max(beyond)}, but the pool has {self.places.points} points; "
                "pass the pool it was begun with"
            )
        gone = [i for i in whole.told if i >= self.places.points]
        if gone:
            say(
                f"{len(gone)} labelled points of {self.directory} are not in this pool, the first is "
                f"{self.places.id(gone[0])!r}: their labels stay in the journal, but are not trained on"
            )
