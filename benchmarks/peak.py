"""Memory of this process, in MB. Needs nothing, so that peers in environments of their own use it too."""

import re
import resource
import sys
from pathlib import Path
from threading import Event, Thread


def memory(kind: str) -> float:
    """VmRSS is what it has now, VmHWM the highest so far (Linux)."""
    found = re.search(rf"{kind}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1e3


def peak() -> float:
    """The highest so far. What getrusage says of a process on Linux begins with what its parent held."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return memory("VmHWM")


class Anonymous:
    """The highest memory within a `with`, without pages of files: those the system takes back when it needs them.

    Looked at every few milliseconds (Linux), since the kernel keeps no peak of it.
    """

    def __enter__(self) -> "Anonymous":
        self.peak, self._done = memory("RssAnon"), Event()
        self._thread = Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.005):
            self.peak = max(self.peak, memory("RssAnon"))

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
