"""What does it cost to choose among 10⁸ points?  CPU time per point of each step, core-hours, and money.

    python benchmarks/bench_costs.py [--price 0.04] [--only head,image]

Each step runs alone in one thread; times are CPU seconds, best of several. The price of a core-hour is an assumption:
pass that of your provider. Bytes are those of float32 features, which a night's scoring reads once.
"""

import argparse
import io
import os
from collections.abc import Callable, Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from bench_embed import best, jpeg
from torch import nn

import balent
from balent.data.formats.image_file import Picture, square
from balent.vision.photos import Photos

WIDTH, CLASSES, DRAWS = 2048, 100, 100
POINTS, IMAGES, SIDE, TIMES = 4096, 8, 224, 3
POOL = 100_000_000
BACKBONES = ("resnet50", "efficientnet-lite0")  # with random weights: these take as long
Steps = Iterator[tuple[str, Callable[[], object], int]]  # its name, the work, and how many points it is for


def head() -> Steps:
    """A head on features: draws, moments and measure of a block at a time."""
    torch.manual_seed(0)
    predictor = balent.MCDropout(nn.Sequential(nn.Dropout(0.5), nn.Linear(WIDTH, CLASSES)))
    x = np.random.default_rng(0).standard_normal((POINTS, WIDTH), dtype=np.float32)
    ways = {
        f"{DRAWS} draws, shared masks": predictor.sample(DRAWS, seed=0),
        f"{DRAWS} draws, masks per point": predictor.sample(DRAWS, seed=0, masks="per-point"),
        "analytic": predictor.sample("analytic", seed=0),
    }
    for name, sampled in ways.items():
        yield f"head {WIDTH}→{CLASSES}, {name}", lambda sampled=sampled: balent.acquire(sampled, x, 500, "bald"), POINTS
    probabilities = torch.randn(POINTS // 8, DRAWS, CLASSES).softmax(-1)
    yield "moments and measure, part of it", lambda: balent.score(probabilities, "balentacq"), POINTS // 8


def image() -> Steps:
    """From a JPEG file to features."""
    content = jpeg(0)
    yield "JPEG decoding, 640×480", lambda: square(Picture("", lambda: io.BytesIO(content)), SIDE), 1
    pixels = np.random.default_rng(0).integers(0, 255, (IMAGES, 3, SIDE, SIDE), np.uint8)
    for name in BACKBONES:
        photos = Photos(f"random:{name}", SIDE, threads=1)
        photos.of_pixels(pixels[:1])
        yield f"{name}, {photos.backend}", lambda photos=photos: photos.of_pixels(pixels), IMAGES


def row(name: str, seconds: float, price: float) -> str:
    hours = seconds * POOL / 3600
    return f"{name:46} {1e6 * seconds:10,.0f} µs {hours:10,.1f} core-hours {hours * price:10,.2f} USD"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--price", type=float, default=0.04, help="USD per core-hour")
    parser.add_argument("--only", default="head,image")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"per point, and for {POOL:,} points at {asked.price} USD per core-hour")
    for group in asked.only.split(","):
        for name, work, points in {"head": head, "image": image}[group]():
            work()  # once before the clock
            print(row(name, best({name: work}, TIMES)[name] / points, asked.price), flush=True)
    print(
        f"features of {POOL:,} points, {WIDTH} float32 numbers each: {POOL * WIDTH * 4 / 1e9:,.0f} GB to keep and read"
    )
