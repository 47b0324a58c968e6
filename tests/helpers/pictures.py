"""Small images with a class that one can see, and tiny backbones."""

import numpy as np
import torch
from torch import nn

from balent.data.sources import Data


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def stripes(n, seed=0, side=8):
    """Class 0 has stripes across, class 1 down, class 2 neither; colours, shifts and noise are random."""
    g = generator(seed)
    y = torch.arange(n) % 3
    shift = torch.randint(2, (n,), generator=g)
    at = torch.arange(side)
    wave = ((at[None] + shift[:, None]) % 2).float()  # [n, side]
    across, down = wave[:, :, None].expand(n, side, side), wave[:, None, :].expand(n, side, side)
    shape = torch.stack([across, down, torch.full((n, side, side), 0.5)])[y, torch.arange(n)]
    colour = 0.3 + 0.7 * torch.rand(n, 3, 1, 1, generator=g)
    noise = 0.05 * torch.rand(n, 3, side, side, generator=g)
    return (colour * shape[:, None] + noise).clamp(0, 1), y


def data(pool=50, test=20, side=8):
    x, y = stripes(pool, 0, side)
    held, labels = stripes(test, 1, side)
    return Data(x, y, held, labels, 3, (3, side, side))


def images_file(path, pool=12, test=6):
    """The same as bytes in an .npz, which commands take."""
    source = data(pool, test)
    x_train, x_test = (np.uint8(255 * x.numpy()) for x in (source.x_train, source.x_test))
    np.savez(path, x_train=x_train, y_train=source.y_train, x_test=x_test, y_test=source.y_test)
    return path


def tiny(seed=0, width=6):
    """A backbone without a package: images to 6 features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        return nn.Sequential(*layers, nn.Linear(32, width)).eval()
