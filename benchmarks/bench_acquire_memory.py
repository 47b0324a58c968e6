"""Does the memory of `acquire` grow with the pool?

A pool of 2,500,000 points (50 times CIFAR-100; --points says otherwise) that exists only as a function from
position to features, a head 256 → 256 → 100 with last-layer dropout, 100 draws, the top 500 by BalEntAcq: all draws
would take 100 GB. A hundredth and a tenth of the pool are scored, each in a process of its own, and the peak above the
bare import is printed; the time of the whole is extrapolated from the larger part. --whole runs all of it.
"""

import argparse
import subprocess
import sys

# A child's ru_maxrss starts from what its parent held when it was started: so no torch in this process.
POINTS = 2_500_000
PARTS = (100, 10)
MEASURE = """
import resource, sys, time
import torch
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
torch_alone = peak()
from balent import MCDropout, acquire
from balent.paper.networks import bayesian_head

FEATURES, CLASSES, DRAWS, K = 256, 100, 100, 500


class Generated:
    def __init__(self, points):
        self.points = points

    def __len__(self):
        return self.points

    def __getitem__(self, i):
        return torch.randn(FEATURES, generator=torch.Generator().manual_seed(i))


torch.manual_seed(0)
sampled = MCDropout(bayesian_head(FEATURES, CLASSES)).sample(DRAWS)
bare = peak()
start = time.perf_counter()
acquire(sampled, Generated(int(sys.argv[1])), K)
print(torch_alone, bare, peak(), time.perf_counter() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--whole", action="store_true", help="score all points, not a tenth of them")
    arguments = parser.parse_args()
    scale = 1e6 if sys.platform == "darwin" else 1e3
    peaks, points = [], 0
    for part in (*PARTS, 1) if arguments.whole else PARTS:
        smaller, points = points, arguments.points // part
        command = [sys.executable, "-c", MEASURE, str(points)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        alone, bare, peak, seconds = (float(x) for x in run.stdout.split())
        peaks.append((peak - alone) / scale)
        print(
            f"{points:,} points: peak {peaks[-1]:.0f} MB above import torch ({alone / scale:.0f} MB), "
            f"{(bare - alone) / scale:.0f} of them import balent; {seconds:.1f} s",
            flush=True,
        )
    growth = (peaks[-1] - peaks[-2]) * 1e6 / (points - smaller)
    print(f"more for the larger pool: {peaks[-1] - peaks[-2]:.0f} MB, {growth:.0f} bytes a point added")
    if part > 1:
        print(f"{arguments.points:,} points: about {seconds * part / 60:.1f} minutes")


if __name__ == "__main__":
    main()
