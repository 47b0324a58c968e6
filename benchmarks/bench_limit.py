"""Can a process that may have 2 GB score a pool of 4 GB, and does its memory grow with the pool?

    python benchmarks/bench_limit.py [--gigabytes 4] [--limit 2] [--kind npy|parquet]

A pool of 0.4 GB and one of 4 GB, in shards of 64 MB. Each run is a process of its own, whose memory the system limits
(RLIMIT_DATA: all that is not a file; --limit). Memory is the highest, with and without pages of mapped files.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

WIDTH, ROWS = 256, 65_536  # numbers per point, rows per shard: 67 MB
STRATEGIES = ("balentacq", "power:bald", "auto", "core_mse")
SCORE = """
import sys, torch
sys.path.insert(0, sys.argv[3])
from peak import Anonymous, peak
from torch import nn
import balent

torch.manual_seed(0)
head = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10))
with Anonymous() as anonymous:
    shards = balent.Shards.of(sys.argv[1])
    balent.acquire(balent.MCDropout(head).sample(20, seed=0), shards, 500, sys.argv[2])
print(shards.size, peak(), anonymous.peak)
"""


def written(folder: Path, shards: int, kind: str) -> Path:
    """The same shard under many names: the disk holds it once."""
    folder.mkdir()
    rows = np.random.default_rng(0).standard_normal((ROWS, WIDTH), dtype=np.float32)
    first = folder / f"00000.{kind}"
    if kind == "npy":
        np.save(first, rows)
    else:
        import pyarrow
        from pyarrow import parquet

        lists = pyarrow.FixedSizeListArray.from_arrays(rows.reshape(-1), WIDTH)
        parquet.write_table(pyarrow.table({"x": lists}), first, row_group_size=4096)
    for number in range(1, shards):
        os.link(first, folder / f"{number:05d}.{kind}")
    return folder


def scored(folder: Path, strategy: str, limit: float) -> tuple[int, float, float]:
    """Points, and the highest memory in MB: with pages of files, and without."""
    most = int(limit * 1e9)
    run = subprocess.run(
        [sys.executable, "-c", SCORE, str(folder), strategy, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)),
    )
    if run.returncode:
        raise SystemExit(f"{strategy}: {run.stderr.strip().splitlines()[-1]}")
    points, peak, anonymous = run.stdout.split()
    return int(points), float(peak), float(anonymous)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--limit", type=float, default=2.0, help="GB that a process may have")
    parser.add_argument("--kind", choices=["npy", "parquet"], default="npy")
    asked = parser.parse_args()
    many = round(asked.gigabytes * 1e9 / (ROWS * WIDTH * 4))
    with tempfile.TemporaryDirectory() as place:
        pools = [written(Path(place) / str(n), n, asked.kind) for n in (max(1, many // 10), many)]
        print(f"{asked.kind}, at most {asked.limit} GB per process")
        for strategy in STRATEGIES:
            found = [scored(pool, strategy, asked.limit) for pool in pools]
            pages = ", ".join(
                f"{p:,} points ({p * WIDTH * 4 / 1e9:.1f} GB) {m:.0f} MB, {a:.0f} without pages of files"
                for p, m, a in found
            )
            print(f"{strategy:12} {pages}", flush=True)
