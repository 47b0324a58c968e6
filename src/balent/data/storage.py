"""Files on this machine, or in object storage behind `scheme://` (through fsspec): found, described, read by ranges.

Object storage fails now and then, so each request is tried a few times, with a longer pause each time. A file that does
not exist, or that may not be read, is reported at once. Nothing here is kept open between requests, so what is opened
can be used in any thread. No torch here.
"""

import glob
import io
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from balent.data.formats.files import below as files_below

TRIES = 5
PAUSE = 0.1  # seconds before the second try; doubled before each further one
BUFFER = 1 << 20  # bytes per request, at least
LATER = (ValueError, TypeError, LookupError, ImportError, NotImplementedError, MemoryError)  # trying again is no use
FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)  # nor is it here
EXTRAS = {"s3": "s3", "s3a": "s3"}  # of balent, by scheme; for others fsspec says what it needs
Result = TypeVar("Result")


@dataclass(frozen=True)
class About:
    """A file's size, and what changes with its content: an etag, or the time of the last change."""

    size: int
    stamp: str
    unit: str = "bytes"


def is_remote(path: str) -> bool:
    return "://" in path


def is_pattern(path: str) -> bool:
    return glob.has_magic(path)


def matching(pattern: str) -> list[str]:
    """Paths of the files that match a pattern, in the order of their names; ** stands for any folders."""
    if not is_remote(pattern):
        return sorted(os.path.normpath(path) for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
    files, inner = filesystem(pattern)
    return sorted(files.unstrip_protocol(path) for path in patiently(pattern, lambda: files.glob(inner)))


def below(folder: str) -> list[str]:
    """Paths of all files below a folder, in the order of their names; hidden ones are left out."""
    if not is_remote(folder):
        return sorted(os.path.normpath(os.path.join(folder, name)) for name in files_below(Path(folder)))
    files, inner = filesystem(folder)
    found = patiently(folder, lambda: files.find(inner))
    return sorted(files.unstrip_protocol(path) for path in found if not _hidden(path[len(inner) :]))


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def is_folder(path: str) -> bool:
    if not is_remote(path):
        return os.path.isdir(path)
    files, inner = filesystem(path)
    return bool(patiently(path, lambda: files.isdir(inner)))


def about(path: str) -> About:
    """Size and stamp of a file."""
    if not is_remote(path):
        stat = os.stat(path)
        return About(stat.st_size, str(stat.st_mtime_ns))
    files, inner = filesystem(path)
    found = patiently(path, lambda: _fresh(files, inner))
    return About(int(found["size"]), _stamp(found))


def _fresh(files: Any, inner: str) -> dict[str, Any]:
    """What the storage says now, not what it said when a folder was listed."""
    files.invalidate_cache(files._parent(inner))
    return files.info(inner)


def _stamp(found: dict[str, Any]) -> str:
    for name in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created"):
        value = found.get(name)
        if value is not None:
            return value.isoformat() if isinstance(value, datetime) else str(value).strip('"')
    return ""


def opened(path: str, buffer: int = BUFFER) -> io.BufferedReader:
    """A file to read from, at any place."""
    return open(path, "rb") if not is_remote(path) else io.BufferedReader(Ranges(path, about(path).size), buffer)


def contents(path: str) -> bytes:
    """All bytes of a small file."""
    with opened(path) as file:
        return file.read()


class Ranges(io.RawIOBase):
    """A remote file of known size, each read of which is a request of its own."""

    def __init__(self, path: str, size: int) -> None:
        self.path, self.size, self.at = path, size, 0
        self.files, self.inner = filesystem(path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.size}[whence]
        self.at = max(0, start + offset)
        return self.at

    def readinto(self, buffer: Any) -> int:
        stop = min(self.at + len(buffer), self.size)
        if stop <= self.at:
            return 0
        found = patiently(self.path, lambda: self._range(self.at, stop))
        memoryview(buffer)[: len(found)] = found
        self.at = stop
        return len(found)

    def _range(self, start: int, stop: int) -> bytes:
        found = self.files.cat_file(self.inner, start=start, end=stop)
        if len(found) != stop - start:
            raise OSError(f"{stop - start:,} bytes from byte {start:,} were asked for, but {len(found):,} came")
        return found


def patiently(path: str, work: Callable[[], Result]) -> Result:
    """The result of a request, tried again a few times if it fails."""
    for attempt in range(TRIES):
        try:
            return work()
        except FINAL + LATER:
            raise
        except Exception as error:  # each storage has its own kinds
            failed = error
            if attempt < TRIES - 1:
                time.sleep(PAUSE * 2**attempt)
    raise ConnectionError(
        f"{path} could not be read: {TRIES} attempts failed, the last with {type(failed).__name__}: "
        f"{str(failed)[:200]}; look at the storage, and run the same again"
    ) from failed


def filesystem(path: str) -> tuple[Any, str]:
    """fsspec's file system for a path, and the path within it."""
    scheme = path.partition("://")[0]
    try:
        import fsspec
    except ImportError:
        raise ValueError(f"{path} needs fsspec; install it with: pip install 'balent[s3]'") from None
    try:
        return fsspec.core.url_to_fs(path)
    except ImportError as error:
        advice = f"pip install 'balent[{EXTRAS[scheme]}]'" if scheme in EXTRAS else str(error)
        raise ValueError(f"{scheme}:// needs a package that is not installed; install it with: {advice}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be opened, since {error}; schemes are s3, gs, https and so on") from None
