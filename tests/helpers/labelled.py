"""Small labelled sets and networks to learn with."""

import torch
from torch import nn

from helpers.examples import normal


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def blobs(points=60, inputs=4, classes=3, seed=0):
    """Clouds around one corner for each class: easy to tell apart. Points of all classes in turn."""
    y = torch.arange(points) % classes
    corners = 3 * torch.eye(classes, inputs)
    return corners[y] + 0.5 * normal(points, inputs, seed=seed, dtype=torch.float32), y


def network(inputs=4, classes=3, width=8, p=0.3, seed=0):
    """Linear, dropout, ReLU, linear; the same weights for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, width), nn.Dropout(p), nn.ReLU(), nn.Linear(width, classes))


def same_weights(a, b):
    """Bit for bit."""
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
