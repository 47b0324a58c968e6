"""What do a hundred draws of a network with dropout cost, against a hundred passes, and against baal?

From network to picks by BalEntAcq, milliseconds a point, M = 100 draws, for the paper's head on fixed features
(2048 → 2048 → 100, p = 0.2) and its CNN for MNIST (p = 0.5), random weights and inputs:

  balent   `acquire` on `MCDropout(...).sample(100)`, masks and sub-networks made anew each time
  (a)      M whole passes in plain torch, only dropout on, at the best of several batch sizes; then textbook
           formulas in float64 on all draws at once, as the authors' code does it (four measures, a small part)
  (b)      baal 2.1.0 with its BALD, as it has no BalEnt: its default, and the best of its ways; peer_baal.py
           says how to make its environment, --peers where it is

All sides run in turn, balent and (a) within one process; each counts its best of several. Other work on the
machine hurts two threads most: --threads 1 gives steadier ratios.
"""

import argparse
import math
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from bench_moments import materialised
from torch import Tensor, nn

from balent import MCDropout, acquire, kernels
from balent.paper.networks import CNNBNN, bayesian_head

DRAWS, K, REPEATS = 100, 25, 5
FEATURES, CLASSES, P = 2048, 100, 0.2
NETWORKS = {
    "head": (partial(bayesian_head, FEATURES, CLASSES, P), (FEATURES,)),
    "cnn": (CNNBNN, (1, 28, 28)),
}
POINTS = {"head": 8192, "cnn": 1024}  # for balent
FEWER = {"head": 512, "cnn": 256}  # for (a), and for masks per point
BATCHES = (64, 256, 512)
SQUARE = 2048  # side of the matrices whose product is the peak
FLOPS = 2 * FEATURES * (FEATURES + CLASSES + P * DRAWS * CLASSES)  # the prefix once, all units, those dropped


def best(*works: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Seconds of each, best of several, in turn."""
    seconds = [math.inf] * len(works)
    for _ in range(repeats):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    return seconds


def only_dropout(model: nn.Module) -> nn.Module:
    """The model in evaluation mode, but for its dropout."""
    for part in model.eval().modules():
        part.training = isinstance(part, nn.Dropout | nn.Dropout2d)
    return model


@torch.inference_mode()
def passes(model: nn.Module, x: Tensor, size: int) -> Tensor:
    """Logits [points, draws, classes], each draw a whole pass."""
    return torch.cat([torch.stack([model(batch) for _ in range(DRAWS)], 1) for batch in x.split(size)])


def picked(predictor: MCDropout, x: Tensor, masks: str) -> None:
    acquire(predictor.sample(DRAWS, masks=masks), x, K)


def baal(peers: Path | None, threads: int) -> dict[str, tuple[float, float, str]]:
    """Milliseconds a point by default and at best, and what was best."""
    python = peers and peers / "bin" / "python"
    if not python or not python.exists():
        print("baal: left out; --peers says where its environment is, peer_baal.py how to make it")
        return {}
    script = Path(__file__).with_name("peer_baal.py")
    run = subprocess.run([python, script, str(threads)], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in run.stdout.splitlines())
    return {name: (float(default), float(least), words) for name, default, least, words in rows}


def compared(name: str, peer: tuple[float, float, str] | None) -> None:
    make, shape = NETWORKS[name]
    x, few = torch.randn(POINTS[name], *shape), torch.randn(FEWER[name], *shape)
    predictor, plain = MCDropout(make()), only_dropout(make())
    logits, square = passes(plain, few, BATCHES[0]), torch.randn(SQUARE, SQUARE)
    shared, own, scoring, product, *whole = best(
        partial(picked, predictor, x, "shared"),
        partial(picked, predictor, few, "per-point"),
        partial(materialised, logits, torch.float64),
        partial(torch.mm, square, square),
        *(partial(passes, plain, few, size) for size in BATCHES),
    )
    ours, per_point, scored = (1e3 * s / n for s, n in ((shared, len(x)), (own, len(few)), (scoring, len(few))))
    tries = {size: 1e3 * s / len(few) for size, s in zip(BATCHES, whole, strict=True)}
    size = min(tries, key=tries.__getitem__)
    a = tries[size] + scored
    print(f"{name}: balent {ours:.3f} ms a point; with masks per point {per_point:.3f} ms")
    print(
        f"  {a / ours:.0f}x (a) {a:.2f} ms, batches of {size}, {scored:.2f} ms of it scoring "
        f"(passes alone, by batch: {', '.join(f'{n}: {ms:.2f}' for n, ms in tries.items())})"
    )
    if peer:
        default, least, words = peer
        print(
            f"  {default / ours:.0f}x (b) {default:.2f} ms; {least / ours:.0f}x its best way, {least:.2f} ms ({words})"
        )
    if name == "head":
        rate, peak = FLOPS * len(x) / shared / 1e9, 2 * SQUARE**3 / product / 1e9
        print(f"  {rate / peak:.0%} of the peak end to end: {rate:.0f} of {peak:.0f} Gflop/s (a product of {SQUARE}³)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="folder of the environment with baal")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    print(f"kernel {kernels.active()}, {arguments.threads} threads, {DRAWS} draws")
    peer = baal(arguments.peers, arguments.threads)
    for name in NETWORKS:
        compared(name, peer.get(name))


if __name__ == "__main__":
    main()
