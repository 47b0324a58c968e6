"""How good are how many draws?  Agreement of a top 100 with that of 10,000 draws, and the time it takes.

A head with last-layer dropout (256 → 256 → C, p = 0.2) is trained on features of Gaussian classes that
overlap, and scores a pool of 20,000 more of them with BalEntAcq, for 10 and 100 classes. Each design is
repeated with several seeds; agreement and time are means.
"""

import time

import torch
from torch import Tensor, nn

from balent import MCDropout, acquire
from balent.types import Picks

CLASSES = (10, 100)
POOL, LABELS_PER_CLASS, FEATURES, K = 20_000, 20, 256, 100
TRUTH, SEEDS = 10_000, 3
COUNTS = (16, 32, 64, 100, 300, 500)


def features(classes: int, points: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Classes of unit Gaussians around random centres, near enough to overlap."""
    centres = torch.randn(classes, FEATURES, generator=torch.Generator().manual_seed(classes)) * 0.28
    y = torch.randint(classes, (points,), generator=generator)
    return centres[y] + torch.randn(points, FEATURES, generator=generator), y


def trained(classes: int) -> tuple[MCDropout, Tensor]:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    head = nn.Sequential(
        nn.Linear(FEATURES, FEATURES), nn.Dropout(0.2), nn.ReLU(), nn.Linear(FEATURES, classes, bias=False)
    )
    predictor = MCDropout(head, epochs=30)
    predictor.fit(features(classes, LABELS_PER_CLASS * classes, generator), generator=generator)
    x, y = features(classes, POOL, generator)
    with torch.inference_mode():
        print(f"\n{classes} classes, accuracy {float((head(x).argmax(1) == y).double().mean()):.2f}")
    return predictor, x


def agreement(picks: Picks, truth: Picks) -> float:
    return float(torch.isin(picks.indices, truth.indices).double().mean())


def line(name: str, picks: list[Picks], truth: Picks, seconds: float) -> None:
    mean = sum(agreement(p, truth) for p in picks) / len(picks)
    draws, confidence = (sum(getattr(p, name) or 0 for p in picks) / len(picks) for name in ("draws", "confidence"))
    used = f"  {draws:.0f} draws a point, confidence {confidence:.2f}" if draws else ""
    print(f"{name:18s} agreement {mean:.2f}  {seconds * 1e3:7.0f} ms{used}", flush=True)


def main() -> None:
    for classes in CLASSES:
        predictor, pool = trained(classes)
        truth = acquire(predictor.sample(TRUTH, seed=999), pool, K)
        ways = {f"{design} {n}": (n, design, None) for n in COUNTS for design in ("independent", "stratified", "matched")}
        ways |= {"auto (of 500)": (500, "independent", "auto"), "auto matched": (500, "matched", "auto")}
        for name, (n, design, draws) in ways.items():
            start = time.perf_counter()
            picks = [acquire(predictor.sample(n, seed=s, design=design), pool, K, draws=draws) for s in range(SEEDS)]
            line(name, picks, truth, (time.perf_counter() - start) / SEEDS)
        start = time.perf_counter()
        picks = [acquire(predictor.sample("analytic"), pool, K)]
        line("analytic", picks, truth, time.perf_counter() - start)


if __name__ == "__main__":
    main()
