"""A disk that is full, for this process alone."""

import contextlib
import resource


@contextlib.contextmanager
def room_up_to(size):
    """Within, no file may grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
