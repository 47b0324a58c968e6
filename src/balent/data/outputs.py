"""Output files that the user named: replaced completely or left as they were.

A file is written beside its target under a unique name, and replaces the target when it is completely on disk.
A link is followed: the file that it points to is replaced. What has no content to replace (a device, a FIFO, an open
file such as /dev/stdout) is written to when all is done. "-" is standard output. No torch here: reports write too.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

STANDARD_OUTPUT = Path("-")
DESCRIPTOR = re.compile(r"(?:/dev|/proc/self)/fd/(\d+)")  # an open file, by its number
LINKS = 40  # in a row: as many as Linux follows
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writing; the system does not name the file


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to. The file gets its name when it is complete and on disk; after an error nothing changes."""
    old, target = _status(path), Path(os.path.realpath(path))
    if _is_stream(path, old):
        with fresh(unused(Path(tempfile.gettempdir()), target.name), mode=0o600) as partial, _named(path, partial):
            yield partial
            _copy(partial, path)
        return
    partial = unused(target.parent, target.name)
    with _named(path, partial), fresh(partial, mode=None if old is None else stat.S_IMODE(old.st_mode)):
        yield partial
        sync(partial)
        partial.replace(target)
        sync(target.parent)


def unused(directory: Path, name: str) -> Path:
    """A new path in the directory that cannot be guessed."""
    return directory / f".{name[:40]}.{secrets.token_hex(8)}.partial"


@contextlib.contextmanager
def fresh(partial: Path, mode: int | None = None) -> Iterator[Path]:
    """A new, empty file; removed at the end if it still has this name. Its mode follows the umask if none is given."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    handle = os.open(partial, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle):
            if mode is not None:
                os.fchmod(handle, mode)
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def write_unsynced(path: Path, content: bytes) -> None:
    """Replaces a file that can be made again. Readers find all of it, but a machine that fails may lose some."""
    with fresh(unused(path.parent, path.name)) as partial:
        partial.write_bytes(content)
        partial.replace(path)


def sync(path: Path) -> None:
    """On disk when this returns: a file, or the names in a directory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_standard_output(path: Path) -> bool:
    return path == STANDARD_OUTPUT or _number(path) == 1


def _is_stream(path: Path, old: os.stat_result | None) -> bool:
    regular = old is None or stat.S_ISREG(old.st_mode)
    return not regular or is_standard_output(path) or _number(path) is not None


def _status(path: Path) -> os.stat_result | None:
    """What is there already, links followed; an error if it must not be written to."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"the output must be a file, but {path} is a directory; name a file in it")
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is not writeable; name another file, or change its permissions")
    return found


def _number(path: Path) -> int | None:
    """Of the open file that /dev/stdout, /dev/fd/3 or a link to one of them stands for."""
    for _ in range(LINKS):
        if found := DESCRIPTOR.fullmatch(os.path.abspath(path)):
            return int(found[1])
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _copy(partial: Path, path: Path) -> None:
    with partial.open("rb") as source, _opened(path) as sink:
        shutil.copyfileobj(source, sink)
        sink.flush()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open files are appended to: opening them again would delete what was written before."""
    if is_standard_output(path):
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    number = _number(path)
    with path.open("wb") if number is None else os.fdopen(os.dup(number), "wb") as sink:
        yield sink


@contextlib.contextmanager
def _named(path: Path, partial: Path) -> Iterator[None]:
    """System errors name the file that the user named, not the temporary one."""
    try:
        yield
    except OSError as error:
        if error.filename != str(partial) and error.errno not in FULL:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
