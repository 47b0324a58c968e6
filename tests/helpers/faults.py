"""A pool and draws for tests that kill processes: slow enough to be killed in the middle, and they leave traces."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from balent import Moments, RayEngine, acquire
from helpers.examples import probabilities
from helpers.spanned import NpyFiles

PROBABILITIES = probabilities(257, 8, 3)


@dataclass(frozen=True)
class Traced(NpyFiles):
    """Files that tell which spans were begun, and by which process."""

    trace: str = ""

    def part(self, span):
        with Path(self.trace).open("a") as file:
            file.write(f"{os.getpid()} {span[1]}\n")
        return super().part(span)

    def begun(self):
        """(process, first row) of each span that a worker began."""
        lines = Path(self.trace).read_text().splitlines() if Path(self.trace).exists() else []
        return [(int(a), int(b)) for a, b in (line.split() for line in lines)]

    def blocks(self, points):
        for span in self.spans(max(self.lengths)):
            yield from super().part(span).blocks(points)


@dataclass(frozen=True)
class Slow:
    """Draws that are a function of the position; each block takes a while."""

    seconds: float = 0.01

    def __call__(self, batch, positions=None):
        time.sleep(self.seconds)
        row = positions & 0xFFFFFFFF
        return PROBABILITIES[(row * 7919) % 257] * (1 - 1e-6 * row[:, None, None]) + 1e-6 * row[:, None, None] / 3

    def moments(self, batch, positions=None):
        return Moments.of(self(batch, positions))


def run(pool, trace, journal, workers):
    """What a process does that is killed: it prints its picks, if it comes so far."""
    paths = sorted(str(path) for path in Path(pool).glob("*.npy"))
    files = Traced(tuple(paths), (ROWS,) * len(paths), trace)
    with RayEngine(workers=workers, span_rows=1024, journal=journal, say=print) as engine:
        picks = acquire(Slow(), files, 20, "bald", engine=engine)
    print("picks", picks.indices.tolist(), [score.hex() for score in picks.scores.tolist()])


ROWS = 12 * 1024

if __name__ == "__main__":
    torch.set_num_threads(1)
    run(*sys.argv[1:4], int(sys.argv[4]))
