"""A pool in several .npy files, cut into spans that a worker opens by itself."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

ROWS = 1 << 32


@dataclass(frozen=True)
class NpyFiles:
    """position = (number of the file << 32) | row"""

    paths: tuple[str, ...]
    lengths: tuple[int, ...]

    @classmethod
    def written(cls, folder, rows, each):
        paths = []
        for start in range(0, len(rows), each):
            paths.append(str(Path(folder) / f"{start:09d}.npy"))
            np.save(paths[-1], rows[start : start + each])
        return cls(tuple(paths), tuple(len(np.load(path, mmap_mode="r")) for path in paths))

    @property
    def size(self):
        return sum(self.lengths)

    @property
    def positions(self):
        return torch.cat([torch.arange(n) | (i << 32) for i, n in enumerate(self.lengths)])

    def blocks(self, points):
        for span in self.spans(max(self.lengths)):
            yield from self.part(span).blocks(points)

    def at(self, positions):
        return np.concatenate([np.load(self.paths[p >> 32], mmap_mode="r")[p % ROWS][None] for p in positions.tolist()])

    def spans(self, rows):
        return [(i, first, min(first + rows, n)) for i, n in enumerate(self.lengths) for first in range(0, n, rows)]

    def part(self, span):
        return Part(self.paths[span[0]], *span)


@dataclass(frozen=True)
class Part:
    path: str
    number: int
    first: int
    stop: int

    @property
    def size(self):
        return self.stop - self.first

    def blocks(self, points):
        rows = np.load(self.path, mmap_mode="r")
        for start in range(self.first, self.stop, points):
            stop = min(start + points, self.stop)
            yield np.array(rows[start:stop]), torch.arange(start, stop) | (self.number << 32)
