"""Segmentation: does a strategy gain on random, over 5 paired seeds, on generated shapes and a small U-Net?

An image of 16 x 16 pixels has a disc, a square or a cross somewhere, in noise; two in five have none. A label
is the class of every pixel. `balent.Parts` wraps MC dropout of a U-Net that gives [batch, classes, height, width]. The
gain is the difference to random in mean intersection over union, averaged from 8 to 32 labelled images. Both
strategies of a pair see the same images and the same first 8. SHORT=1 in the environment runs a part of it.
"""

import os
import statistics

import numpy as np
import torch
from torch import Tensor, nn

import balent
from balent.report.significance import interval

SHORT = "SHORT" in os.environ
SEEDS = 2 if SHORT else 5
SIZE, CLASSES = 16, 4
START, PER_ROUND, ROUNDS = 8, 8, 1 if SHORT else 3


def data(images: int, seed: int) -> tuple[Tensor, Tensor]:
    """Images [images, 1, height, width], and the class of each pixel: 0 background, 1 disc, 2 square, 3 cross."""
    generator = torch.Generator().manual_seed(seed)
    kind = (torch.randint(5, (images,), generator=generator) - 1).clamp(min=0)[:, None, None]
    at = torch.randint(5, SIZE - 5, (2, images, 1, 1), generator=generator)
    size = torch.randint(3, 5, (images, 1, 1), generator=generator)
    down, right = torch.arange(SIZE)[:, None] - at[0], torch.arange(SIZE)[None] - at[1]
    disc, square = down**2 + right**2 <= size**2, torch.maximum(down.abs(), right.abs()) <= size
    cross = square & (torch.minimum(down.abs(), right.abs()) <= 1)
    shape = (kind == 1) & disc | (kind == 2) & square | (kind == 3) & cross
    noise = torch.randn(images, SIZE, SIZE, generator=generator)
    return (shape + 0.3 * noise)[:, None], torch.where(shape, kind, 0)


class UNet(nn.Module):
    """One level down, one up, dropout of channels between them."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.one, self.low = block(1, width), block(width, 2 * width)
        self.shrink, self.drop, self.grow = nn.MaxPool2d(2), nn.Dropout2d(0.3), nn.Upsample(scale_factor=2)
        self.top, self.head = block(3 * width, width), nn.Conv2d(width, CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.one(x)
        low = self.drop(self.low(self.shrink(one)))
        return self.head(self.top(torch.cat([one, self.grow(low)], 1)))


def block(inside: int, outside: int) -> nn.Sequential:
    first, second = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


def curve(strategy: str, seed: int) -> float:
    """Mean IoU on 60 other images, averaged over the rounds."""
    torch.manual_seed(seed)
    (x, y), (x_test, y_test), scores = data(120, seed), data(60, 1000 + seed), []
    inside = balent.MCDropout(UNet(), epochs=40, batch_size=8, learning_rate=0.02, features="drop")
    predictor = balent.Parts(inside, class_axis=1, aggregate="mean")
    learner = balent.Learner(predictor, x, strategy, seed=seed, draws=10, masks="shared", start=list(range(START)))
    for count in (START, *[PER_ROUND] * ROUNDS):
        picks = learner.ask(count)
        learner.tell(picks.indices, y[picks.indices])
        scores.append(balent.mean_iou(learner.predict(x_test).argmax(-1), y_test))
    return statistics.mean(scores)


def main() -> None:
    plain = [curve("random", seed) for seed in range(SEEDS)]
    print(f"random      mean IoU {statistics.mean(plain):.3f}, {SEEDS} seeds")
    for strategy in ("auto", "balentacq"):
        gains = np.array([curve(strategy, seed) - before for seed, before in enumerate(plain)])
        low, high = interval(gains)
        print(f"{strategy:10s}  gain on random {gains.mean():+.3f}, 95 % interval ± {(high - low) / 2:.3f}")


if __name__ == "__main__":
    main()
