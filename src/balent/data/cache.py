"""A cache of decoded data: written once, mapped into memory at every later start.

An entry belongs to the names, sizes and times of the files it was made from. When one of them changes, it is made
again. Of several processes one decodes and the others wait. Arrays are .npy, the rest is JSON; nothing is pickled.
BALENT_CACHE names the folder; without it, the cache is in the data folder or, if that is not writeable, in the user's
cache folder.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from balent.data import arrays
from balent.data.formats.contents import Data, image_of
from balent.data.views import Images

VARIABLE = "BALENT_CACHE"
FORMAT = 2  # 2: ids of points
PARTS = ("train", "test")

Block = tuple[np.ndarray, np.ndarray]  # points, labels


@dataclass(frozen=True)
class Part:
    """The pool or the test set, read a block at a time: at most `most` points of this shape."""

    most: int
    point: tuple[int, ...]
    blocks: Iterable[Block]
    dtype: Any = np.uint8
    ids: list[str] = field(default_factory=list)  # of the points, if they have any; complete when all blocks are read

    @classmethod
    def whole(cls, x: np.ndarray, y: np.ndarray) -> "Part":
        return cls(len(x), x.shape[1:], [(x, y)], x.dtype)


@dataclass(frozen=True)
class Decoded:
    """The decoded files. `notes` is called after all blocks are read, and may raise."""

    train: Part
    test: Part
    names: tuple[str, ...]
    notes: Callable[[], Sequence[str]]


def cached(
    name: str, folder: Path, files: Sequence[Path | str], decode: Callable[[], Decoded], settings: object = ""
) -> Data:
    """The data that `decode` makes of these files, from the cache if they have not changed.

    name      of the data set, for the name of the cached files
    folder    the folder of the files; the cache is below it
    files     paths, or names below the folder
    decode    reads the files; called only if the cache has no result
    settings  of `decode`: other settings are cached apart
    """
    place = _place(folder)
    kind = f"{name[:40]}-{_digest(str(folder.resolve()), repr(settings), 1)[:8]}"
    target = place / f"{kind}-{_digest(FORMAT, *_stamps(folder, files))[:16]}"
    with _alone(place / f"{kind}.lock"):
        found = _read(target)
        if found is None:
            _write(target, decode())
            found = _read(target)
            _forget(place, kind, target)
    if found is None:
        raise OSError(f"{target} was written, but cannot be read again; check the disk")
    return found


def _place(folder: Path) -> Path:
    """The first directory for arrays that can be made and written to."""
    named = os.environ.get(VARIABLE)
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "balent"
    for place in [Path(named)] if named else [folder / ".balent-cache", own]:
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                return place
    raise OSError(
        f"decoded data can be written neither below {folder} nor in {named or own}; set {VARIABLE} to a folder"
    )


def _stamps(folder: Path, files: Sequence[Path | str]) -> Iterator[str]:
    """Strings throughout, since there may be a million of them."""
    for name in files:
        path = name if isinstance(name, Path) else os.path.join(folder, name)
        stat = os.stat(path, follow_symlinks=os.path.exists(path))  # a broken link is reported when it is decoded
        yield f"{name} {stat.st_size} {stat.st_mtime_ns}"


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time. The system releases the lock however the process ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(target: Path, decoded: Decoded) -> None:
    """All files or none: the directory gets its name when they are on disk."""
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a process that was killed; the lock is ours
    shutil.rmtree(target, ignore_errors=True)  # cannot be read
    try:
        partial.mkdir()
        for part in PARTS:
            _write_part(partial, part, getattr(decoded, part))
        about = {"names": decoded.names, "notes": [*decoded.notes()]}
        (partial / "about.json").write_text(json.dumps(about, indent=1), encoding="ascii")  # names may not be UTF-8
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_part(place: Path, name: str, part: Part) -> None:
    labels = [np.empty(0, np.int64)]
    with (place / f"x_{name}.npy").open("wb") as file:
        _header(file, part, part.most)
        start = file.tell()
        for x, y in part.blocks:
            with _in_words(place):
                np.ascontiguousarray(x, part.dtype).tofile(file)
            labels.append(y.astype(np.int64))
        y_all = np.concatenate(labels)
        with _in_words(place):
            file.seek(0)
            _header(file, part, len(y_all))  # of the same length: numpy leaves room for the first axis to grow
            assert file.tell() == start
            file.flush()
            os.fsync(file.fileno())
    np.save(place / f"y_{name}.npy", y_all)
    if part.ids:
        np.save(place / f"ids_{name}.npy", np.array(part.ids))


@contextlib.contextmanager
def _in_words(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            f"decoded data cannot be written to {place.parent}: {error.strerror or error}; make room there, or set "
            f"{VARIABLE} to another folder"
        ) from error


def _header(file: BinaryIO, part: Part, count: int) -> None:
    descr = np.lib.format.dtype_to_descr(np.dtype(part.dtype))
    about = {"descr": descr, "fortran_order": False, "shape": (count, *part.point)}
    np.lib.format.write_array_header_1_0(file, about)


def _read(target: Path) -> Data | None:
    """The entry, mapped; None if there is none or it is incomplete."""
    if not target.is_dir():
        return None
    with contextlib.suppress(ValueError, TypeError, KeyError, OSError):
        about = json.loads((target / "about.json").read_text(encoding="utf-8"))
        x_train, x_test = (_points(target / f"x_{part}.npy") for part in PARTS)
        y_train, y_test = (torch.from_numpy(arrays.npy(target / f"y_{part}.npy", "c")) for part in PARTS)
        names, notes = tuple(about["names"]), tuple(about["notes"])
        ids = (_ids(target / f"ids_{part}.npy") for part in PARTS)
        if len(x_train) == len(y_train) and len(x_test) == len(y_test):
            return Data(x_train, y_train, x_test, y_test, len(names), image_of(x_train), names, notes, *ids)
    return None


def _points(path: Path) -> Images | Tensor:
    """Bytes are images. Memory that is copied when written to suits torch, and never reaches the file."""
    array = arrays.npy(path, "c")
    return Images(array) if array.dtype == np.uint8 else torch.from_numpy(array)


def _ids(path: Path) -> np.ndarray | None:
    return arrays.npy(path, "c") if path.exists() else None


def _forget(place: Path, kind: str, target: Path) -> None:
    """Removes the entries of earlier versions of the files."""
    for other in place.iterdir():
        if other.name.startswith(f"{kind}-") and other != target and other.is_dir():
            shutil.rmtree(other, ignore_errors=True)
