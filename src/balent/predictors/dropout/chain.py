"""Dropout, then layers: all draws together, in the fewest products.

After its first dropout a network is often a chain of stages, each one dropout, functions that a
mask passes through (f(m·x) = m·f(x) for a mask m: ReLU, pooling of channels, flattening), and a linear
map. Then no draw needs a pass of its own:

- the first stage sees the same input in every draw. A Linear is one product with the weights of the
  units that a draw drops, taken off the full product (or of those it keeps, if they are fewer). A
  Conv2d is linear in its input channels: what each channel contributes is computed once, and a draw
  is a sum of contributions (`kernels.layers`).
- later stages differ by draw: products with the weights between the units that a draw keeps.

Exact for the given masks, up to the order of additions.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import repeat
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from balent.kernels import layers
from balent.predictors.dropout.control import late
from balent.predictors.dropout.masks import Masks
from balent.types import Indices

POINTWISE = (nn.ReLU, nn.LeakyReLU, nn.Identity)
FUNCTIONS: dict[Any, Callable[..., nn.Module]] = {  # as modules, from all arguments but the input
    "relu": lambda inplace=False: nn.ReLU(),
    "leaky_relu": lambda negative_slope=0.01, inplace=False: nn.LeakyReLU(negative_slope),
    "flatten": lambda start_dim=0, end_dim=-1: nn.Flatten(start_dim, end_dim),
    "max_pool2d": lambda kernel_size, stride=None, *args, **kwargs: nn.MaxPool2d(kernel_size, stride, *args, **kwargs),
    "dropout": lambda p=0.5, training=True, inplace=False: nn.Dropout(p if training else 0),
    "dropout2d": lambda p=0.5, training=True, inplace=False: nn.Dropout2d(p if training else 0),
}
FUNCTIONS |= {torch.relu: FUNCTIONS["relu"], torch.flatten: FUNCTIONS["flatten"]}
FUNCTIONS |= {getattr(F, name): FUNCTIONS[name] for name in ("relu", "leaky_relu", "max_pool2d")}
FUNCTIONS |= {late(name): FUNCTIONS.pop(name) for name in ("dropout", "dropout2d")}  # no methods of tensors
REMEMBERED = 4  # sets of masks whose sub-networks are kept: a race alternates between parts of its draws
SCRATCH = 1 << 22  # elements of a layer at a time: points, draws, units


@dataclass(frozen=True)
class Stage:
    """A dropout (of elements, or of whole channels), what its mask passes through, and the linear map behind."""

    p: float
    channels: bool
    passing: tuple[nn.Module, ...]
    linear: nn.Linear | nn.Conv2d
    width: int = 0  # channels, where whole channels are dropped behind another linear map

    @property
    def gain(self) -> float:
        """What dropout multiplies with what it keeps."""
        return 1 / (1 - self.p)

    @property
    def slope(self) -> float:
        """Its pointwise functions are x above 0, and slope · x below."""
        return -float(self.activated(-torch.ones(1)))

    @property
    def padding(self) -> int:
        """Of its convolution."""
        return int(self.linear.padding[0]) if isinstance(self.linear, nn.Conv2d) else 0

    def flat(self) -> bool:
        """Nothing but pointwise functions between dropout and Linear."""
        pointwise = all(isinstance(f, POINTWISE) for f in self.passing)
        return pointwise and not self.channels and isinstance(self.linear, nn.Linear)

    def pool(self) -> int:
        """The window of its max-pooling, 1 without."""
        return max([1, *map(window, self.passing)])

    def activated(self, x: Tensor) -> Tensor:
        """Its pointwise functions."""
        for f in self.passing:
            x = f(x) if isinstance(f, POINTWISE) else x
        return x


def window(f: nn.Module) -> int:
    """The side of a max-pooling of squares side by side; 0 where it is another, or none."""
    side = f.kernel_size if isinstance(f, nn.MaxPool2d) else 0
    return side if isinstance(side, int) and repr(f) == repr(nn.MaxPool2d(side)) else 0


class Chain:
    """The stages behind the first dropout; `words` says what they are."""

    def __init__(self, stages: list[Stage]) -> None:
        self.stages = stages
        names = [f"{'channel ' * s.channels}dropout {s.p:g} → {type(s.linear).__name__}" for s in stages]
        self.words = f"{', '.join(names)} for all draws together"
        self._thinned: dict[Masks, Thinned] = {}

    @classmethod
    def of(cls, suffix: fx.GraphModule) -> "Chain | None":
        """The stages of a graph that begins with a dropout, or None where it is no such chain."""
        stages = _stages(suffix)
        if stages and _is_convolution(stages[0]):
            return cls(stages) if len(stages) > 1 and _follows(stages[1]) and _flat(stages[2:]) else None
        return cls(stages) if stages and _flat(stages) else None

    @property
    def convolves(self) -> bool:
        """Is its first linear map a convolution?"""
        return isinstance(self.stages[0].linear, nn.Conv2d)

    @property
    def last_alone(self) -> bool:
        """Is it a dropout and the last linear layer, and nothing else?"""
        return len(self.stages) == 1 and isinstance(self.stages[0].linear, nn.Linear)

    def __call__(self, hidden: Tensor, masks: Masks, positions: Indices | None) -> Tensor:
        """Logits [draws, batch, classes]."""
        if self.convolves:
            return self._convolved(hidden, masks, positions)
        if masks.per_point:
            return self._per_point(hidden, masks, positions)
        if masks not in self._thinned:
            while len(self._thinned) >= REMEMBERED:
                del self._thinned[next(iter(self._thinned))]
            self._thinned[masks] = Thinned(self.stages, masks, hidden.shape[1])
        return self._thinned[masks](hidden)

    def _per_point(self, hidden: Tensor, masks: Masks, positions: Indices | None) -> Tensor:
        """Each point has masks of its own; some draws at a time."""
        first, *later = self.stages
        x = first.activated(hidden)
        some = max(1, SCRATCH // (len(x) * len(first.linear.weight)))
        parts = [masks.part(i, min(i + some, masks.n)) for i in range(0, masks.n, some)]
        found = []
        for part in parts:
            z = self._linear(x, part.keys(0, positions))
            found.append(_masked(later, z, part, positions, before=1) if later else z.transpose(0, 1))
        return found[0] if len(found) == 1 else torch.cat(found)

    @cached_property
    def _linear(self) -> layers.MaskedLinear:
        [first, *_] = self.stages
        return layers.MaskedLinear(first.linear.weight * first.gain, _bias(first.linear), first.p)

    def _convolved(self, x: Tensor, masks: Masks, positions: Indices | None) -> Tensor:
        """The first two stages together, then the others."""
        first, then, *later = self.stages
        for f in first.passing:
            x = pooled(x, window(f)) if window(f) else f(x)
        kept, after = (
            _kept(masks, layer, units, stage, positions)
            for layer, (units, stage) in enumerate([(x.shape[1], first), (then.width, then)])
        )
        padded = F.pad(x, (first.padding,) * 4) if first.padding else x
        return _masked(later, self._convolution(padded, kept, after), masks, positions, before=2)

    @cached_property
    def _convolution(self) -> layers.Convolved:
        first, then, *_ = self.stages
        weights = (first.linear.weight * first.gain, _bias(first.linear))
        linear = (then.linear.weight * then.gain, _bias(then.linear))
        return layers.Convolved(*weights, *linear, then.pool(), then.slope)


def _masked(stages: list[Stage], x: Tensor, masks: Masks, positions: Indices | None, before: int) -> Tensor:
    """Linear stages of [points, draws, units], their inputs multiplied by masks: [draws, points, out]."""
    for layer, stage in enumerate(stages, before):
        scale = _kept(masks, layer, x.shape[-1], stage, positions).to(x.device, x.dtype).transpose(0, 1) * stage.gain
        x = F.linear((stage.activated(x) * scale).contiguous(), stage.linear.weight, stage.linear.bias)
    return x.transpose(0, 1)


def _kept(masks: Masks, layer: int, units: int, stage: Stage, positions: Indices | None) -> Tensor:
    """[draws, points, units], or [draws, 1, units] where all points share masks."""
    rows = masks.kept(layer, units, stage.p, positions)
    return rows if masks.per_point else rows[:, None]


def _bias(layer: nn.Linear | nn.Conv2d) -> Tensor:
    return layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias


def pooled(x: Tensor, side: int) -> Tensor:
    """Max-pooling, several times as fast as torch's, which looks for the places too."""
    high, wide = (n // side * side for n in x.shape[-2:])
    return reduce(torch.maximum, (x[..., i:high:side, j:wide:side] for i in range(side) for j in range(side)))


class Thinned:
    """The sub-network of each draw: only the weights between units that it keeps. Made once for all batches."""

    def __init__(self, stages: list[Stage], masks: Masks, units: int) -> None:
        self.first, *self.later = stages
        kept = []
        for layer, stage in enumerate(stages):
            kept.append(masks.kept(layer, units, stage.p).to(stage.linear.weight.device) > 0)
            units = stage.linear.weight.shape[0]
        self.few_dropped = self.first.p < 0.5
        self.units = [(~row if self.few_dropped else row).nonzero()[:, 0] for row in kept[0]]
        self.weights = [self._later_weights([row[i] for row in kept[1:]]) for i in range(masks.n)]

    def _later_weights(self, kept: list[Tensor]) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        """For each later stage: the units it takes, the weights from them to what the next stage keeps, the bias."""
        thin = []
        for i, stage in enumerate(self.later):
            weight, units = stage.linear.weight, kept[i].nonzero()[:, 0]
            rows = kept[i + 1].nonzero()[:, 0] if i + 1 < len(kept) else torch.arange(len(weight), device=weight.device)
            bias = stage.linear.bias
            thin.append(
                (units, (weight[rows][:, units] * stage.gain).t().contiguous(), None if bias is None else bias[rows])
            )
        return thin

    def __call__(self, hidden: Tensor) -> Tensor:
        x, width = self.first.activated(hidden), self.first.linear.weight.shape[0]
        if self.later:  # one draw at a time: a wide layer of all draws would be large
            return self._rest(self._linear(x, repeat(x.new_empty(len(x), width))), len(self.units), len(x))
        z = x.new_empty(len(self.units), len(x), width)
        deque(self._linear(x, z), maxlen=0)
        return z

    def _linear(self, x: Tensor, into: Iterable[Tensor]) -> Iterator[Tensor]:
        """The first stage of each draw, [batch, out]: all less what is dropped, or only what is kept."""
        weight, bias = self.first.linear.weight * self.first.gain, self.first.linear.bias
        full = F.linear(x, weight, bias) if self.few_dropped else x
        columns, rows = x.t().contiguous(), weight.t().contiguous()
        for draw, units in zip(into, self.units, strict=False):
            chosen, weights = columns.index_select(0, units).t(), rows.index_select(0, units)
            if self.few_dropped:
                torch.addmm(full, chosen, weights, alpha=-1, out=draw)
            else:
                torch.mm(chosen, weights, out=draw)
            yield draw if self.few_dropped or bias is None else draw.add_(bias)

    def _rest(self, first: Iterator[Tensor], draws: int, points: int) -> Tensor:
        """The later stages of each draw."""
        weight = self.later[-1].linear.weight
        out = weight.new_empty(draws, points, len(weight))
        for x, weights, to in zip(first, self.weights, out, strict=True):
            for i, (stage, (units, weight, bias)) in enumerate(zip(self.later, weights, strict=True)):
                x = stage.activated(x.index_select(1, units) if i == 0 else x)  # later ones are thin already
                x = x @ weight if bias is None else torch.addmm(bias, x, weight)
            to.copy_(x)
        return out


# ── which graphs are chains ──────────────────────────────────────────────────────────────────────


def _stages(suffix: fx.GraphModule) -> list[Stage] | None:
    """The stages of a graph that is nothing but stages, each node used once by the next."""
    nodes = list(suffix.graph.nodes)
    if [n.op for n in nodes].count("placeholder") != 1 or any(len(n.users) > 1 for n in nodes):
        return None
    modules = [_module(suffix, node) for node in nodes[1:-1]]
    stages: list[Stage] = []
    drop: nn.Dropout | nn.Dropout2d | None = None
    passing: list[nn.Module] = []
    for module in modules:
        if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) != (1, -1):
            return None
        if isinstance(module, nn.Dropout | nn.Dropout2d) and module.p == 0:
            continue
        if isinstance(module, nn.Dropout | nn.Dropout2d) and drop is None:
            drop = module
        elif isinstance(module, nn.Linear | nn.Conv2d) and drop is not None:
            width = stages[-1].linear.weight.shape[0] if stages else 0
            stages.append(Stage(drop.p, isinstance(drop, nn.Dropout2d), tuple(passing), module, width))
            drop, passing = None, []
        elif isinstance(module, (*POINTWISE, nn.MaxPool2d)) and (drop is not None or stages):
            passing.append(module)  # before or after the dropout: it makes no difference
        elif isinstance(module, nn.Flatten) and drop is not None:
            passing.append(module)
        else:
            return None
    return stages if drop is None and not passing else None


def _module(suffix: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """What a node does, as a module; None where we do not know."""
    args, kwargs = node.args[1:], node.kwargs
    if node.op == "call_module" and not args and not kwargs:
        module = suffix.get_submodule(str(node.target))
        return None if module._forward_hooks or module._forward_pre_hooks else module
    if node.op in ("call_function", "call_method") and node.target in FUNCTIONS:
        try:
            return FUNCTIONS[node.target](*args, **kwargs)
        except TypeError:  # arguments that are known only when it runs, or none of its own
            return None
    return None


def _flat(stages: list[Stage]) -> bool:
    return all(stage.flat() for stage in stages)


def _is_convolution(stage: Stage) -> bool:
    """Channel dropout before a convolution whose channels' contributions can be taken apart."""
    conv = stage.linear
    if not (isinstance(conv, nn.Conv2d) and stage.channels):
        return False
    square = conv.kernel_size[0] == conv.kernel_size[1] and len(set(conv.padding)) == 1  # "same" and "valid" are not
    unpadded = conv.padding_mode == "zeros" or not any(conv.padding)
    return square and unpadded and conv.stride == (1, 1) and conv.dilation == (1, 1) and conv.groups == 1


def _follows(stage: Stage) -> bool:
    """Channel dropout, at most one plain max-pooling, pointwise functions and flattening, then a Linear."""
    pools = [f for f in stage.passing if isinstance(f, nn.MaxPool2d)]
    flattened = any(isinstance(f, nn.Flatten) for f in stage.passing)
    return (
        stage.channels
        and isinstance(stage.linear, nn.Linear)
        and len(pools) <= 1
        and all(map(window, pools))
        and flattened
    )
