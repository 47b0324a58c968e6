"""Lines of JSON that outlive a crash: appended one at a time, on disk before they are acknowledged.

A process may be killed at any moment. Then the last line can be torn, and only the last: it was never
acknowledged, so it is cut off and what it said is done again. Damage elsewhere is an error. No torch here: reports
read records too.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT = 1
PATIENCE = 2.0  # seconds: so long may a process that was killed take to let go of its directory

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """One more line: when this returns, it is on disk."""
    line = json.dumps(record, allow_nan=False, ensure_ascii=False) + "\n"
    with in_words(path):
        new = not path.exists()
        with path.open("ab") as file:
            before = file.tell()
            try:
                file.write(line.encode("utf-8", "backslashreplace"))  # names of files may not be UTF-8: \udce9 is JSON
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    os.truncate(path, before)
                raise
        if new:
            sync(path.parent)


def read(path: Path) -> list[Record]:
    """All lines that were acknowledged; none if there is no file."""
    return [] if not path.exists() else _parsed(path, *_split(path.read_bytes()))


def repair(path: Path) -> str | None:
    """Cut off a torn last line, so that appending is safe again, and say so."""
    if not path.exists():
        return None
    whole, torn = _split(path.read_bytes())
    _parsed(path, whole, torn)  # damage elsewhere is not touched
    if not torn:
        return None
    with in_words(path):
        if _complete(torn):
            with path.open("ab") as file:
                file.write(b"\n")
            return None
        os.truncate(path, len(whole))
    return f"the last line of {path} was torn when its process ended; it was cut off, and what it said is done again"


def write(path: Path, content: bytes) -> None:
    """A whole file, or the one that was there before."""
    with in_words(path), whole(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file: it appears under its name when it is complete and on disk; else all is as before."""
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """On disk when this returns: a file, or the names in a directory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """The directory is ours alone. The system takes the lock back however the process ends."""
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
    """Why the disk refused, and that nothing is lost."""
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as error:
        raise OSError(
            f"{path} cannot be written: {error.strerror or error}; what was written before is intact, and the same "
            "command goes on from there (balent run with --resume)"
        ) from error


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and what comes after the last of them."""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _parsed(path: Path, whole: bytes, torn: bytes) -> list[Record]:
    lines = whole.splitlines() + ([torn] if _complete(torn) else [])
    return [_record(path, number, line) for number, line in enumerate(lines, 1)]


def _complete(torn: bytes) -> bool:
    """Only the end of the line is missing, nothing of what it says."""
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(torn), dict)
    return False


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise ValueError(
            f"{path}, line {number}, is damaged: {line[:40]!r}; restore the file, or remove the directory and run again"
        )
    if record.get("format", FORMAT) != FORMAT:
        raise ValueError(
            f"{path}, line {number}, has format {record['format']!r}, but this version of balent reads format "
            f"{FORMAT}; use the version that wrote it, or another directory"
        )
    return record
