"""Layers behind a dropout, for all draws together: weights are put in the order of the compiled kernel once."""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from balent import kernels
from balent.kernels import hashing, plain

LARGEST_POOL, CHANNELS_TOGETHER, UNITS_TOGETHER = 3, 4, 64  # of the compiled convolution
LANES = 16  # of the widest vector


@dataclass(frozen=True, eq=False)
class Convolved:
    """A convolution between two dropouts of channels, max-pooling, a pointwise function, and a linear map.

    The function is x above 0 and slope · x below. Biases are zeros where there are none; images are padded already.
    """

    weight: Tensor  # [out, in, kernel, kernel]
    bias: Tensor
    linear: Tensor  # [units, out · places]
    linear_bias: Tensor
    pool: int
    slope: float

    def __call__(self, images: Tensor, kept: Tensor, after: Tensor) -> Tensor:
        """[points, draws, units]. `kept` [draws, points or 1, in] says which channels a draw sees, `after` which it
        keeps of those that come out."""
        if not _serves(images) or self.pool > LARGEST_POOL:
            return plain.convolved(self, images, kept, after)
        out = torch.empty(len(images), len(kept), len(self._packed[-1]))
        inputs = (images.detach().contiguous(), *self._packed, kept.contiguous(), after.contiguous(), out)
        kernels.compiled().convolved(*inputs, self.pool, self.slope, torch.get_num_threads(), kernels.active())
        return out[..., : len(self.linear)]

    @cached_property
    def _packed(self) -> tuple[Tensor, ...]:
        rest = (0, -len(self.linear) % UNITS_TOGETHER)
        weight = F.pad(self.weight.permute(1, 2, 3, 0), (0, -len(self.weight) % CHANNELS_TOGETHER))
        planes = F.pad(self.linear.unflatten(1, (len(self.weight), -1)).permute(1, 2, 0), rest)
        return tuple(x.detach().contiguous() for x in (weight, self.bias, planes, F.pad(self.linear_bias, rest)))


@dataclass(frozen=True, eq=False)
class MaskedLinear:
    """A linear map behind a dropout whose masks differ by point."""

    weight: Tensor  # [out, units]
    bias: Tensor
    p: float

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        """[points, draws, out] of points [points, units], with a key for each draw and point."""
        if not _serves(x):
            return plain.thinned(self, x, keys)
        out = torch.empty(len(x), len(keys), len(self._packed[-1]))
        inputs = (x.detach().contiguous(), *self._packed, keys.contiguous(), out)
        threads, level = torch.get_num_threads(), kernels.active()
        kernels.compiled().thinned(*inputs, self._threshold, self.p < 0.5, threads, level)
        return out[..., : len(self.weight)]

    @cached_property
    def _threshold(self) -> int:
        return hashing.threshold(self.p)

    @cached_property
    def _packed(self) -> tuple[Tensor, Tensor]:
        rest = (0, -len(self.weight) % LANES)
        return F.pad(self.weight.detach().t(), rest).contiguous(), F.pad(self.bias.detach(), rest).contiguous()


def _serves(x: Tensor) -> bool:
    """Does the compiled kernel serve for this tensor?"""
    return kernels.active() != "torch" and x.device.type == "cpu" and x.dtype == torch.float32
