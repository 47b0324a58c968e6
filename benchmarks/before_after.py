"""Is one version of balent as fast as another?  CPU seconds of the same work, in turn, the best of several.

    git worktree add OLD COMMIT    (and copy the compiled kernel, src/balent/kernels/_native*.so, into it)
    python benchmarks/before_after.py OLD/src src

Each version runs in a process of its own with one thread. Work: `acquire` by BalEntAcq on the networks of
bench_mc_dropout.py, and strategies of bench_strategies.py from probabilities and features to picks.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

NAMES = ("head", "head, masks per point", "cnn", "badge", "core_set", "diverse:balentacq", "balentacq")
POINTS, CLASSES, FEATURES, K = 20_000, 100, 512, 100


def works() -> dict[str, Callable[[], object]]:
    import numpy as np
    import torch

    from balent import Draws, MCDropout, acquire
    from balent.paper.networks import CNNBNN, bayesian_head

    torch.set_num_threads(1)
    torch.manual_seed(0)
    head, cnn = bayesian_head(2048, CLASSES, 0.2), CNNBNN()
    x, images = torch.randn(4096, 2048), torch.randn(768, 1, 28, 28)
    rng = np.random.default_rng(0)
    p = torch.from_numpy(3 * rng.standard_normal((POINTS, 2, CLASSES), dtype=np.float32)).softmax(-1).numpy()
    draws = Draws(p, features=rng.standard_normal((POINTS, FEATURES), dtype=np.float32).clip(min=0))

    def of_network(model, pool, masks="shared"):
        return lambda: acquire(MCDropout(model).sample(100, seed=0, masks=masks), pool, 25, "balentacq")

    def of_draws(strategy):
        return lambda: acquire(draws, np.arange(POINTS), K, strategy)

    networks = [of_network(head, x), of_network(head, x[:512], "per-point"), of_network(cnn, images)]
    return dict(zip(NAMES, [*networks, *map(of_draws, NAMES[3:])], strict=True))


def work(source: str) -> None:
    """A worker: does what is named on a line of standard input, and prints its seconds."""
    sys.path.insert(0, source)
    known = works()
    for line in sys.stdin:
        start = time.process_time()
        known[line.strip()]()
        print(time.process_time() - start, flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("before", help="the folder src of one version")
    asked.add_argument("after", nargs="?", help="the folder src of the other")
    asked.add_argument("--repeats", type=int, default=10)
    args = asked.parse_args()
    if args.after is None:
        return work(args.before)
    words = ([sys.executable, __file__, source] for source in (args.before, args.after))
    workers = [subprocess.Popen(w, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for w in words]
    for name in NAMES:
        seconds = [[seconds_of(worker, name) for worker in workers] for _ in range(args.repeats)]
        before, after = (min(column) for column in zip(*seconds, strict=True))
        print(f"{name:24s} before {before:6.3f} s   after {after:6.3f} s   ratio {before / after:.2f}", flush=True)
    for worker in workers:
        worker.communicate()
    return None


def seconds_of(worker: subprocess.Popen[str], name: str) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{name}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


if __name__ == "__main__":
    main()
