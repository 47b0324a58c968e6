"""How fast do draws become scores, against torch as it is usually written and against reading memory once?

One pass with four measures (balentacq, bald, entropy, mean_sd) over float32 logits, all cores:

  balent   the compiled kernel, a block of the pool at a time
  (a)      float64 torch with everything materialised, as the authors' code does it
  (b)      the same formulas in float32 torch
  (c)      reading the array once (torch.sum)

All sides run in turn within one process; each counts its best of several.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from balent import kernels
from balent.acquisition.draws import Draws
from balent.acquisition.engines.local import Local
from balent.data.pool import Indexed
from balent.maths.measures import MEASURES
from balent.types import Batch, Indices, Sampled

CLASSES = (10, 100, 1000)
DRAWS = 100
ELEMENTS = 40_000_000  # 160 MB of float32: beyond the caches
REPEATS = 25
FOUR = ("balentacq", "bald", "entropy", "mean_sd")


def balent(logits: Tensor) -> None:
    for _ in Local().stream(Draws(logits, logits=True), Indexed(torch.arange(len(logits))), four):
        pass


def four(sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
    m = sampled.moments(batch, positions)
    return torch.stack([MEASURES[name](m) for name in FOUR], 1)


def materialised(logits: Tensor, dtype: torch.dtype) -> None:
    """Textbook formulas on the whole array, a thing at a time."""
    p = logits.to(dtype).softmax(-1)
    mean, var = p.mean(1), p.var(1, correction=0)
    entropy = -(mean * mean.log()).sum(-1)
    entropy - (-(p * p.log()).sum(-1).mean(1))  # BALD
    p.std(1, correction=0).mean(-1)  # MeanSD
    a = mean * mean * (1 - mean) / var - mean
    b = (1 / mean - 1) * a
    s = a + b + 1
    h = a.add(1).lgamma() + b.lgamma() - s.lgamma()
    h = h - a * (a + 1).digamma() - (b - 1) * b.digamma() + (s - 2) * s.digamma()
    balance = ((mean * h).sum(-1) + entropy) / (entropy + math.log(2))
    torch.where(balance >= 0, 1 / balance, balance)


def rate(work: Callable[[Tensor], object], x: Tensor) -> float:
    """Elements a second, best of several."""
    best = math.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        work(x)
        best = min(best, time.perf_counter() - start)
    return x.numel() / best


def main() -> None:
    print(f"kernel {kernels.active()}, {torch.get_num_threads()} threads, {DRAWS} draws, float32 logits")
    for classes in CLASSES:
        x = torch.randn(ELEMENTS // (DRAWS * classes), DRAWS, classes, generator=torch.Generator().manual_seed(0))
        part = x[: max(1, len(x) // 4)]  # the materialised ways need many times the memory of what they read
        ours, moments = rate(balent, x), rate(lambda y: kernels.moments(y, logits=True), x)
        a, b = (rate(lambda y, d=dtype: materialised(y, d), part) for dtype in (torch.float64, torch.float32))
        read, scratch = rate(torch.sum, x), torch.empty_like(part)
        exp = rate(lambda y, to=scratch: torch.exp(y, out=to), part)
        print(
            f"C = {classes:4d}: {ours / 1e6:5.0f} M/s with four measures ({moments / 1e6:.0f} M/s to moments): "
            f"{ours / a:.0f}x (a) {a / 1e6:.0f} M/s, {ours / b:.0f}x (b) {b / 1e6:.0f} M/s, "
            f"{read / ours:.1f} times as long as (c) {read / 1e6:.0f} M/s"
        )
        print(
            f"          bound by arithmetic, not by memory: exp alone (torch, in place) runs at {exp / 1e6:.0f} M/s; "
            f"the kernel moves {moments * 4 / 1e9:.1f} of {read * 4 / 1e9:.1f} GB/s"
        )


if __name__ == "__main__":
    main()
