"""The ways to run a network under given masks: all at once, in parts, by replay, plainly, or point by point.

Every way is made by `of` from the module, what is known of its dropout calls, and some points, and is
then a function of a batch, masks and positions that gives logits [draws, batch, classes]. All of them give
the same numbers. A graph of torch.fx can differ from its network without a word, so `network` tries a way
before it takes it.
"""

import inspect
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, fx, nn

from balent.batches import size, take
from balent.predictors.dropout import control as dropout
from balent.predictors.dropout.calls import Calls, Masked, Running, running
from balent.predictors.dropout.chain import Chain
from balent.predictors.dropout.control import controlled
from balent.predictors.dropout.masks import Masks
from balent.predictors.inputs import Batch, copied, logits_of
from balent.types import Indices

FEW = 32  # images


@dataclass
class Plain:
    """The whole network, once for each draw; once for each point and draw where points must come alone.

    Points come alone (`calls.alone`) to a network that does not treat all points of a batch alike.
    """

    module: nn.Module
    calls: Calls

    @classmethod
    def of(cls, module: nn.Module, calls: Calls, batch: Batch, leaves: bool = True) -> "Plain":
        return cls(module, calls)

    @property
    def words(self) -> str:
        if self.calls.alone:
            return "one point at a time: the whole network runs once for each point and draw ({reason})"
        return "plainly: the whole network runs once for each draw ({reason})"

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        whole, one = [slice(None)], [slice(i, i + 1) for i in range(size(batch))]
        with running(self.module) as stack:
            parts = [
                self._drawn(stack, take(batch, rows), masks, None if positions is None else positions[rows])
                for rows in (one if self.calls.alone else whole)
            ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _drawn(self, stack: Running, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        """All draws of some points, while the stack follows the module."""

        def forward() -> Any:
            return logits_of(self.module, copied(batch))  # which a network may change in place

        each = Masked(masks, self.calls, lambda: stack[-1], size(batch), positions)
        return _stacked([_drawn(forward, draw) for draw in _draws(each)])


def _draws(masked: Masked) -> Iterator[Masked]:
    """A handler for each draw."""
    for i in range(masked.masks.n):
        yield replace(masked, masks=masked.masks.part(i, i + 1), made=Counter())


def _drawn(forward: Callable[[], Any], masked: Masked) -> Any:
    """A forward pass under the masks of one draw."""
    with controlled(masked):
        out = forward()
    masked.calls.count(masked.made)
    return out


def _stacked(draws: list[Any]) -> Tensor:
    if not isinstance(draws[0], Tensor):
        raise ValueError(f"the model must give a tensor [batch, classes], but gave {type(draws[0]).__name__}")
    return torch.stack(draws)


@dataclass
class Split:
    """A graph cut before its first dropout: the prefix runs once, the suffix once for each draw."""

    prefix: fx.GraphModule
    suffix: fx.GraphModule
    calls: Calls
    words: ClassVar[str] = "in parts: what precedes the first dropout runs once, the rest once for each draw"

    @classmethod
    def of(cls, module: nn.Module, calls: Calls, batch: Batch, leaves: bool = True) -> "Split":
        if module._forward_hooks or module._forward_pre_hooks:
            raise ValueError("a graph leaves out the hooks of the model")
        tracer = _Leaves() if leaves else fx.Tracer()
        traced = fx.GraphModule(module, tracer.trace(module, _defaults(module, batch)))
        nodes = list(traced.graph.nodes)
        cut = next(i for i, node in enumerate(nodes) if _drops(traced, node))
        return cls(*_cut(traced, nodes, cut), calls)

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        values = _values(self.prefix, batch, self.calls)

        def forward() -> Any:
            out = self.suffix(*copied(values))
            return getattr(out, "logits", out)

        each = Masked(masks, self.calls, str, size(batch), positions)
        return _stacked([_drawn(forward, replace(draw, owner=self.calls.owners())) for draw in _draws(each)])


class _Leaves(fx.Tracer):
    """Modules without dropout are one node each, whatever their forward does."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        dropout_within = any(part.training for part in m.modules())
        return not dropout_within or super().is_leaf_module(m, module_qualified_name)


def _defaults(module: nn.Module, batch: Batch) -> dict[str, Any]:
    """The arguments of forward that the batch does not give: `mask=None` must be None while the graph is made."""
    parameters = inspect.signature(module.forward).parameters.values()
    given = set(batch) if isinstance(batch, Mapping) else {next(iter(parameters)).name}
    return {p.name: p.default for p in parameters if p.name not in given and p.default is not p.empty}


def _drops(traced: fx.GraphModule, node: fx.Node) -> bool:
    """Does dropout happen in this node?"""
    if node.op == "call_module":
        parts = traced.get_submodule(str(node.target)).modules()
        return any(part.training and drops(part) for part in parts)
    return _is_dropout(node) and bool(node.kwargs.get("p") != 0) and node.kwargs.get("training") is not False


def drops(part: nn.Module) -> bool:
    """Has it a p above 0?"""
    return bool(getattr(part, "p", 0) or getattr(part, "dropout", 0))


def _is_dropout(node: fx.Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") in dropout.KINDS


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
        if _is_dropout(node):
            copied.target = dropout.late(node.target.__name__)  # type: ignore[union-attr]
    return fx.GraphModule(traced, prefix), fx.GraphModule(traced, suffix)


@dataclass
class Replay:
    """Where the forward cannot be traced: modules that end before the first dropout run at the first draw only."""

    module: nn.Module
    calls: Calls
    words: ClassVar[str] = "by replay: modules that end before the first dropout run once (torch.fx: {reason})"

    @classmethod
    def of(cls, module: nn.Module, calls: Calls, batch: Batch, leaves: bool = True) -> "Replay":
        return cls(module, calls)

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        tape: list[tuple[str, Any]] = []  # names and outputs of modules, in order
        draws = []
        with running(self.module) as stack:
            each = Masked(masks, self.calls, lambda: stack[-1], size(batch), positions)
            for i, masked in enumerate(_draws(each)):
                wrap = _replayed(deque(tape)) if i else _recorded(tape, masked)
                with _wrapped(self.module, wrap):
                    draws.append(_drawn(lambda: logits_of(self.module, copied(batch)), masked))
        return _stacked(draws)


Wrap = Callable[[str, Callable[..., Any]], Callable[..., Any]]


@contextmanager
def _wrapped(module: nn.Module, wrap: Wrap) -> Iterator[None]:
    """Within, wrap(name, forward) stands in place of the forward of each part."""
    parts = {name: part for name, part in module.named_modules() if name}
    own = {name: part.__dict__["forward"] for name, part in parts.items() if "forward" in part.__dict__}
    for name, part in parts.items():
        part.forward = wrap(name, part.forward)
    try:
        yield
    finally:
        for name, part in parts.items():
            del part.forward
            if name in own:
                part.forward = own[name]


def _recorded(tape: list[tuple[str, Any]], masked: Masked) -> Wrap:
    """Keep the outputs of modules that end before the first dropout; those of their own parts are not needed then."""

    def wrap(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            start = len(tape)
            out = forward(*args, **kwargs)
            if not masked.made:
                tape[start:] = [(name, copied(out))]  # before someone changes it in place
            return out

        return recorded

    return wrap


def _replayed(tape: deque[tuple[str, Any]]) -> Wrap:
    """Modules answer from what was kept, as long as it lasts: they are called in the same order as before."""

    def wrap(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        def replayed(*args: Any, **kwargs: Any) -> Any:
            if tape and tape[0][0] == name:
                return copied(tape.popleft()[1])
            return forward(*args, **kwargs)

        return replayed

    return wrap


@dataclass
class Fast:
    """A prefix that runs once, then a chain of dropout and linear layers for all draws together."""

    prefix: fx.GraphModule
    chain: Chain
    calls: Calls
    few: bool  # points at a time: the chain begins with a convolution

    @classmethod
    def of(cls, module: nn.Module, calls: Calls, batch: Batch, leaves: bool = True) -> "Fast":
        split = Split.of(module, calls, batch, leaves)
        chain = Chain.of(split.suffix)
        if chain is None or not calls.in_order:
            raise ValueError("what follows the first dropout is not a chain of dropout and linear layers")
        return cls(split.prefix, chain, calls, chain.convolves)

    @property
    def words(self) -> str:
        return f"fast: what precedes the first dropout runs once, then {self.chain.words}"

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        """Images a few at a time: what the layers make of them stays in the cache."""
        if not self.few or size(batch) <= FEW:
            return self.chain(self.hidden(batch), masks, positions)
        parts = [slice(i, i + FEW) for i in range(0, size(batch), FEW)]
        at = (None if positions is None else positions[part] for part in parts)
        return torch.cat([self(take(batch, part), masks, places) for part, places in zip(parts, at, strict=True)], 1)

    def hidden(self, batch: Batch) -> Tensor:
        """What the first dropout sees."""
        [hidden] = _values(self.prefix, batch, self.calls)
        return hidden


def _values(prefix: fx.GraphModule, batch: Batch, calls: Calls) -> tuple[Any, ...]:
    batch = batch.clone() if isinstance(batch, Tensor) else copied(batch)  # which a network may change in place
    with controlled(calls.passed):
        return prefix(**batch) if isinstance(batch, Mapping) else prefix(batch)


Way = Fast | Split | Replay | Plain
