"""Encoded images as arrays [images, 3, size, size] of bytes, several decoded side by side."""

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from balent.data.formats.image_file import Picture, pillow, square
from balent.data.shard_formats.reader import Unreadable

THREADS = 8


def pixels(files: Sequence[Callable[[], io.BufferedIOBase]], size: int, rows: Sequence[int]) -> np.ndarray:
    """Upright and in colour, cropped around the centre. `rows` are their numbers, for errors."""
    pillow()

    def decoded(i: int) -> np.ndarray:
        try:
            return square(Picture(f"row {rows[i]}", files[i]), size)
        except Exception as error:  # a damaged image can raise anything
            why = f"the image cannot be decoded: {type(error).__name__}: {str(error)[:100]}"
            raise Unreadable(rows[i], rows[i] + 1, why) from None

    found = np.empty((len(files), 3, size, size), np.uint8)
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as workers:
        for i, image in enumerate(workers.map(decoded, range(len(files)))):
            found[i] = image
    return found
