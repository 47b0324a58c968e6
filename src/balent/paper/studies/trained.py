"""The networks that studies look at: the paper's, trained on a few labels of the data that come with balent."""

from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from balent.data.sources import Data
from balent.loop.start import balanced
from balent.predictors.mc_dropout import MCDropout
from balent.predictors.training import reproducible


def network(make: Callable[[], nn.Module], x: Tensor, y: Tensor, seed: int, epochs: int = 150) -> MCDropout:
    """MC dropout, trained from first weights of this seed."""
    generator = Generator().manual_seed(seed)
    with reproducible(generator):
        predictor = MCDropout(make(), epochs=epochs)
    predictor.fit((x, y), generator=generator)
    return predictor


def on_some(make: Callable[[], nn.Module], data: Data, labels: int, seed: int) -> tuple[MCDropout, Tensor]:
    """Trained on so many labels, as many of each class; and the rest of the pool."""
    start = torch.tensor(balanced(data.y_train.tolist(), labels, seed))
    others = torch.ones(len(data.y_train), dtype=torch.bool).index_fill(0, start, False)
    return network(make, data.x_train[start], data.y_train[start], seed), data.x_train[others]


def last_layer_mlp(inputs: int, classes: int, width: int = 128, p: float = 0.2) -> nn.Module:
    """Dropout before the last layer alone, as the paper's networks on fixed features have it."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(inputs, width), nn.Dropout(p), nn.ReLU(), nn.Linear(width, classes, bias=False)
    )
