"""A network with dropout as many fixed networks: which part of it must run once for each draw?

`Network` copies a module, finds its dropout, and runs it under given masks in one of three ways:
in parts (torch.fx splits the graph at the first dropout: what comes before runs once), by replay
(modules that end before the first dropout return what they returned at the first draw), or plainly.
All three give the same numbers, and a trial on the first two points makes sure of it: a graph of
torch.fx can differ from its network without a word.
"""

import copy
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from typing import Any

import torch
from torch import Tensor, fx, nn

from balent.predictors import dropout
from balent.predictors.chain import Chain, Stage
from balent.predictors.dropout import Call, Masked, controlled
from balent.predictors.inputs import Batch, arranged, as_it_is, copied, fitting, logits_of, size, take
from balent.predictors.last_layer import frozen
from balent.predictors.masks import Masks
from balent.types import Indices

TRIAL = Masks(0, 2)
FEW = 32  # images
Forward = Callable[[Batch, Masks, Indices | None], Tensor]  # [draws, batch, classes]


class Network:
    """A private copy of a module whose every dropout follows `Masks`; all else is in evaluation mode."""

    def __init__(self, module: nn.Module, *, fast: bool = True) -> None:
        self.module = frozen(module)
        self.fast = fast
        self._plan: tuple[Forward, str] | None = None
        self._laid_out: Callable[[Any], Any] = as_it_is

    def to(self, device: str) -> "Network":
        """The same network on another device."""
        moved = copy.copy(self)
        moved.module, moved._plan = copy.deepcopy(self.module).to(device), None
        return moved

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plan": None}  # made anew from the first batch, wherever it is loaded

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None = None) -> Tensor:
        """Logits [draws, batch, classes]."""
        logits = self._ready(batch)(self._laid_out(fitting(self.module, batch)), masks, positions)
        _check_output(logits, size(batch))
        return logits

    def _ready(self, batch: Batch) -> Forward:
        """How draws are computed: the first batch decides."""
        if self._plan is None:
            self._plan = self._planned(fitting(self.module, batch))
        return self._plan[0]

    @property
    def plan(self) -> str:
        """In words: what runs once for each draw, and why."""
        return self._plan[1] if self._plan else "not planned yet: the first batch decides"

    def last_layer(self, batch: Batch) -> tuple[Tensor, Stage] | None:
        """What the only dropout sees of a batch, and its stage: None where dropout is not in the last layer alone."""
        fast = self._ready(batch)
        if (
            not isinstance(fast, Fast)
            or len(fast.chain.stages) > 1
            or not isinstance(fast.chain.stages[0].linear, nn.Linear)
        ):
            return None
        return fast.hidden(self._laid_out(fitting(self.module, batch))), fast.chain.stages[0]

    def _planned(self, batch: Batch) -> tuple[Forward, str]:
        """The fastest way that gives on two points what the plain way gives."""
        self._switch_on(batch)
        few = take(batch, slice(0, 2))
        plain = Plain(self.module, self._axes(few))
        self._laid_out = arranged(self.module, lambda x: plain(x, TRIAL, None), few)
        few = self._laid_out(few)
        expected = plain(few, TRIAL, None)
        _check_output(expected, size(few))
        if _differ(plain(few, TRIAL, None), expected):
            raise ValueError("the model is random for another reason than dropout: equal masks give unequal outputs")
        if _differ(plain(take(few, slice(0, 1)), TRIAL, None), expected[:, :1]):
            raise ValueError(
                "the model's output at a point changes with the points beside it, so a draw is no function; look for "
                "statistics of the batch, or for dropout of rows in which points do not come one after the other"
            )
        if not self.fast:
            return plain, "plainly: the whole network runs once for each draw, as asked"
        reason = ""
        for way, leaves in ((Fast, True), (Fast, False), (Split, True), (Split, False), (Replay, True)):
            try:
                forward = way.of(self.module, plain.axes, few, leaves)
                with redirect_stderr(StringIO()):  # torch.fx prints what it raises
                    found = forward(few, TRIAL, None)
            except Exception as error:  # whatever a tracer meets in someone's forward: the next way needs less
                reason = _first_line(error)
                continue
            if not _differ(found, expected):
                return forward, forward.words.format(reason=reason)
            reason = "its graph gives other numbers than the network"
        return plain, f"plainly: the whole network runs once for each draw ({reason})"

    def _switch_on(self, batch: Batch) -> None:
        """Set the modules to training mode that make dropout calls following it."""
        training, unseen = dropout.survey(self.module, logits_of, take(batch, slice(0, 2)), True)
        evaluation, others = dropout.survey(self.module, logits_of, take(batch, slice(0, 2)), False)
        _check_randomness(self.module, unseen, others)
        if not any(call.on for call in training):
            raise ValueError(_no_dropout(training, evaluation))
        everything = [call.owner or "forward" for call in training if call.p >= 1]
        if everything:
            raise ValueError(f"dropout in {everything[0]} has p = 1 and drops everything; give it a p below 1")
        parts = dict(self.module.named_modules())
        for call in training:
            if call.on:
                parts[call.owner].training = True

    def _axes(self, few: Batch) -> list[int]:
        """Where each dropout call has the points: the axis that grows with the batch."""
        twice = take(few, torch.arange(size(few)).repeat(2))
        one, two = (dropout.survey(self.module, logits_of, batch)[0] for batch in (few, twice))
        return [_grown(a, b) for a, b in zip(one, two, strict=True) if a.on]


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
    return (
        "the model has no dropout, so all draws would be equal; add nn.Dropout, or use an Ensemble or LastLayerLaplace"
    )


def _check_randomness(module: nn.Module, training: list[str], evaluation: list[str]) -> None:
    """What draws random numbers past us: while it evaluates, or as dropout that we do not see."""
    unseen = {name for name in training if name.removeprefix("torch.").rstrip("_") in dropout.UNSEEN}
    if unseen:
        raise ValueError(
            f"the model calls {', '.join(sorted(unseen))} past torch.nn.functional, where it cannot be controlled; "
            "write F.dropout(…) with import torch.nn.functional as F, or use nn.Dropout"
        )
    for name, part in module.named_modules():
        if isinstance(part, nn.RNNBase) and part.dropout and part.num_layers > 1:
            raise ValueError(
                f"dropout between the layers of {name or 'the model'} ({type(part).__name__}) cannot be controlled; "
                "set its dropout to 0, or put nn.Dropout between layers of their own"
            )
    if evaluation:
        raise ValueError(
            f"the model is random for another reason than dropout: it calls {', '.join(sorted(set(evaluation)))}"
        )


def _differ(found: Tensor, expected: Tensor) -> bool:
    """By more than rounding: half of the digits, on the scale of all logits."""
    finite = expected[expected.isfinite()].abs()
    tolerance = torch.finfo(expected.dtype).eps ** 0.5 * float(finite.max() if len(finite) else 0)
    return found.shape != expected.shape or not torch.allclose(found, expected, 0, tolerance, equal_nan=True)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _check_output(logits: Tensor, points: int) -> None:
    if logits.ndim != 3 or logits.shape[1] != points:
        shape = tuple(logits.shape[1:])
        raise ValueError(f"the model must give [batch, classes] for {points} points, but gave shape {shape}")


@dataclass
class Plain:
    """The whole network, once for each draw."""

    module: nn.Module
    axes: list[int]

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        def forward() -> Any:
            return logits_of(self.module, copied(batch))  # which a network may change in place

        return _each_draw(forward, masks, self.axes, size(batch), positions)


def _each_draw(
    forward: Callable[[], Any], masks: Masks, axes: list[int], points: int, positions: Indices | None
) -> Tensor:
    draws = []
    for i in range(masks.n):
        with controlled(Masked(masks.part(i, i + 1), axes, points, positions)):
            draws.append(forward())
    return _stacked(draws)


def _stacked(draws: list[Any]) -> Tensor:
    if not isinstance(draws[0], Tensor):
        raise ValueError(f"the model must give a tensor [batch, classes], but gave {type(draws[0]).__name__}")
    return torch.stack(draws)


@dataclass
class Split:
    """A graph cut before its first dropout: the prefix runs once, the suffix once for each draw."""

    prefix: fx.GraphModule
    suffix: fx.GraphModule
    axes: list[int]
    words = "in parts: what precedes the first dropout runs once, the rest once for each draw"

    @classmethod
    def of(cls, module: nn.Module, axes: list[int], batch: Batch, leaves: bool) -> "Split":
        if module._forward_hooks or module._forward_pre_hooks:
            raise ValueError("a graph leaves out the hooks of the model")
        tracer = _Leaves() if leaves else fx.Tracer()
        traced = fx.GraphModule(module, tracer.trace(module, _defaults(module, batch)))
        nodes = list(traced.graph.nodes)
        cut = next(i for i, node in enumerate(nodes) if _drops(traced, node))
        return cls(*_cut(traced, nodes, cut), axes)

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        values = _values(self.prefix, batch)

        def forward() -> Any:
            out = self.suffix(*copied(values))
            return getattr(out, "logits", out)

        return _each_draw(forward, masks, self.axes, size(batch), positions)


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
        return any(part.training and bool(getattr(part, "p", 0) or getattr(part, "dropout", 0)) for part in parts)
    return _is_dropout(node) and bool(node.kwargs.get("p") != 0) and node.kwargs.get("training") is not False


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
    axes: list[int]
    words = "by replay: modules that end before the first dropout run once (torch.fx: {reason})"

    @classmethod
    def of(cls, module: nn.Module, axes: list[int], batch: Batch, leaves: bool) -> "Replay":
        return cls(module, axes)

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        tape: list[tuple[str, Any]] = []  # names and outputs of modules, in order
        draws = []
        for i in range(masks.n):
            masked = Masked(masks.part(i, i + 1), self.axes, size(batch), positions)
            wrap = _replayed(deque(tape)) if i else _recorded(tape, masked)
            with _wrapped(self.module, wrap), controlled(masked):
                draws.append(logits_of(self.module, copied(batch)))
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
            if masked.layer == 0:
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

    @classmethod
    def of(cls, module: nn.Module, axes: list[int], batch: Batch, leaves: bool) -> "Fast":
        split = Split.of(module, axes, batch, leaves)
        chain = Chain.of(split.suffix)
        if chain is None or any(axes):
            raise ValueError("what follows the first dropout is no chain of dropout and linear layers")
        return cls(split.prefix, chain)

    @property
    def words(self) -> str:
        return f"fast: what precedes the first dropout runs once, then {self.chain.words}"

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None) -> Tensor:
        """Images a few at a time: what the layers make of them stays in the cache."""
        if not self.chain.convolves or size(batch) <= FEW:
            return self.chain(self.hidden(batch), masks, positions)
        parts = [slice(i, i + FEW) for i in range(0, size(batch), FEW)]
        at = (None if positions is None else positions[part] for part in parts)
        return torch.cat([self(take(batch, part), masks, places) for part, places in zip(parts, at, strict=True)], 1)

    def hidden(self, batch: Batch) -> Tensor:
        """What the first dropout sees."""
        [hidden] = _values(self.prefix, batch)
        return hidden


def _values(prefix: fx.GraphModule, batch: Batch) -> tuple[Any, ...]:
    batch = copied(batch)  # which a network may change in place
    return prefix(**batch) if isinstance(batch, Mapping) else prefix(batch)
