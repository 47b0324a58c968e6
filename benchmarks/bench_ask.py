"""How long does a person wait for the next questions?  From `balent ask` on a ready project to the file.

    python benchmarks/bench_ask.py [--sizes 3000,100000] [--width 1280]

Projects of generated features (width 1280 is that of EfficientNet-Lite0), 100 labels, features computed before. Seconds
are those of the whole command, Python's start included: the best of three, on the clock and of the CPU.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from balent import Project

CLASSES, LABELS, TIMES = 10, 100, 3


def ready(place: Path, items: int, width: int) -> Project:
    """A project with labels and features."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=items)
    rows = rng.normal(size=(CLASSES, width))[truth] + 2 * rng.normal(size=(items, width))
    np.save(place / "rows.npy", rows.astype(np.float32))
    project = Project.create(place / "rows.balent", place / "rows.npy", classes=[str(c) for c in range(CLASSES)])
    project.tell({str(i): str(truth[i]) for i in range(LABELS)})
    project.compute_features()
    return project


def seconds(project: Project, output: Path) -> tuple[float, float]:
    """Of one `balent ask`: on the clock, and of the CPU."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    command = [
        sys.executable,
        "-c",
        "from balent.apps.cli import app; app()",
        "ask",
        str(project.path),
        "-o",
        str(output),
    ]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return perf_counter() - start, used


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sizes", default="3000,100000")
    asked.add_argument("--width", type=int, default=1280)
    args = asked.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; seconds from `balent ask` to the file, best of {TIMES}")
    for items in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as place:
            project = ready(Path(place), items, args.width)
            clock, cpu = zip(*(seconds(project, Path(place) / f"{i}.csv") for i in range(TIMES)), strict=True)
            print(
                f"{items:8d} items of {args.width} numbers: {min(clock):5.1f} s, {min(cpu):5.1f} s of the CPU",
                flush=True,
            )


if __name__ == "__main__":
    main()
