"""Limits of what a file may declare. Declared sizes are compared with them before memory is allocated.

A file of a few bytes can declare any size, and compressed zeros unpack to a thousand times their size. Known data
sets are far below these limits; each limit says how far.
"""

import gzip
from pathlib import Path

RATIO = 100  # bytes unpacked per byte of the file. The published sets stay below 6, deflate can reach 1,032
FLOOR = 1 << 28  # bytes that a file of any size may unpack to. The largest array of a published set has 225 MB
PIXELS = 1 << 24  # that an image file of any size may have; larger files may have RATIO pixels per byte
CLASSES = 100_000  # ImageNet-21k has 21,841. The last layer of a network has a row for each of them
DIGITS = 40  # of a label that is a number. Text such as 1e999999999 would be a number of a gigabyte
ELEMENTS = 1_000  # of a MATLAB file. SVHN has 2; each costs microseconds, also where it is empty
CHUNK = 1 << 20


def most(packed: int) -> int:
    """Bytes that a file of this size may unpack to."""
    return max(FLOOR, RATIO * packed)


def check(asked: int, packed: int, advice: str = "") -> None:
    """Refuses contents that are larger than a file of this size may have."""
    if asked > most(packed):
        raise ValueError(
            f"its contents would take {asked:,} bytes, but a file of {packed:,} bytes may have {most(packed):,} "
            f"(balent.data.formats.limits){advice and '; '}{advice}"
        )


def gunzipped(path: Path) -> bytes:
    """The contents of a .gz, unpacked no further than allowed."""
    size, chunks, came = path.stat().st_size, [], 0
    with gzip.open(path) as file:
        while chunk := file.read(CHUNK):
            came += len(chunk)
            check(came, size)
            chunks.append(chunk)
    return b"".join(chunks)
