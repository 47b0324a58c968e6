"""Dropout under control: every call of it, in any module, takes its mask from us.

All kinds of dropout end in a function of torch.nn.functional: nn.Dropout and its siblings, attention,
models of other libraries, and calls by hand. Within `controlled(...)` those functions ask a handler
(of this thread) instead of the random number generator.
"""

import inspect
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ELEMENTS = ("dropout", "alpha_dropout")  # every number has a mask of its own
CHANNELS = ("dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")  # every channel
UNBATCHED = {"dropout1d": 2, "dropout3d": 4}  # with at most this number of axes, the first one is the channels
ATTENTION = "scaled_dot_product_attention"
KINDS = (*ELEMENTS, *CHANNELS, ATTENTION)

_local = threading.local()  # the handler of each thread
_lock = threading.Lock()
_users = 0  # of the switches, in all threads
_original = {name: getattr(F, name) for name in KINDS}  # as they were when the first switch came
_fastpath = True

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
    default: bool = inspect.signature(_original[kind]).parameters["training"].default  # False for alpha dropout

    @wraps(_original[kind])
    def function(input: Tensor, p: float = 0.5, training: bool = default, inplace: bool = False) -> Tensor:
        handler = getattr(_local, "handler", None)
        if handler is None:
            return _original[kind](input, p, training, inplace)
        out = handler(kind, input, p, training)
        return input.copy_(out) if inplace and out is not input else out

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


def mask_sizes(kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the mask that torch makes for an input of this shape: 1 along the axes that share a mask.

    Channels are on the second axis, except where torch takes the input for one point without an axis of points:
    Dropout1d of two axes and Dropout3d of four drop along the first axis.
    """
    if kind in ELEMENTS:
        return shape
    own = 1 if kind in UNBATCHED and len(shape) <= UNBATCHED[kind] else 2
    return (*shape[:own], *(1 for _ in shape[own:]))
