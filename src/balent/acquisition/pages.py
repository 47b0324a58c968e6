"""Keeps memory pages, so that arrays of one batch reuse those of the batch before.

glibc gives large arrays back to the system when they are freed, and the next one of that size is made of new
pages, each with a fault: a quarter of the time of a run on small networks. Processes that balent starts keep them.
"""

import contextlib
import ctypes

MMAP_MAX, TOP_PAD, TRIM_THRESHOLD = -4, -2, -1  # options of mallopt(3)


def keep() -> None:
    """Applies to the whole process, so only workers and commands call it. Has no effect without glibc."""
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_MAX, 0)  # no array has pages of its own
        mallopt(TRIM_THRESHOLD, -1)  # nothing is given back
        mallopt(TOP_PAD, 64 << 20)
