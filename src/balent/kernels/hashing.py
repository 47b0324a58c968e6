"""Random numbers as pure functions of where they are used: a hash of keys, not a state that is used up.

The hash is the finalizer of SplitMix64 (Steele et al., 2014), modulo 2⁶⁴, on int64 tensors.
"""

import torch
from torch import Tensor


def mixed(key: Tensor | int, more: Tensor | int) -> Tensor:
    """A key of both."""
    return _hashed(torch.as_tensor(key) + (torch.as_tensor(more) + 1) * _signed(0x9E3779B97F4A7C15))


def uniform(key: Tensor, units: int) -> Tensor:
    """Uniform on [0, 1): [..., units] for keys [...]."""
    return _shifted(mixed(key[..., None], torch.arange(units)), 11).double() * 2.0**-53


def unit(key: Tensor) -> Tensor:
    """Each key as a number on (0, 1), never an end of it: logarithms stay finite."""
    return (_shifted(key, 11).double() + 0.5) * 2.0**-53


def threshold(p: float) -> int:
    """p as one of the 2⁶³ values that a hash less its last bit can take."""
    return min(int(p * 2.0**63), (1 << 63) - 1)


def kept(keys: Tensor, units: int, p: float) -> Tensor:
    """1.0 where the hash of key and unit, as a number in [0, 1), is p or more: [..., units] for keys [...]."""
    return (_shifted(mixed(keys[..., None], torch.arange(units, device=keys.device)), 1) >= threshold(p)).float()


def _hashed(z: Tensor) -> Tensor:
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """z >> by of the unsigned number."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(x: int) -> int:
    return x - (1 << 64)
