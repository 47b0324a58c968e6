"""A network with dropout as many fixed networks: which part of it must run once for each draw?

`Network` copies a module, finds its dropout, and runs it under given masks in one of three ways:
in parts (torch.fx splits the graph at the first dropout: what comes before runs once), by replay
(modules that end before the first dropout return what they returned at the first draw), or plainly.
All three give the same numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn

from balent.predictors import dropout
from balent.predictors.chain import Chain, Stage
from balent.predictors.dropout import Call, Masked, controlled
from balent.predictors.inputs import Batch, fitting, logits_of, size, take
from balent.predictors.last_layer import frozen
from balent.predictors.masks import Masks
from balent.types import Indices

Forward = Callable[[Batch, Masks, Indices | None], Tensor]  # [draws, batch, classes]


class Network:
    """A private copy of a module whose every dropout follows `Masks`; all else is in evaluation mode."""

    def __init__(self, module: nn.Module, *, fast: bool = True) -> None:
        self.module = frozen(module)
        self.fast = fast
        self._plan: tuple[Forward, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plan": None}  # made anew from the first batch, wherever it is loaded

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None = None) -> Tensor:
        """Logits [draws, batch, classes]."""
        batch = fitting(self.module, batch)
        if self._plan is None:
            self._plan = self._planned(batch)
        logits = self._plan[0](batch, masks, positions)
        _check_output(logits, size(batch))
        return logits

    @property
    def plan(self) -> str:
        """In words: what runs once for each draw, and why."""
        return self._plan[1] if self._plan else "not planned yet: the first batch decides"

    def last_layer(self, batch: Batch) -> tuple[Tensor, Stage] | None:
        """What the only dropout sees of a batch, and its stage: None where dropout is not in the last layer alone."""
        batch = fitting(self.module, batch)
        if self._plan is None:
            self._plan = self._planned(batch)
        fast = self._plan[0]
        if (
            not isinstance(fast, Fast)
            or len(fast.chain.stages) > 1
            or not isinstance(fast.chain.stages[0].linear, nn.Linear)
        ):
            return None
        return fast.hidden(batch), fast.chain.stages[0]

    def _planned(self, batch: Batch) -> tuple[Forward, str]:
        calls = self._switched_on(batch)
        axes = self._axes(batch, calls)
        plain = Plain(self.module, axes)
        if not self.fast:
            return plain, "plainly: the whole network runs once for each draw, as asked"
        try:
            split = Split.of(self.module, axes)
        except Exception as error:  # whatever a tracer meets in someone's forward: the next way needs no trace
            replay = Replay(self.module, axes)
            return (
                replay,
                f"by replay: modules that end before the first dropout run once (torch.fx: {_first_line(error)})",
            )
        chain = Chain.of(split.suffix)
        if chain is not None and all(axis == 0 for axis in axes):
            return Fast(split.prefix, chain), f"fast: what precedes the first dropout runs once, then {chain.words}"
        return split, "in parts: what precedes the first dropout runs once, the rest once for each draw"

    def _switched_on(self, batch: Batch) -> list[Call]:
        """Set the modules to training mode that make dropout calls following it; the calls there will be."""
        training, evaluation, others = dropout.survey(self.module, logits_of, _few(batch))
        if others:
            raise ValueError(
                f"the model is random for another reason than dropout: it calls {', '.join(sorted(set(others)))}"
            )
        parts = dict(self.module.named_modules())
        for call in training:
            if call.on:
                parts[call.owner].training = True
        calls = [call for call in training if call.on]
        if not calls:
            raise ValueError(_no_dropout(training, evaluation))
        return calls

    def _axes(self, batch: Batch, calls: list[Call]) -> list[int]:
        """Where each dropout call has the points: the axis that grows with the batch."""
        other, _, _ = dropout.survey(self.module, logits_of, _twice(_few(batch)))
        twice = [call for call in other if call.on]
        return [_grown(one, two) for one, two in zip(calls, twice, strict=True)]


def _few(batch: Batch) -> Batch:
    return take(batch, slice(0, 2))


def _twice(batch: Batch) -> Batch:
    return take(batch, torch.arange(size(batch)).repeat(2))


def _grown(one: Call, two: Call) -> int:
    for axis, (before, after) in enumerate(zip(one.shape, two.shape, strict=True)):
        if after == 2 * before:
            return axis
    raise ValueError(
        f"dropout in {one.owner or 'the model'} works on shape {one.shape}, in which no axis holds the points; "
        "masks cannot be kept fixed there"
    )


def _no_dropout(training: list[Call], evaluation: list[Call]) -> str:
    off = sorted({call.owner or "forward" for call in (*training, *evaluation) if not call.on})
    if off:
        return f"the model's dropout never drops: p = 0 or training=False is written into {', '.join(off)}"
    return "the model has no dropout, so all its draws would be equal; add nn.Dropout, or use an Ensemble or LastLayerLaplace"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _check_output(logits: Tensor, points: int) -> None:
    if not isinstance(logits, Tensor) or logits.ndim != 3 or logits.shape[1] != points:
        shape = tuple(logits.shape[1:]) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"the model must give [batch, classes] for {points} points, but gave {shape}")


@dataclass
class Plain:
    """The whole network, once for each draw."""

    module: nn.Module
    axes: list[int]

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        return _each_draw(lambda: logits_of(self.module, batch), masks, self.axes, size(batch), positions)


def _each_draw(
    forward: Callable[[], Tensor], masks: Masks, axes: list[int], points: int, positions: Indices | None
) -> Tensor:
    draws = []
    for i in range(masks.n):
        with controlled(Masked(masks.part(i, i + 1), axes, points, positions)):
            draws.append(forward())
    return torch.stack(draws)


@dataclass
class Split:
    """A graph cut before its first dropout: the prefix runs once, the suffix once for each draw."""

    prefix: fx.GraphModule
    suffix: fx.GraphModule
    axes: list[int]

    @classmethod
    def of(cls, module: nn.Module, axes: list[int]) -> "Split":
        traced = fx.symbolic_trace(module)
        nodes = list(traced.graph.nodes)
        cut = next(i for i, node in enumerate(nodes) if _drops(traced, node))
        return cls(*_cut(traced, nodes, cut), axes)

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        values = _values(self.prefix, batch)
        return _each_draw(
            lambda: getattr(out := self.suffix(*values), "logits", out), masks, self.axes, size(batch), positions
        )


def _drops(traced: fx.GraphModule, node: fx.Node) -> bool:
    """Does dropout happen in this node?"""
    if node.op == "call_module":
        parts = traced.get_submodule(str(node.target)).modules()
        return any(part.training and (getattr(part, "p", 0) or getattr(part, "dropout", 0)) for part in parts)
    return node.op == "call_function" and getattr(node.target, "__name__", "") in dropout._original


def _cut(traced: fx.GraphModule, nodes: list[fx.Node], cut: int) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Two graphs: the values that cross the cut are the outputs of one and the inputs of the other."""
    before, after = nodes[:cut], nodes[cut:]
    crossing = [n for n in before if n.op != "get_attr" and any(user in after for user in n.users)]
    prefix, suffix = fx.Graph(), fx.Graph()
    known: dict[fx.Node, fx.Node] = {}
    for node in before:
        known[node] = prefix.node_copy(node, known.__getitem__)
    prefix.output(tuple(known[n] for n in crossing))
    inner: dict[fx.Node, fx.Node] = {n: suffix.placeholder(n.name) for n in crossing}
    inner.update({n: suffix.node_copy(n) for n in before if n.op == "get_attr"})
    for node in after:
        copied = inner[node] = suffix.node_copy(node, inner.__getitem__)
        if node.op == "call_function" and getattr(node.target, "__name__", "") in dropout._original:
            copied.target = dropout.late(node.target.__name__)
    return fx.GraphModule(traced, prefix), fx.GraphModule(traced, suffix)


@dataclass
class Replay:
    """Where the forward cannot be traced: modules that end before the first dropout run at the first draw only."""

    module: nn.Module
    axes: list[int]
    outputs: dict[str, list[Any]] = field(default_factory=dict)

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        points = size(batch)
        first = Masked(masks.part(0, 1), self.axes, points, positions)
        with _recorded(self.module, first) as kept, controlled(first):
            draws = [logits_of(self.module, batch)]
        for i in range(1, masks.n):
            with _replayed(self.module, kept), controlled(Masked(masks.part(i, i + 1), self.axes, points, positions)):
                draws.append(logits_of(self.module, batch))
        return torch.stack(draws)


class _recorded:
    """The outputs of each module, call by call, that ended before the first dropout."""

    def __init__(self, module: nn.Module, masked: Masked) -> None:
        self.module, self.masked = module, masked

    def __enter__(self) -> dict[str, list[Any]]:
        kept: dict[str, list[Any]] = {}

        def keep(name: str, out: Any) -> None:
            if self.masked.layer == 0 and name:
                kept.setdefault(name, []).append(out)

        self.hooks = [
            part.register_forward_hook(lambda _m, _x, out, name=name: keep(name, out))
            for name, part in self.module.named_modules()
        ]
        return kept

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()


class _replayed:
    """Modules answer from what was kept, as long as it lasts."""

    def __init__(self, module: nn.Module, kept: dict[str, list[Any]]) -> None:
        self.parts = [(part, iter(kept[name])) for name, part in module.named_modules() if name in kept]

    def __enter__(self) -> None:
        for part, outputs in self.parts:
            part.forward = _from(outputs, part.forward)  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        for part, _outputs in self.parts:
            del part.forward


def _from(outputs: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        for out in outputs:
            return out
        return otherwise(*args, **kwargs)

    return forward


@dataclass
class Fast:
    """A prefix that runs once, then a chain of dropout and linear layers for all draws together."""

    prefix: fx.GraphModule
    chain: Chain

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        return self.chain(self.hidden(batch), masks, positions)

    def hidden(self, batch: Batch) -> Tensor:
        """What the first dropout sees."""
        [hidden] = _values(self.prefix, batch)
        return hidden


def _values(prefix: fx.GraphModule, batch: Batch) -> tuple[Any, ...]:
    return prefix(**batch) if isinstance(batch, Mapping) else prefix(batch)
