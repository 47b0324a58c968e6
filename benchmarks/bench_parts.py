"""How long does it take to score 200 images of 256 x 256 pixels by BalEntAcq per pixel, and how much memory?

Two ways in one run, on the same small U-Net, 5 classes, 20 draws, best of several each:

- ours: `acquire` with `balent.Parts`; what precedes the first dropout runs once, moments are one compiled pass;
- plainly: the whole module once per draw, all draws of an image kept, then the definition in float64 torch.

The plain way is linear in images, so it is timed on a few of them (--plain) and scaled up; `passes` is what the network
alone takes of it. Two places of dropout: before the last layer, where ours runs the network once and the last layer 20
times, and in the middle, where ours runs the decoder 20 times and the gain is that of scoring. --memory scores all
images in a process that does nothing else, and prints the highest memory it had, torch and images included.

    OMP_NUM_THREADS=1 python benchmarks/bench_parts.py [--images 200] [--memory]
"""

import argparse
import math
import time
from collections.abc import Callable

import torch
from peak import peak
from torch import Tensor, nn

import balent

SIZE, CLASSES, DRAWS, K = 256, 5, 20, 10
LOG2 = math.log(2)


class UNet(nn.Module):
    """Two levels down, two up. Dropout of channels in the `middle`, where images are small, or before the `last`."""

    def __init__(self, where: str, classes: int = CLASSES, width: int = 8) -> None:
        super().__init__()
        self.one, self.two, self.low = twice(1, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.up_two, self.up_one = twice(6 * width, 2 * width), twice(3 * width, width)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.middle = nn.Dropout2d(0.3) if where == "middle" else nn.Identity()
        self.last = nn.Dropout2d(0.3) if where == "last" else nn.Identity()
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.one(x)
        two = self.two(self.pool(one))
        low = self.middle(self.low(self.pool(two)))
        two = self.up_two(torch.cat([self.up(low), two], 1))
        return self.head(self.last(self.up_one(torch.cat([self.up(two), one], 1))))


def twice(inside: int, outside: int) -> nn.Sequential:
    first, second = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


def predictor(where: str) -> balent.Parts:
    torch.manual_seed(0)
    return balent.Parts(balent.MCDropout(UNet(where)), class_axis=1)


def ours(model: balent.Parts, images: Tensor) -> balent.Picks:
    return balent.acquire(model.sample(DRAWS, seed=0), images, k=min(K, len(images)), strategy="balentacq")


@torch.inference_mode()
def passes(module: nn.Module, image: Tensor) -> Tensor:
    """[draws, classes, height, width] of one image, a whole pass each."""
    return torch.stack([module(image[None])[0] for _ in range(DRAWS)])


def scored(logits: Tensor) -> Tensor:
    """BalEntAcq of an image by its definition, the mean over pixels taken in BalEnt: float64, all draws at once."""
    p = logits.double().softmax(1)
    m, v = p.mean(0), p.var(0, correction=0)
    s = m * (1 - m) / v - 1
    a, b = m * s + 1, (1 - m) * s
    h = a.lgamma() + b.lgamma() - (a + b).lgamma()
    h += (a + b - 2) * (a + b).digamma() - (a - 1) * a.digamma() - (b - 1) * b.digamma()
    entropy = -(m * m.log()).sum(0)
    balance = (((m * h).sum(0) + entropy) / (entropy + LOG2)).mean()
    return torch.where(balance >= 0, 1 / balance, balance)


def best(work: Callable[[], object], repeats: int) -> float:
    seconds = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds


def compared(where: str, images: Tensor, plain: int, repeats: int) -> None:
    """One line: ours, the plain way, and what the network alone takes of the plain way."""
    model, module = predictor(where), UNet(where).eval()
    module.middle.train(), module.last.train()
    few, count = images[:plain], len(images)
    logits = [passes(module, image) for image in few]
    network = best(lambda: [passes(module, image) for image in few], repeats) * count / plain
    scoring = best(lambda: [scored(z) for z in logits], repeats) * count / plain
    own = best(lambda: ours(model, images), repeats)
    ratio = (network + scoring) / own
    print(
        f"dropout {where:6s}  ours {own:6.1f} s   plainly {network + scoring:6.1f} s   ratio {ratio:4.1f}"
        f"   ({network:.1f} s of the plain way are passes, {scoring:.1f} s scoring)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--plain", type=int, default=4, help="images that the plain way is timed on")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help="the highest memory of our way alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    images = torch.randn(options.images, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    print(f"{len(images)} images of {SIZE} x {SIZE}, {CLASSES} classes, {DRAWS} draws, 1 thread")
    if options.memory:
        ours(predictor("middle"), images)
        print(f"the highest memory of the process: {peak():.0f} MB")
        return
    for where in ("last", "middle"):
        compared(where, images, options.plain, options.repeats)


if __name__ == "__main__":
    main()
