"""Does jitter make shared masks behave as masks of each point's own, and at what cost?

A head trained as in bench_draws.py scores a pool in which every point stands three times, with BalEntAcq and 100
draws, once for each of several seeds:

  repeats   the share of a batch that another seed buys as well (copies of a point count as one)
  copies    the share of the picks that have a copy in the same batch
  time      from functions to picks, best of the seeds
"""

import time
from collections.abc import Sequence
from itertools import combinations

import torch
from bench_draws import LABELS_PER_CLASS, features, trained
from torch import Tensor

from balent import MCDropout, acquire

CLASSES = (10, 100)
POINTS, COPIES = 5_000, 3
DRAWS, K, SEEDS = 100, 100, 8
WAYS = {
    "shared": ("shared", "independent", "balentacq"),
    "per point": ("per-point", "independent", "balentacq"),
    "shared, jitter": ("shared", "independent", "jitter:balentacq"),
    "matched, jitter": ("shared", "matched", "jitter:balentacq"),
    "shared, power": ("shared", "independent", "power:balentacq"),
    "random": ("shared", "independent", "random"),
}


def bought(predictor: MCDropout, pool: Tensor, way: tuple[str, str, str], seed: int) -> tuple[Tensor, float]:
    """The points of a batch, by a number that copies share, and the seconds it took."""
    masks, design, strategy = way
    sampled = predictor.sample(DRAWS, seed=seed, masks=masks, design=design)
    sampled.moments(pool[:2], torch.arange(2))  # plans are made from the first batch
    start = time.perf_counter()
    picks = acquire(sampled, pool, K, strategy, seed=seed)
    return picks.indices % POINTS, time.perf_counter() - start


def repeats(batches: Sequence[Tensor]) -> float:
    points = [set(batch.tolist()) for batch in batches]
    return mean([2 * len(a & b) / (len(a) + len(b)) for a, b in combinations(points, 2)])


def copies(batches: Sequence[Tensor]) -> float:
    counts = [batch.unique(return_counts=True)[1] for batch in batches]
    return mean([float(count[count > 1].sum()) / K for count in counts])


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def compared(classes: int) -> None:
    generator = torch.Generator().manual_seed(1)
    predictor, x = trained(*features(classes, POINTS + LABELS_PER_CLASS * classes, generator), generator)
    pool = x.repeat(COPIES, 1)
    print(f"{len(pool):,} points, {COPIES} of each; top {K} by {DRAWS} draws, {SEEDS} seeds")
    print(f"{'masks':16s} repeats  copies     time")
    found = {}
    for name, way in WAYS.items():
        batches, seconds = zip(*(bought(predictor, pool, way, seed) for seed in range(SEEDS)), strict=True)
        found[name] = repeats(batches), copies(batches), min(seconds)
        print(f"{name:16s} {found[name][0]:7.2f} {found[name][1]:7.2f} {found[name][2] * 1e3:5.0f} ms", flush=True)
    ways = ("shared", "per point", "shared, jitter")
    (_, tied, plain), (_, own, slow), (_, apart, quick) = (found[way] for way in ways)
    print(
        f"Picks with a copy in the batch: {tied:.0%} under shared masks, {own:.0%} under masks per point, {apart:.0%} "
        f"with jitter; masks per point take {slow / plain:.1f} times as long, jitter {quick / plain:.1f} times."
    )


if __name__ == "__main__":
    for classes in CLASSES:
        compared(classes)
