"""A file of JSON lines that survives a crash: each line is on disk before it is acknowledged.

A process may be killed at any moment. Then the last line can be torn, and only the last: it was never
acknowledged, so it is cut off and what it said is done again. Damage elsewhere is an error. No torch here: reports
read records too.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from balent.data.outputs import sync as sync
from balent.data.outputs import whole as whole

FORMAT = 1
READABLE = (
    1,
    2,
    3,
)  # of journals; 2: they pin their pool by a fingerprint, 3: they name points by ids if there are some
PATIENCE = 2.0  # seconds that a killed process may take to release its directory

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """One more line: when this returns, it is on disk. When it raises, the file is what it was before."""
    extend(path, [record])


def extend(path: Path, records: Iterable[Record]) -> None:
    """Several lines at once, as `append`. A crash can keep the first of them only, each of these whole."""
    lines = b"".join(_line(record) for record in records)
    with in_words(path):
        new = not path.exists()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _append(handle, lines)
        finally:
            os.close(handle)
        if new:
            sync(path.parent)


def begin(path: Path, record: Record) -> None:
    """A file with its first line, or no file: one that lost its lines can then be told from one that never had any."""
    write(path, _line(record))


def _line(record: Record) -> bytes:
    # Names of files may not be UTF-8: what cannot be encoded is escaped, and \udce9 is JSON.
    return (json.dumps(record, allow_nan=False, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _append(handle: int, line: bytes) -> None:
    """Unbuffered: what is not written here can never reach the file later."""
    before = os.fstat(handle).st_size
    if before and os.pread(handle, 1, before - 1) != b"\n":
        raise OSError("its last line is incomplete; open the directory again, which repairs it")
    try:
        while line:
            line = line[os.write(handle, line) :]
        os.fsync(handle)
    except BaseException:
        os.ftruncate(handle, before)
        raise


def read(path: Path) -> list[Record]:
    """All lines that were acknowledged; none if there is no file."""
    return [] if not path.exists() else _parsed(path, *_split(path.read_bytes()))


def repair(path: Path) -> str | None:
    """Cut off a torn last line, so that appending is safe again, and report it."""
    if not path.exists():
        return None
    whole, torn = _split(path.read_bytes())
    _parsed(path, whole, torn)  # damage elsewhere is not touched
    if not torn:
        return None
    with in_words(path):
        if _complete(torn):
            with path.open("ab", buffering=0) as file:
                file.write(b"\n")
            return None
        if whole:
            os.truncate(path, len(whole))
        else:
            path.unlink()  # nothing was ever acknowledged; an empty file would look like one that lost its lines
    return f"the last line of {path} was torn when its process ended; it was cut off, and its step is done again"


def write(path: Path, content: bytes) -> None:
    """A whole file, or the one that was there before."""
    with in_words(path), whole(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Locks the directory for this process. The system releases the lock however the process ends."""
    with in_words(directory):
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / "lock").open("a+")
    with file:
        if not _taken(file.fileno()):
            file.seek(0)
            raise BlockingIOError(
                f"{directory} is in use by process {file.read().strip() or '?'}; wait for it, close its Learner, "
                "or use another directory"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _taken(handle: int) -> bool:
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > patience:
                return False
            time.sleep(0.05)


@contextlib.contextmanager
def in_words(path: Path) -> Iterator[None]:
    """Reports why writing failed, and that nothing is lost."""
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as error:
        raise OSError(
            f"{path} cannot be written: {error.strerror or error}; everything written before is intact: free space "
            "there, then run the same command again to continue (balent run with --resume)"
        ) from error


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and what comes after the last of them."""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _parsed(path: Path, whole: bytes, torn: bytes) -> list[Record]:
    lines = whole.splitlines() + ([torn] if _complete(torn) else [])
    return [parsed(path, number, line) for number, line in enumerate(lines, 1)]


def _complete(torn: bytes) -> bool:
    """Only the end of the line is missing, nothing of what it says."""
    with contextlib.suppress(ValueError, RecursionError):
        return isinstance(json.loads(torn), dict)
    return False


def parsed(path: Path, number: int, line: bytes) -> Record:
    """One line as a record; an error names the line that is damaged."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ValueError(
            f"{path}, line {number}, is damaged: {line[:40]!r}; restore the file, or remove the directory and run again"
        )
    if record.get("format", FORMAT) not in READABLE:
        raise ValueError(
            f"{path}, line {number}, has format {record['format']!r}, but this version of balent reads formats "
            f"{', '.join(map(str, READABLE))}; use the version that wrote it, or another directory"
        )
    return record
