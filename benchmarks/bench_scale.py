"""What does a cluster cost, and what does it gain?  CPU seconds per point of Ray against one process.

    python benchmarks/bench_scale.py                  a head 256→10 with 100 draws over .npy files, 1 and 2 workers
    python benchmarks/bench_scale.py --simulate 1e8   points made from their positions: driver, journal, overhead

CPU seconds are those of the processes that score: this one, or the workers and this one; starting them is not counted
(a first pass over a few spans comes before). Memory is the peak of the largest worker. On a busy machine times are
too long and CPU seconds a little; the picks are compared in any case.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from peak import memory, peak
from torch import nn

import balent
from balent.data.pool import ranges
from balent.kernels.hashing import mixed, unit

WIDTH, HIDDEN, CLASSES, DRAWS, K = 256, 128, 10, 100, 500
POINTS = 1_000_000
TIMES = 10  # the larger pool, for memory
SPAN, FILE = 65_536, 262_144  # rows
ROWS = 1 << 32


@dataclass(frozen=True)
class Files:
    """A pool of .npy files of one length, read by workers themselves. position = (number of the file << 32) | row."""

    folder: str
    count: int
    rows: int
    unused: int = 0  # rows that the last file is shorter

    @property
    def size(self) -> int:
        return self.count * self.rows - self.unused

    @property
    def positions(self) -> torch.Tensor:
        return torch.cat([torch.arange(self._length(i)) | (i << 32) for i in range(self.count)])

    def blocks(self, points):
        for i in range(self.count):
            yield from self.part((i, 0, self._length(i))).blocks(points)

    def at(self, positions):
        return np.stack([np.load(self._path(p >> 32), mmap_mode="r")[p % ROWS] for p in positions.tolist()])

    def spans(self, rows):
        return [(i, s.start, s.stop) for i in range(self.count) for s in ranges(self._length(i), rows)]

    def part(self, span):
        return Part(self._path(span[0]), *span)

    def _length(self, number: int) -> int:
        return self.rows - (self.unused if number == self.count - 1 else 0)

    def _path(self, number: int) -> str:
        return f"{self.folder}/{number:05d}.npy"


@dataclass(frozen=True)
class Part:
    path: str
    number: int
    first: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.first

    def blocks(self, points):
        rows = np.load(self.path, mmap_mode="r")
        for start in range(self.first, self.stop, points):
            stop = min(start + points, self.stop)
            yield np.array(rows[start:stop]), torch.arange(start, stop) | (self.number << 32)


def written(folder: Path, points: int) -> Files:
    """The same file under many names: reading costs the same, and the disk holds it once."""
    first = folder / "rows.npy"
    if not first.exists():
        np.save(first, np.random.default_rng(0).standard_normal((FILE, WIDTH), dtype=np.float32))
    count = -(-points // FILE)
    for number in range(count):
        name = folder / f"{number:05d}.npy"
        if not name.exists():
            os.link(first, name)
    return Files(str(folder), count, FILE, count * FILE - points)


def head() -> balent.types.Sampled:
    torch.manual_seed(0)
    layers = nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Dropout(0.5), nn.Linear(HIDDEN, CLASSES)
    return balent.MCDropout(nn.Sequential(*layers)).sample(DRAWS, seed=0)


# ── one process and workers ──────────────────────────────────────────────────────────────────────


def seconds(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int) -> float:
    """MB, the highest so far, without pages of files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


@dataclass
class Run:
    wall: float
    cpu: float
    picks: balent.Picks
    peak: float = 0.0
    notes: list[str] = field(default_factory=list)


def local(sampled, pool) -> Run:
    wall, cpu = time.perf_counter(), seconds(os.getpid())
    picks = balent.acquire(sampled, pool, K, "balentacq")
    return Run(time.perf_counter() - wall, seconds(os.getpid()) - cpu, picks, peak())


def on_ray(sampled, pool, few, workers: int, **settings) -> Run:
    """Workers are started, and have the model, before the clock is."""
    import ray

    with balent.RayEngine(workers=workers, span_rows=SPAN, **settings) as engine:
        balent.acquire(sampled, few, K, "balentacq", engine=engine)
        handles = engine._crew.workers
        pids = [int(name.split()[1]) for name in ray.get([handle.ping.remote() for handle in handles])]
        everyone = [os.getpid(), *pids]
        wall, cpu = time.perf_counter(), sum(map(seconds, everyone))
        picks = balent.acquire(sampled, pool, K, "balentacq", engine=engine)
        return Run(
            time.perf_counter() - wall, sum(map(seconds, everyone)) - cpu, picks, max(peak_of(pid) for pid in pids)
        )


def same(one: balent.Picks, other: balent.Picks) -> bool:
    return one.indices.tolist() == other.indices.tolist() and one.scores.tolist() == other.scores.tolist()


def line(name: str, run: Run, points: int) -> None:
    each = f"{1e6 * run.cpu / points:7.1f} µs CPU per point"
    print(f"{name:34} {run.wall:8.1f} s {each} {run.peak:8.0f} MB", flush=True)


def compare(points: int, times: int) -> None:
    sampled = head()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        folder = Path(place)
        pool, few = written(folder, points), written(folder, 4 * SPAN)
        balent.acquire(sampled, few, K, "balentacq")
        runs = {"one process": local(sampled, pool)}
        for workers in (1, 2):
            runs[f"ray, {workers} workers"] = on_ray(sampled, pool, few, workers)
        for name, run in runs.items():
            line(name, run, points)
        base, one, two = runs.values()
        print(f"CPU of Ray / one process: {one.cpu / base.cpu:.2f} with 1 worker, {two.cpu / base.cpu:.2f} with 2")
        print(f"2 workers against 1: {one.wall / two.wall:.2f} times as fast")
        print(f"picks are the same: {all(same(run.picks, base.picks) for run in runs.values())}")
        if times > 1:
            small = on_ray(sampled, written(folder, points // times), few, 2)
            line(f"ray, 2 workers, {points // times:,} points", small, points // times)
            print(f"peak of a worker for a pool {times} times as large: {two.peak / small.peak - 1:+.1%}")


# ── 10⁸ points without their rows ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Made:
    """A pool without rows: a batch is its positions. In shards of 2²⁶ rows."""

    size: int
    shard = 1 << 26

    def spans(self, rows):
        shards = ranges(self.size, self.shard)
        return [(i, s.start, s.stop) for i, one in enumerate(shards) for s in ranges(len(one), rows)]

    def part(self, span):
        return MadePart(*span)

    def blocks(self, points):
        for span in self.spans(self.shard):
            yield from self.part(span).blocks(points)


@dataclass(frozen=True)
class MadePart:
    number: int
    first: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.first

    def blocks(self, points):
        for start in range(self.first, self.stop, points):
            at = torch.arange(start, min(start + points, self.stop)) | (self.number << 32)
            yield at, at


@dataclass(frozen=True)
class Cheap:
    """Two draws of two classes, made from the position."""

    traits = balent.types.Traits(n=2)

    def __call__(self, batch, positions=None):
        p = torch.stack([unit(mixed(mixed(seed, 0), batch)) for seed in (1, 2)], 1)
        return torch.stack([p, 1 - p], -1)

    def moments(self, batch, positions=None):
        return balent.Moments.of(self(batch, positions))


def simulate(points: int, workers: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        pool, few, before = Made(points), Made(4 * SPAN), memory("VmRSS")
        run = on_ray(Cheap(), pool, few, workers, journal=place)
        files = [path.stat().st_size for path in Path(place).rglob("*") if path.is_file()]
        spans = len(pool.spans(SPAN))
        print(f"{points:,} points in {spans:,} spans, {workers} workers: {run.wall:,.0f} s, {run.cpu:,.0f} CPU seconds")
        print(f"{1e6 * run.cpu / points:.2f} µs CPU per point; worker {run.peak:,.0f} MB at most")
        print(f"this process: {peak():,.0f} MB at most, {before:,.0f} MB at first; journal: {sum(files) / 1e6:,.1f} MB")
        print(f"picks: {run.picks.indices[:3].tolist()} …")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate", type=float, help="so many points made from their positions")
    parser.add_argument("--points", type=float, default=POINTS)
    parser.add_argument("--times", type=int, default=TIMES, help="1: leave out the smaller pool")
    parser.add_argument("--workers", type=int, default=2, help="of --simulate")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.simulate:
        simulate(int(asked.simulate), asked.workers)
    else:
        compare(int(asked.points), asked.times)
    sys.stdout.flush()
