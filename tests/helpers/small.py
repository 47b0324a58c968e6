"""Small networks of every shape, with the same weights for the same seed, and what comes into them."""

import inspect

import torch
import torch.nn.functional as F
from torch import nn

from balent.paper import networks
from helpers.examples import normal

# Shapes are checked while tests run, by wrappers around each function, which torch.fx cannot look through.
for network in (networks.BNN, networks.CNN2D, networks.CNNBNN, networks.ResNetClassifier, networks.BackboneBNN):
    network.forward = inspect.unwrap(network.forward)


def seeded(make, *args, seed=0, **kwargs):
    """What make(...) builds, with weights of this seed; the random state of torch stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(*args, **kwargs)


def inputs(*shape):
    return lambda points, seed=0: normal(points, *shape, seed=seed, dtype=torch.float32)


# ── heads ────────────────────────────────────────────────────────────────────────────────────────


def head(*between, p=0.3, bias=True, inputs=6, width=20, classes=3):
    return nn.Sequential(nn.Linear(inputs, width), nn.Dropout(p), *between, nn.Linear(width, classes, bias=bias))


def deep(p=0.3, bias=True):
    """Three dropouts in a row of linear layers."""
    stages = [(nn.Dropout(p), nn.ReLU(inplace=True), nn.Linear(w, v, bias)) for w, v in ((20, 16), (16, 12), (12, 3))]
    return nn.Sequential(nn.Linear(6, 20), *(layer for stage in stages for layer in stage))


class Of(nn.Module):
    """A network of these parts, whose forward is the given function of itself and x."""

    def __init__(self, forward, **parts):
        super().__init__()
        self._forward = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        return self._forward(self, x)


def flat(forward, **more):
    """Linear `a` 6 → 8, `b` 8 → 8, `c` 8 → 3 and a dropout `d`."""
    return lambda: Of(forward, a=nn.Linear(6, 8), b=nn.Linear(8, 8), c=nn.Linear(8, 3), d=nn.Dropout(0.3), **more)


def functional(self, x):
    h = F.dropout(F.leaky_relu(self.a(x), 0.2), 0.4, self.training)
    return self.c(torch.relu(F.dropout(F.relu(self.b(h), inplace=True), p=0.2, training=self.training)))


def without_effect(self, x):
    """Dropouts that drop nothing, before and between those that do."""
    h = F.dropout(F.dropout(self.a(x), 0.0, self.training), 0.5, False)
    return self.c(F.dropout(self.d(self.b(F.relu(self.d(h)))), 0.0))


def residual(self, x):
    h = self.a(x)
    return self.c(h + self.d(self.b(h)))


def in_place(self, x):
    h = self.a(x)
    dropped = self.d(h)
    h.add_(dropped)
    return self.c(h.relu_())


def twice(self, x):
    return self.c(self.d(self.b(self.d(self.b(self.a(x))))))


def alpha(self, x):
    return self.c(F.alpha_dropout(F.selu(self.a(x)), 0.2, self.training))


def by_data(self, x):
    """A branch that no graph has: decided by the data, before any dropout."""
    h = self.a(x) * 2 if float(x.abs().sum()) > 1e-3 else self.a(x)
    return self.c(self.d(self.b(F.relu(h))))


def by_data_in_place(self, x):
    """Bug: what was kept of `a` for the next draws was changed in place, once more at each."""
    h = self.a(x)
    h.mul_(2 if float(x.abs().sum()) > 1e-3 else 1).add_(1)
    return self.c(self.d(h))


def by_data_shared(self, x):
    """Bug: `act` was asked for its first output, that within `block`, when it was called the second time."""
    h = self.block(x) * (2 if float(x.abs().sum()) > 1e-3 else 1)
    return self.c(self.d(self.act(self.b(h))))


def shared_activation():
    act = nn.Tanh()
    return flat(by_data_shared, act=act, block=nn.Sequential(nn.Linear(6, 8), act))()


def by_type(self, x):
    """Bug: torch.fx traces with something that is no Tensor, and gives a graph of the other branch without a word."""
    h = self.a(x)
    return self.c(self.d(h * 2 if isinstance(x, torch.Tensor) else h))


class Optional(nn.Module):
    """Bug: torch.fx gave `mask` a value, as an argument of forward."""

    def __init__(self):
        super().__init__()
        self.a, self.d, self.c = nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 3)

    def forward(self, x, mask=None, *, scale: float = 2.0):
        h = self.a(x) if mask is None else self.a(x) * mask
        return self.c(self.d(h * scale))


def hooked(which):
    """Bug: hooks of the last layer, or of the network itself, were left out."""

    def make():
        model = head()
        part = {"last": model[-1], "whole": model, "first": model[0]}[which]
        part.register_forward_hook(doubled)
        return model

    return make


def doubled(module, args, output):
    return 2 * output


def ends_in(layer):
    return lambda: nn.Sequential(*head(), layer)


# ── images ───────────────────────────────────────────────────────────────────────────────────────

IMAGE = (2, 11, 12)


def convolutions(*between, p=0.4, conv=None, first_pool=2, relu=True):
    """Convolution, channel dropout, convolution, channel dropout, then `between`, flattening and a linear layer."""
    body = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.Dropout2d(p), nn.MaxPool2d(first_pool), nn.ReLU(),
        conv or nn.Conv2d(4, 6, 2), nn.Dropout2d(p), *(between or (nn.MaxPool2d(2), nn.ReLU())),
    )  # fmt: skip
    width = body.eval()(torch.zeros(1, *IMAGE)).flatten(1).shape[1]
    return nn.Sequential(body, nn.Flatten(), nn.Linear(width, 8), nn.Dropout(p), nn.ReLU(), nn.Linear(8, 3))


def pooled_first():
    """The usual order: convolution, ReLU, pooling, dropout."""
    body = [(nn.Conv2d(i, o, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.3)) for i, o in ((2, 4), (4, 6))]
    return nn.Sequential(*(layer for block in body for layer in block), nn.Flatten(), nn.Linear(6, 3))


class FunctionalImages(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 6, 2), nn.Linear(12, 3)

    def forward(self, x):
        x = F.relu(F.max_pool2d(F.dropout2d(self.a(x), 0.4, self.training), 2))
        x = F.dropout2d(self.b(x), 0.3, self.training)
        return self.c(torch.flatten(F.max_pool2d(F.relu(x), kernel_size=2, stride=2), 1))


class Named(nn.Module):
    """Another name for flattening: .flatten(1)."""

    def __init__(self):
        super().__init__()
        self.a, self.d, self.b, self.c = nn.Conv2d(2, 4, 3), nn.Dropout2d(0.4), nn.Conv2d(4, 6, 2), nn.Linear(432, 3)

    def forward(self, x):
        return self.c(self.d(self.b(self.d(self.a(x)).relu())).flatten(start_dim=1))


def channels_of(dropout, dims):
    conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    return lambda: nn.Sequential(conv(2, 4, 2), dropout, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 3**dims, 3))


def resnet18():
    return networks.svhn_bnn(classes=5)


FAST, PARTS, REPLAY = "fast: ", "in parts: ", "by replay: "

# What it is: how to make it, what comes in, and which way its draws are computed.
NETWORKS = {
    "moons of the paper": (networks.BNN, inputs(2), FAST),
    "MNIST of the paper": (networks.CNNBNN, inputs(1, 28, 28), FAST),
    "features of the paper": (lambda: networks.ResNetClassifier(64, 10), inputs(64), FAST),
    "ResNet-18 of the paper": (resnet18, inputs(3, 32, 32), FAST),
    "p = .1": (lambda: head(nn.ReLU(), p=0.1), inputs(6), FAST),
    "p = .5": (lambda: head(nn.ReLU(), p=0.5), inputs(6), FAST),
    "p = .9": (lambda: head(nn.ReLU(), p=0.9), inputs(6), FAST),
    "no bias": (lambda: head(nn.LeakyReLU(0.1), nn.Identity(), bias=False), inputs(6), FAST),
    "no bias, p = .6": (lambda: head(p=0.6, bias=False), inputs(6), FAST),
    "three stages": (deep, inputs(6), FAST),
    "three stages, p = .6, no bias": (lambda: deep(0.6, bias=False), inputs(6), FAST),
    "one class too few to be thin": (lambda: deep(0.95), inputs(6), FAST),
    "functional": (flat(functional), inputs(6), FAST),
    "dropouts without effect": (flat(without_effect), inputs(6), FAST),
    "ReLU before dropout": (
        lambda: nn.Sequential(*head(inputs=6, classes=9), nn.ReLU(), nn.Dropout(0.4), nn.Linear(9, 3)), inputs(6), FAST,
    ),
    "pooling before channel dropout": (lambda: pooled_first(), inputs(*IMAGE), FAST),
    "a ReLU at the end": (ends_in(nn.ReLU()), inputs(6), PARTS),
    "optional arguments": (Optional, inputs(6), FAST),
    "a dropout used twice": (flat(twice), inputs(6), FAST),
    "pooling that does not divide": (convolutions, inputs(*IMAGE), FAST),
    "pooling after ReLU": (lambda: convolutions(nn.ReLU(), nn.MaxPool2d(2)), inputs(*IMAGE), FAST),
    "pooling by 3": (lambda: convolutions(nn.MaxPool2d(3), nn.LeakyReLU()), inputs(*IMAGE), FAST),
    "no pooling, no ReLU": (lambda: convolutions(nn.Identity()), inputs(*IMAGE), FAST),
    "padding": (lambda: convolutions(conv=nn.Conv2d(4, 6, 3, padding=1)), inputs(*IMAGE), FAST),
    "no bias in a convolution": (lambda: convolutions(conv=nn.Conv2d(4, 6, 3, bias=False)), inputs(*IMAGE), FAST),
    "channel dropout of .7": (lambda: convolutions(p=0.7), inputs(*IMAGE), FAST),
    "functional convolutions": (FunctionalImages, inputs(*IMAGE), FAST),
    "methods of tensors": (Named, inputs(*IMAGE), FAST),
    "pooling that rounds up": (lambda: convolutions(nn.MaxPool2d(2, ceil_mode=True)), inputs(*IMAGE), PARTS),
    "dilated pooling": (lambda: convolutions(nn.MaxPool2d(2, dilation=2)), inputs(*IMAGE), PARTS),
    "overlapping pooling": (lambda: convolutions(nn.MaxPool2d(3, 1)), inputs(*IMAGE), PARTS),
    "padded pooling": (lambda: convolutions(nn.MaxPool2d(2, padding=1)), inputs(*IMAGE), PARTS),
    "two poolings": (lambda: convolutions(nn.MaxPool2d(2), nn.MaxPool2d(1)), inputs(*IMAGE), PARTS),
    "mean pooling": (lambda: convolutions(nn.AvgPool2d(2)), inputs(*IMAGE), PARTS),
    "a sigmoid": (lambda: convolutions(nn.Sigmoid()), inputs(*IMAGE), PARTS),
    "strides": (lambda: convolutions(conv=nn.Conv2d(4, 6, 2, stride=2)), inputs(*IMAGE), PARTS),
    "groups": (lambda: convolutions(conv=nn.Conv2d(4, 6, 2, groups=2)), inputs(*IMAGE), PARTS),
    "oblong kernels": (lambda: convolutions(conv=nn.Conv2d(4, 6, (2, 3))), inputs(*IMAGE), PARTS),
    "padding by name": (lambda: convolutions(conv=nn.Conv2d(4, 6, 3, padding="same")), inputs(*IMAGE), PARTS),
    "circular padding": (
        lambda: convolutions(conv=nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular")), inputs(*IMAGE), PARTS,
    ),
    "a convolution without channel dropout": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.Dropout(0.3), nn.Conv2d(4, 2, 3), nn.Flatten(), nn.Linear(112, 3)),
        inputs(*IMAGE), PARTS,
    ),
    "Dropout1d": (channels_of(nn.Dropout1d(0.3), 1), inputs(2, 4), PARTS),
    "Dropout2d": (channels_of(nn.Dropout2d(0.3), 2), inputs(2, 4, 4), PARTS),
    "Dropout3d": (channels_of(nn.Dropout3d(0.3), 3), inputs(2, 4, 4, 4), PARTS),
    "FeatureAlphaDropout": (channels_of(nn.FeatureAlphaDropout(0.3), 2), inputs(2, 4, 4), PARTS),
    "AlphaDropout": (flat(alpha), inputs(6), PARTS),
    "a residual connection": (flat(residual), inputs(6), PARTS),
    "changes in place": (flat(in_place), inputs(6), PARTS),
    "a softmax at the end": (ends_in(nn.LogSoftmax(-1)), inputs(6), PARTS),
    "dropout at the end": (ends_in(nn.Dropout(0.2)), inputs(6), PARTS),
    "a hook on the first layer": (hooked("first"), inputs(6), FAST),
    "a hook on the last layer": (hooked("last"), inputs(6), PARTS),
    "a hook on the network": (hooked("whole"), inputs(6), REPLAY),
    "a branch by data": (flat(by_data), inputs(6), REPLAY),
    "a branch by data, in place": (flat(by_data_in_place), inputs(6), REPLAY),
    "a branch by data, a shared module": (shared_activation, inputs(6), REPLAY),
    "a branch by type": (flat(by_type), inputs(6), REPLAY),
}  # fmt: skip
