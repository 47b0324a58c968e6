"""Does the memory of `balent score` grow with the file?

Writes .npy files of two sizes (the larger one 8 GB by default; --gigabytes says otherwise) into a
folder that is removed afterwards, scores each in a process of its own, and prints its peak above
the bare import of balent's parts (Linux: read from /proc).
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DRAWS, CLASSES = 100, 10
MEASURE = """
import re, sys, time
from pathlib import Path
from balent.acquisition import ranking
from balent.data import probabilities as reading
def highest():  # kB; of this program alone, not of the one that started it
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
bare = highest()
start = time.perf_counter()
source = reading.read(Path(sys.argv[1]))
ranking.Job(source, ("balentacq", "bald")).best(100, lambda n: None)
peak = highest()
print(bare, peak, time.perf_counter() - start)
"""


def write(path: Path, gigabytes: float) -> int:
    """Random probabilities, written in blocks; the number of points."""
    points = int(gigabytes * 1e9 / (4 * DRAWS * CLASSES))
    array = np.lib.format.open_memmap(path, "w+", np.float32, (points, DRAWS, CLASSES))
    block = np.random.default_rng(0).dirichlet(np.ones(CLASSES), (10_000, DRAWS)).astype(np.float32)
    for start in range(0, points, len(block)):
        array[start : start + len(block)] = block[: points - start]
    array.flush()
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    for gigabytes in (arguments.gigabytes / 8, arguments.gigabytes):
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = Path(folder) / "probabilities.npy"
            points = write(path, gigabytes)
            run = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
            bare, peak, seconds = (float(x) for x in run.stdout.split())
            scale = 1e3
            print(
                f"{gigabytes:4.1f} GB, {points:,} points: peak {(peak - bare) / scale:.0f} MB above the bare import "
                f"({bare / scale:.0f} MB), {seconds:.1f} s"
            )


if __name__ == "__main__":
    main()
