"""Any network with dropout, and a pool: which points to label next, how sure that is, and what it costs."""

import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import balent


class Network(nn.Module):
    """Yours: whatever gives logits [batch, classes] and has dropout somewhere."""

    def __init__(self, features: int, classes: int, width: int = 128) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(features, width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(F.dropout(F.relu(self.inner(x)), 0.2, self.training))


def data(points: int, seed: int, classes: int = 10, features: int = 32) -> tuple[Tensor, Tensor]:
    """Classes that overlap."""
    centres = torch.randn(classes, features, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (points,), generator=generator)
    return centres[y] + torch.randn(points, features, generator=generator), y


def main() -> None:
    torch.manual_seed(0)
    predictor = balent.MCDropout(Network(32, 10), epochs=40)
    predictor.fit(data(100, seed=1), generator=torch.Generator().manual_seed(0))
    pool, _ = data(5000, seed=2)

    hundred, many, none = predictor.sample(100, seed=0), predictor.sample(500, seed=0), predictor.sample("analytic")
    for name, sampled, options in (
        ("100 draws", hundred, {"with_error": True}),
        ("100 draws, jitter", hundred, {"strategy": "jitter:balentacq"}),
        ("up to 500 draws", many, {"draws": "auto"}),
        ("no draws", none, {}),
    ):
        start = time.perf_counter()
        picks = balent.acquire(sampled, pool, k=25, **options)
        print(f"{name:18s} {picks.indices[:5].tolist()}  {time.perf_counter() - start:.2f} s")
        if picks.stability is not None:
            print(f"{'':18s} two halves of the draws share {picks.stability:.0%} of the 25")
        if picks.draws is not None:
            print(f"{'':18s} {picks.draws:.0f} draws a point, confidence {picks.confidence:.2f}")
    print(f"how: {hundred.plan}")


if __name__ == "__main__":
    main()
