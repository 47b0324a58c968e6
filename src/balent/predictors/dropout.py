"""Dropout under control: every call of it, in any module, takes its mask from us.

All kinds of dropout end in a function of torch.nn.functional: nn.Dropout and its siblings, attention,
models of other libraries, and calls by hand. Within `controlled(...)` those functions ask a handler
(of this thread) instead of the random number generator. `survey` runs a copy of a module and reports
which calls there are, who makes them, and what else is random.
"""

import copy
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from balent.predictors.inputs import copied
from balent.predictors.masks import Masks
from balent.types import Indices

ELEMENTS = ("dropout", "alpha_dropout")  # every number has a mask of its own
CHANNELS = ("dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")  # every channel
ATTENTION = "scaled_dot_product_attention"
KINDS = (*ELEMENTS, *CHANNELS, ATTENTION)
RANDOM = ("rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "normal",
          "multinomial", "poisson", "uniform", "exponential", "random", "geometric", "cauchy",
          "gumbel_softmax")  # fmt: skip
UNSEEN = (*ELEMENTS, *CHANNELS, "feature_dropout", "native_dropout")  # when called past torch.nn.functional

_local = threading.local()  # the handler of each thread
_lock = threading.Lock()
_users = 0  # of the switches, in all threads
_original = {name: getattr(F, name) for name in KINDS}  # as they were when the first switch came
_fastpath = True


@dataclass(frozen=True)
class Call:
    """One call of a dropout function: what kind, how likely, switched on or not, by which module, on what shape."""

    kind: str
    p: float
    on: bool
    owner: str
    shape: tuple[int, ...]


Handler = Callable[[str, Tensor, float, bool], Tensor]


@contextmanager
def controlled(handler: Handler) -> Iterator[None]:
    """Within, dropout of this thread is handler(kind, input, p, training). Other threads keep theirs."""
    before = getattr(_local, "handler", None)
    _local.handler = handler
    _switch(+1)
    try:
        yield
    finally:
        _switch(-1)
        _local.handler = before


def _switch(change: int) -> None:
    """A switch stands in front of each function while anyone needs it; then all is as before."""
    global _users, _fastpath
    with _lock:
        _users += change
        if _users == 1 and change > 0:
            _original.update({kind: getattr(F, kind) for kind in KINDS})
            _fastpath = torch.backends.mha.get_fastpath_enabled()
            _install(SWITCHES, False)  # the fused encoder layer passes dropout by
        elif _users == 0:
            _install(_original, _fastpath)


def _install(functions: dict[str, Callable[..., Tensor]], fastpath: bool) -> None:
    for kind in KINDS:
        setattr(F, kind, functions[kind])
    torch.backends.mha.set_fastpath_enabled(fastpath)


def _switched(kind: str) -> Callable[..., Tensor]:
    @wraps(_original[kind])
    def function(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        handler = getattr(_local, "handler", None)
        if handler is None:
            return _original[kind](input, p, training, inplace)
        return handler(kind, input, p, training)

    return function


@cache
def late(kind: str) -> Callable[..., Any]:
    """The function as it is when it is called, for graphs that keep the one from before the switch."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(F, kind)(*args, **kwargs)

    call.__name__ = call.__qualname__ = f"late_{kind}"
    return call


@wraps(_original[ATTENTION])
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    handler = getattr(_local, "handler", None)
    if handler is None or dropout_p == 0:
        return _original[ATTENTION](query, key, value, attn_mask, dropout_p, *args, **kwargs)
    is_causal, scale, enable_gqa = ({**dict(zip(("is_causal",), args, strict=False)), **kwargs}.get(name) for name in
                                    ("is_causal", "scale", "enable_gqa"))  # fmt: skip
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    nothing = (scores == -torch.inf).all(-1, keepdim=True)  # a query that may look nowhere sees 0, as in torch
    return handler("dropout", scores.softmax(-1).masked_fill(nothing, 0), dropout_p, True) @ value


SWITCHES: dict[str, Callable[..., Tensor]] = {kind: _switched(kind) for kind in (*ELEMENTS, *CHANNELS)}
SWITCHES[ATTENTION] = _attention


def masked(kind: str, x: Tensor, p: float, kept: Tensor) -> Tensor:
    """Dropout of x with this mask of the points and units (1 where kept), as torch computes it."""
    if kind in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
        return x * (kept / (1 - p))
    # Alpha dropout keeps the mean and the variance of a SELU: dropped units go to its lower limit.
    low = -1.7580993408473766
    scale = (1 / ((1 - p) * (1 + p * low * low))) ** 0.5
    return (x * kept + low * (1 - kept)) * scale - scale * p * low


@dataclass
class Masked:
    """A handler: the masks of one draw, layer after layer, for the points of a batch.

    axes[k] is where the k-th call has the points; calls that are switched off pass.
    """

    masks: Masks
    axes: list[int]
    points: int
    positions: Indices | None = None
    layer: int = 0

    def __call__(self, kind: str, x: Tensor, p: float, on: bool) -> Tensor:
        if not on or p == 0:
            return x
        axis, layer = self.axes[self.layer], self.layer
        self.layer += 1
        first = x.movedim(axis, 0)
        shape = (self.points, first.shape[0] // self.points, *first.shape[1:])  # several rows a point: heads
        units = shape[1] * (math.prod(shape[2:]) if kind in ELEMENTS else shape[2])
        kept = self.masks.kept(layer, units, p, self.positions)[0].to(x.device, x.dtype)
        ones = (1,) * (0 if kind in ELEMENTS else len(shape) - 3)
        kept = kept.view(-1, *(shape[1:] if kind in ELEMENTS else (*shape[1:3], *ones)))
        return masked(kind, first.reshape(shape), p, kept).reshape(first.shape).movedim(0, axis)


@torch.no_grad()
def survey(
    module: nn.Module, call: Callable[[nn.Module, Any], Any], batch: Any, training: bool | None = None
) -> tuple[list[Call], list[str]]:
    """The dropout calls of a forward pass in this mode (None: as the module is), and what else is random in it."""
    probe = copy.deepcopy(module)
    if training is not None:
        probe.train(training)
        for part in probe.modules():
            if isinstance(part, nn.modules.batchnorm._NormBase):
                part.eval()
    stack, found, others = _watched(probe), list[Call](), list[str]()

    def record(kind: str, x: Tensor, p: float, on: bool) -> Tensor:
        found.append(Call(kind, p, on and p > 0, stack[-1] if stack else "", tuple(x.shape)))
        return x

    with torch.random.fork_rng(devices=[]), controlled(record), _Randomness(others):
        call(probe, copied(batch))
    return found, others


def _watched(module: nn.Module) -> list[str]:
    """A stack of the names of the modules whose forward is running."""
    stack: list[str] = []
    for name, part in module.named_modules():
        part.register_forward_pre_hook(lambda *_, name=name: stack.append(name))
        part.register_forward_hook(lambda *_: (stack.pop(), None)[1])
    return stack


class _Randomness(torch.overrides.TorchFunctionMode):
    """Notes calls of random functions that are no dropout."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name.rstrip("_") in (*RANDOM, *UNSEEN):
            self.found.append(f"torch.{name}")
        return func(*args, **(kwargs or {}))
