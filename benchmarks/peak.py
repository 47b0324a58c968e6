"""Memory of this process, in MB. Needs nothing, so that peers in environments of their own use it too."""

import re
import resource
import sys
from pathlib import Path


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
