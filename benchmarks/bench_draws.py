"""How good are how many draws?  Agreement of a top 100 with that of 10,000 draws, and the time it takes.

A head with last-layer dropout (D → D → C, p = 0.2) is trained on 20 labels a class and scores a pool of 10,000 points
with BalEntAcq. Features are made here: Gaussian classes in 16 dimensions, seen through 256 rectified projections, for
10 and 100 classes; or they are those of a file, --features FILE.npz with x_train and y_train. Each way is repeated with
several seeds; agreement and time are means. The time is what a way takes beyond the part of the network that all share
(everything before the dropout), which is printed once.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from balent import MCDropout, acquire
from balent.types import Picks

CLASSES = (10, 100)
POOL, LABELS_PER_CLASS, K = 10_000, 20, 100
LATENT, FEATURES, SPREAD = 16, 256, 1.2
TRUTH, SEEDS, EPOCHS = 10_000, 3, 30
COUNTS = (16, 32, 64, 100, 500)


def features(classes: int, points: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Classes of unit Gaussians around random centres, near enough to overlap, through rectified projections."""
    fixed = torch.Generator().manual_seed(classes)
    centres = torch.randn(classes, LATENT, generator=fixed) * SPREAD
    projection = torch.randn(LATENT, FEATURES, generator=fixed) / LATENT**0.5
    y = torch.randint(classes, (points,), generator=generator)
    return torch.relu((centres[y] + torch.randn(points, LATENT, generator=generator)) @ projection), y


def from_file(path: Path, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """As many points of a file of features as are needed, in random order."""
    with np.load(path) as arrays:
        x, y = torch.from_numpy(arrays["x_train"]).float(), torch.from_numpy(arrays["y_train"]).long()
    some = torch.randperm(len(x), generator=generator)[: POOL + LABELS_PER_CLASS * int(y.max() + 1)]
    return x[some], y[some]


def trained(x: Tensor, y: Tensor, generator: torch.Generator) -> tuple[MCDropout, Tensor]:
    """A head that has learned from the first points, and the others as its pool."""
    torch.manual_seed(0)
    classes, width = int(y.max()) + 1, x.shape[1]
    head = nn.Sequential(nn.Linear(width, width), nn.Dropout(0.2), nn.ReLU(), nn.Linear(width, classes, bias=False))
    predictor, labels = MCDropout(head, epochs=EPOCHS), LABELS_PER_CLASS * classes
    predictor.fit((x[:labels], y[:labels]), generator=generator)
    pool = x[labels:]
    with torch.inference_mode():
        accuracy = float((head(pool).argmax(1) == y[labels:]).double().mean())
    print(f"\n{classes} classes, pool of {len(pool)}, accuracy {accuracy:.2f}")
    return predictor, pool


def agreement(picks: Picks, truth: Picks) -> float:
    return float(torch.isin(picks.indices, truth.indices).double().mean())


def shared_seconds(predictor: MCDropout, pool: Tensor) -> float:
    """What every way has to pay: the layer before the dropout."""
    with torch.inference_mode():
        predictor.model[0](pool[:1024])
        start = time.perf_counter()
        for batch in pool.split(256):
            predictor.model[0](batch)
    return time.perf_counter() - start


def line(name: str, picks: list[Picks], truth: Picks, seconds: float) -> None:
    mean = sum(agreement(p, truth) for p in picks) / len(picks)
    draws, confidence = (sum(getattr(p, name) or 0 for p in picks) / len(picks) for name in ("draws", "confidence"))
    used = f"  {draws:.0f} draws a point, stated confidence {confidence:.2f}" if draws else ""
    print(f"{name:26s} agreement {mean:.2f}  {seconds * 1e3:7.0f} ms{used}", flush=True)


def compared(predictor: MCDropout, pool: Tensor) -> None:
    truth = acquire(predictor.sample(TRUTH, seed=999), pool, K)
    before = shared_seconds(predictor, pool)
    print(f"the part before the dropout takes {before * 1e3:.0f} ms")
    ways = {f"{design} {n}": (n, design, None) for n in COUNTS for design in ("independent", "stratified", "matched")}
    ways |= {"auto, of 500": (500, "independent", "auto"), "auto, of 500 matched": (500, "matched", "auto")}
    ways |= {"analytic": ("analytic", "independent", None)}
    for name, (n, design, draws) in ways.items():
        drawn = [predictor.sample(n, seed=s, design=design) for s in range(SEEDS)]
        for sampled in drawn:
            sampled.moments(pool[:2])  # plans are made from the first batch
        start = time.perf_counter()
        picks = [acquire(sampled, pool, K, draws=draws) for sampled in drawn]
        line(name, picks, truth, (time.perf_counter() - start) / SEEDS - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=Path, help="an .npz with x_train and y_train instead of made-up features")
    file = parser.parse_args().features
    for classes in CLASSES if file is None else (None,):
        generator = torch.Generator().manual_seed(1)
        if file is not None:
            x, y = from_file(file, generator)
        else:
            x, y = features(classes, POOL + LABELS_PER_CLASS * classes, generator)
        compared(*trained(x, y, generator))


if __name__ == "__main__":
    main()
