"""The compiled passes (convolutions under masks, logits to moments), where they were built; else plain torch.

Both ways give the same result; `active()` says which one serves. BALENT_KERNEL=torch turns the
compiled one off, and BALENT_KERNEL=avx2 (or another of `levels()`) holds it to older instructions.
"""

import os
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from balent.kernels import hashing, plain

SUM_TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}


@cache
def compiled() -> Any:
    """The compiled module; None where balent was installed without a compiler."""
    try:
        return import_module("balent.kernels._native")
    except ModuleNotFoundError:
        return None


def levels() -> list[str]:
    """The instruction sets that the compiled kernel can use on this machine, best first."""
    native = compiled()
    return native.levels() if native else []


@cache
def active() -> str:
    """ "torch", or the instruction set that the compiled kernel uses."""
    asked = os.environ.get("BALENT_KERNEL")
    if asked and asked not in ("torch", *levels()):
        raise ValueError(f"BALENT_KERNEL={asked} is not available here; choose from {['torch', *levels()]}")
    return asked or next(iter(levels()), "torch")


def moments(x: Tensor, *, logits: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, tuple[int, int] | None]:
    """mean, var, within, entropy, and the first (point, draw) that is not a distribution, if any."""
    tolerance = SUM_TOLERANCE[x.dtype]
    if 0 in x.shape:
        raise ValueError(f"draws must have points, draws and classes, but have shape {tuple(x.shape)}")
    if x.data_ptr() % x.element_size():
        x = x.clone()  # numbers across the bounds of words: the kernel, as C++ itself, reads aligned ones only
    if x.device.type != "cpu" or active() == "torch":
        return plain.moments(x, logits=logits, tolerance=tolerance)
    if x.dtype not in (torch.float32, torch.float64):
        x = x.float()
    pool, draws, classes = x.shape
    mean, var, within = (torch.empty(pool, classes, dtype=torch.float64) for _ in range(3))
    entropy = torch.empty(pool, dtype=torch.float64)
    bad = compiled().moments(
        x.detach(), mean, var, within, entropy, logits, tolerance, torch.get_num_threads(), active()
    )
    return mean, var, within, entropy, divmod(bad, draws) if bad >= 0 else None


def posterior_terms(mean: Tensor, var: Tensor, within: Tensor, n: int, near: float) -> tuple[Tensor, bool] | None:
    """E[P_c] h(P_c⁺), and is any Beta within `near` of Beta(1, 1)?  None where the compiled kernel does not serve."""
    if active() == "torch" or mean.device.type != "cpu" or mean.dtype != torch.float64:
        return None
    terms = torch.empty_like(mean, memory_format=torch.contiguous_format)
    parts = (part.detach().contiguous() for part in (mean, var, within))
    clear = compiled().posterior_terms(*parts, terms, 1 / n, near, torch.get_num_threads(), active())
    return terms, not clear


def kept(keys: Tensor, units: int, p: float) -> Tensor:
    """1.0 where a unit is kept, [..., units] for keys [...]: its hash, as a number in [0, 1), is p or more."""
    if active() == "torch":
        return hashing.kept(keys, units, p)
    mask = torch.empty(*keys.shape, units)
    flat = (keys.contiguous().view(-1), mask.view(-1, units))
    compiled().kept(*flat, hashing.threshold(p), torch.get_num_threads(), active())
    return mask
