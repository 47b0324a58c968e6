"""Dropout, then layers: all draws together, in the fewest products.

After its first dropout a network is often a chain of stages, each one dropout, functions that a
mask passes through (f(m·x) = m·f(x) for a mask m: ReLU, pooling of channels, flattening), and a linear
map. Then no draw needs a pass of its own:

- the first stage sees the same input in every draw. A Linear is one product with the weights of the
  units that a draw drops, taken off the full product (or of those it keeps, if they are fewer). A
  Conv2d is linear in its input channels: what each channel contributes is computed once, and a draw
  is a sum of contributions.
- later stages differ by draw: a batched product, with the masks multiplied into the weights.

Exact for the given masks, up to the order of additions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from balent.predictors.masks import Masks
from balent.types import Indices

POINTWISE = (nn.ReLU, nn.LeakyReLU, nn.Identity)
FUNCTIONS = {torch.relu: nn.ReLU, F.relu: nn.ReLU, torch.flatten: nn.Flatten}  # with their defaults
METHODS = {"relu": nn.ReLU, "flatten": nn.Flatten}
SCRATCH = 1 << 22  # elements of contributions at a time: they stay in the cache


@dataclass(frozen=True)
class Stage:
    """A dropout (of elements, or of whole channels), what its mask passes through, and the linear map behind."""

    p: float
    channels: bool
    passing: tuple[nn.Module, ...]
    linear: nn.Linear | nn.Conv2d

    def flat(self) -> bool:
        """Nothing but pointwise functions between dropout and Linear."""
        pointwise = all(isinstance(f, POINTWISE) for f in self.passing)
        return pointwise and not self.channels and isinstance(self.linear, nn.Linear)

    def pool(self) -> int:
        """The window of its max-pooling, 1 without."""
        return next((int(f.kernel_size) for f in self.passing if isinstance(f, nn.MaxPool2d)), 1)

    def activated(self, x: Tensor) -> Tensor:
        """Its pointwise functions."""
        for f in self.passing:
            x = f(x) if isinstance(f, POINTWISE) else x
        return x


class Chain:
    """The stages behind the first dropout; `words` says what they are."""

    def __init__(self, stages: list[Stage]) -> None:
        self.stages = stages
        names = [f"{'channel ' * s.channels}dropout {s.p:g} → {type(s.linear).__name__}" for s in stages]
        self.words = f"{', '.join(names)} for all draws in batched products"

    @classmethod
    def of(cls, suffix: fx.GraphModule) -> "Chain | None":
        """The stages of a graph that begins with a dropout, or None where it is no such chain."""
        stages = _stages(suffix)
        if stages and _is_convolution(stages[0]):
            return cls(stages) if len(stages) > 1 and _follows(stages[1]) and _flat(stages[2:]) else None
        return cls(stages) if stages and _flat(stages) else None

    def __call__(self, hidden: Tensor, masks: Masks, positions: Indices | None) -> Tensor:
        """Logits [draws, batch, classes]."""
        first, *later = self.stages
        scales = self._scales(masks, positions, hidden.shape[1])
        if isinstance(first.linear, nn.Conv2d):
            z = _convolved(first, hidden, next(scales), later[0].pool())
        else:
            z = _first_linear(first, hidden, next(scales))
        for i, (stage, scale) in enumerate(zip(later, scales, strict=True)):
            z = _later_linear(stage, z, scale, channels_last=i == 0 and stage.channels)
        return z

    def _scales(self, masks: Masks, positions: Indices | None, units: int) -> Iterator[Tensor]:
        """What each dropout multiplies its units with: 0, or 1/(1 - p)."""
        for layer, stage in enumerate(self.stages):
            yield masks.kept(layer, units, stage.p, positions) / (1 - stage.p)
            units = stage.linear.weight.shape[0]


def _first_linear(stage: Stage, hidden: Tensor, scale: Tensor) -> Tensor:
    """[draws, batch, out] of an input that all draws share."""
    x, weight, bias = stage.activated(hidden), stage.linear.weight, stage.linear.bias
    if scale.ndim == 3:  # masks per point
        return F.linear(x * scale, weight, bias)
    z = x.new_empty(len(scale), len(x), len(weight))
    full = F.linear(x, weight) / (1 - stage.p)
    few_dropped = stage.p < 0.5
    columns, rows = x.t().contiguous(), weight.t().contiguous() / (1 - stage.p)
    for draw, kept in zip(z, scale > 0, strict=True):
        units = (~kept if few_dropped else kept).nonzero()[:, 0]
        chosen, weights = columns.index_select(0, units).t(), rows.index_select(0, units)
        torch.addmm(full, chosen, weights, alpha=-1, out=draw) if few_dropped else torch.mm(chosen, weights, out=draw)
    return z if bias is None else z.add_(bias)


def _later_linear(stage: Stage, z: Tensor, scale: Tensor, channels_last: bool) -> Tensor:
    """[draws, batch, out] of an input that differs by draw; after a convolution its units are (position, channel)."""
    weight = stage.linear.weight
    z = stage.activated(z)
    if channels_last:
        channels = scale.shape[-1]
        weight = weight.view(len(weight), channels, -1).transpose(1, 2).reshape(weight.shape)
        scale = scale.repeat(*(1,) * (scale.ndim - 1), weight.shape[1] // channels)
    if scale.ndim == 3:
        return F.linear(z * scale, weight, stage.linear.bias)
    z = torch.bmm(z, weight.t() * scale[:, :, None])
    return z if stage.linear.bias is None else z.add_(stage.linear.bias)


def _convolved(stage: Stage, hidden: Tensor, scale: Tensor, pool: int) -> Tensor:
    """[draws, batch, positions · channels] of a convolution and max-pooling, from what each channel contributes."""
    conv, x = stage.linear, hidden
    for f in stage.passing:
        x = f(x)
    size, _ = _windows(x[:1], conv, pool)[0].shape[1:3]
    step = max(1, SCRATCH // (x.shape[1] * size * conv.out_channels))
    parts = []
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        parts.append(_contributions(conv, x[block], scale if scale.ndim == 2 else scale[:, block], pool))
    return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


def _contributions(conv: nn.Conv2d, x: Tensor, scale: Tensor, pool: int) -> Tensor:
    draws, points = len(scale), len(x)
    kernels = conv.weight.flatten(2).permute(1, 2, 0)  # [in, kernel, out]
    best: Tensor | None = None
    for window in _windows(x, conv, pool):  # [in, points · positions, kernel], for each place in a pooling window
        each = torch.bmm(window, kernels)
        if scale.ndim == 2:
            y = (scale @ each.view(len(each), -1)).view(draws, points, -1)
        else:
            y = torch.bmm(scale.permute(1, 0, 2), each.view(len(each), points, -1).transpose(0, 1)).transpose(0, 1)
        best = y if best is None else torch.maximum(best, y, out=best)
    assert best is not None
    if conv.bias is not None:
        best.view(draws, points, -1, conv.out_channels).add_(conv.bias)
    return best


def _windows(x: Tensor, conv: nn.Conv2d, pool: int) -> list[Tensor]:
    """The inputs of each output, apart for each place in a pooling window: pool² of [in, points · positions, kernel]."""
    k = conv.kernel_size[0]
    patches = F.pad(x, (conv.padding[0],) * 4).unfold(2, k, 1).unfold(3, k, 1)  # [points, in, height, width, k, k]
    height, width = (side // pool * pool for side in patches.shape[2:4])
    patches = patches[:, :, :height, :width].transpose(0, 1)
    places = [(i, j) for i in range(pool) for j in range(pool)]
    return [patches[:, :, i::pool, j::pool].reshape(x.shape[1], -1, k * k) for i, j in places]


# ── which graphs are chains ──────────────────────────────────────────────────────────────────────


def _stages(suffix: fx.GraphModule) -> list[Stage] | None:
    """The stages of a graph that is nothing but stages, each node used once by the next."""
    nodes = list(suffix.graph.nodes)
    if [n.op for n in nodes].count("placeholder") != 1 or any(len(n.users) > 1 for n in nodes):
        return None
    modules = [_module(suffix, node) for node in nodes[1:-1]]
    stages: list[Stage] = []
    drop: nn.Module | None = None
    passing: list[nn.Module] = []
    for module in modules:
        if isinstance(module, nn.Dropout | nn.Dropout2d) and drop is None:
            drop = module
        elif isinstance(module, nn.Linear | nn.Conv2d) and drop is not None:
            stages.append(Stage(drop.p, isinstance(drop, nn.Dropout2d), tuple(passing), module))
            drop, passing = None, []
        elif isinstance(module, (*POINTWISE, nn.MaxPool2d, nn.Flatten)) and drop is not None:
            passing.append(module)
        else:
            return None
    return stages if drop is None else None


def _module(suffix: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """What a node does, as a module; None where we do not know."""
    rest: tuple[Any, ...] = (*node.args[1:], *node.kwargs.values())
    if node.op == "call_module" and not rest:
        return suffix.get_submodule(str(node.target))
    if node.op == "call_function" and node.target in FUNCTIONS and rest in ((), (1,), (False,)):
        return FUNCTIONS[node.target]()
    if node.op == "call_function" and node.target is F.max_pool2d and len(rest) == 1:
        return nn.MaxPool2d(rest[0])
    if node.op == "call_method" and node.target in METHODS and rest in ((), (1,)):
        return METHODS[str(node.target)]()
    return None


def _flat(stages: list[Stage]) -> bool:
    return all(stage.flat() for stage in stages)


def _is_convolution(stage: Stage) -> bool:
    """Channel dropout before a convolution whose channels' contributions can be taken apart."""
    conv = stage.linear
    if not (isinstance(conv, nn.Conv2d) and stage.channels):
        return False
    square = conv.kernel_size[0] == conv.kernel_size[1] and len(set(conv.padding)) == 1
    return square and conv.stride == (1, 1) and conv.dilation == (1, 1) and conv.groups == 1 and conv.padding != "same"


def _follows(stage: Stage) -> bool:
    """Channel dropout, at most one plain max-pooling, pointwise functions and flattening, then a Linear."""
    pools = [f for f in stage.passing if isinstance(f, nn.MaxPool2d)]
    plain = all(isinstance(f.kernel_size, int) and f.stride == f.kernel_size and f.padding == 0 for f in pools)
    flattened = any(isinstance(f, nn.Flatten) for f in stage.passing)
    return stage.channels and isinstance(stage.linear, nn.Linear) and len(pools) <= 1 and plain and flattened
