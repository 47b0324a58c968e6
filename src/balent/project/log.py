"""A journal that several processes append to: the lock is held for each append, not for life.

Before it appends, a process reads what others have written since its last look, so that an event is checked against
everything that is acknowledged. Each event has a key of its own, which stands in the file exactly once. No torch here.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

from balent.loop import journal
from balent.loop.journal import Record

PATIENCE = 30.0  # seconds to wait for others, who hold the lock for a few milliseconds each


class Log:
    """Lines of a file: those read so far are never read again."""

    def __init__(self, path: Path, lock: Path) -> None:
        self.path, self.lock = path, lock
        self._offset = 0
        self._line = 0

    def news(self) -> list[Record]:
        """Lines that were added since the last call, by any process. A torn last line is not one yet."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        if os.path.getsize(self.path) < self._offset:
            raise ValueError(f"{self.path} has become shorter; restore it, and open the project again")
        end = content.rfind(b"\n") + 1
        lines = content[:end].splitlines()
        found = [journal.parsed(self.path, self._line + i, line) for i, line in enumerate(lines, 1)]
        self._offset += end
        self._line += len(lines)
        return found

    def append(self, read: Callable[[list[Record]], Sequence[Record]]) -> None:
        """Appends what `read` makes of the news. It is on disk when this returns; after an error nothing was added."""
        with held(self.lock):
            self._mend()
            lines = read(self.news())
            if lines:
                journal.extend(self.path, lines)
                self.news()

    def _mend(self) -> None:
        """A process that was killed may have left a torn last line. It was never acknowledged: it is cut off."""
        if self.path.exists() and (size := self.path.stat().st_size):
            with self.path.open("rb") as file:
                file.seek(size - 1)
                whole = file.read() == b"\n"
            if not whole:
                journal.repair(self.path)


@contextlib.contextmanager
def held(lock: Path, patience: float = PATIENCE) -> Iterator[None]:
    """The lock, waited for. The system releases it however the process ends."""
    with journal.in_words(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _wait(handle, lock, patience)
        yield
    finally:
        os.close(handle)


def _wait(handle: int, lock: Path, patience: float) -> None:
    end = monotonic() + patience
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() > end:
                raise BlockingIOError(
                    f"{lock} has been held by another process for {patience:.0f} s; end that process, then try again"
                ) from None
            sleep(0.002)


def new_key() -> str:
    """Of an event: never given twice."""
    return secrets.token_hex(12)


def now() -> str:
    """The time, in UTC."""
    return written(datetime.now(UTC))


def written(time: datetime) -> str:
    """A time in UTC as journals hold it."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
