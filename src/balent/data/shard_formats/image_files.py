"""A shard of image files: all images below a folder, or those that match a pattern, in the order of their names.

The keys are the paths below the folder, and so are the ids, with the folder before them.
"""

import hashlib
import io
from collections.abc import Iterator
from functools import partial

import numpy as np

from balent.data import storage
from balent.data.formats.endings import ENDINGS
from balent.data.shard_formats.pixels import pixels
from balent.data.shard_formats.reader import Wanted

BATCH = 64  # images decoded at a time
KEY = "path"


class ImageFiles:
    """Images as arrays of bytes [3, size, size]."""

    def __init__(self, path: str, wanted: Wanted) -> None:
        if wanted.key not in (None, KEY):
            raise ValueError(
                f"the key of images in {path} is their path, key={KEY!r}, but key={wanted.key!r} was given"
            )
        self.path, self.wanted, self.files = path, wanted, images(path)

    @property
    def rows(self) -> int:
        return len(self.files)

    def pieces(self, first: int, stop: int, points: int) -> Iterator[tuple[int, np.ndarray]]:
        while first < stop:
            end = min(stop, first - first % BATCH + BATCH)
            yield first, self._decoded(range(first, end))
            first = end

    def at(self, rows: np.ndarray) -> np.ndarray:
        return self._decoded(rows.tolist())

    def keys(self, first: int, stop: int) -> list[str]:
        return self.files[first:stop]

    def name(self, row: int) -> str:
        return self.files[row]

    def close(self) -> None:
        pass

    def _decoded(self, rows: "range | list[int]") -> np.ndarray:
        return pixels([partial(_opened, self.files[row]) for row in rows], self.wanted.size, rows)


def _opened(path: str) -> io.BufferedReader:
    return storage.opened(path)


def images(path: str) -> list[str]:
    """The image files below a folder, or of a pattern."""
    found = storage.matching(path) if storage.is_pattern(path) else storage.below(path)
    return [name for name in found if name.lower().endswith(ENDINGS)]


def about(path: str) -> storage.About:
    """The number of files, and a hash of their names: none of them is opened."""
    files = images(path)
    names = hashlib.sha256("\0".join(files).encode("utf-8", "surrogatepass")).hexdigest()
    return storage.About(len(files), names[:16], unit="files")
