"""The same in plain torch (moments in float64): for GPUs, for installs without a compiler, and as the oracle."""

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from balent.kernels import hashing

if TYPE_CHECKING:
    from balent.kernels.layers import Convolved, MaskedLinear

BLOCK = 1 << 22  # elements at a time: 32 MB per temporary array
CONVOLVED = 16  # points at a time


def moments(
    x: Tensor, *, logits: bool, tolerance: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, tuple[int, int] | None]:
    """mean, var, within, entropy, and the first (point, draw) that is not a distribution, if any."""
    pool, draws, classes = x.shape
    size = max(1, BLOCK // (draws * classes))
    blocks = [_block(x[i : i + size].double(), logits, tolerance) for i in range(0, pool, size)]
    mean, var, within, entropy, bad = (torch.cat(part) for part in zip(*blocks, strict=True))
    first = bad.flatten().nonzero()[:1]
    return mean, var, within, entropy, divmod(int(first), draws) if len(first) else None


def _block(x: Tensor, logits: bool, tolerance: float) -> tuple[Tensor, ...]:
    if logits:
        bad = ~x.logsumexp(-1).isfinite()  # a NaN, +inf, or -inf for every class
        p = x.softmax(-1)
    else:
        total = x.sum(-1, keepdim=True)
        bad = ~((total[..., 0] - 1).abs() <= tolerance) | (x < 0).any(-1)
        p = x / total
    mean = p.mean(1)
    var, within = p.var(1, correction=0), (p * (1 - p)).mean(1)
    top = mean.argmax(-1, keepdim=True)
    lead = top.unsqueeze(1).expand(-1, p.shape[1], -1)
    others = p.scatter(-1, lead, 0)
    rest = others.sum(-1)  # 1 - p of the top class, exact
    var = var.scatter(-1, top, rest.var(1, correction=0).unsqueeze(-1))
    within = within.scatter(-1, top, (rest * p.gather(-1, lead)[..., 0]).mean(1).unsqueeze(-1))
    return mean, var, within, _entropies(p).mean(1), bad


def _entropies(p: Tensor) -> Tensor:
    """The entropy of each draw. Its own leading class, which may round to 1, is known by the sum of the others."""
    lead, top = p.max(-1, keepdim=True)
    others = p.scatter(-1, top, 0)
    rest = others.sum(-1)
    surprise = torch.where(rest < 0.5, -lead[..., 0] * torch.log1p(-rest), torch.special.entr(lead[..., 0]))
    return torch.special.entr(others).sum(-1) + surprise


def convolved(layer: "Convolved", images: Tensor, kept: Tensor, after: Tensor) -> Tensor:
    """All draws of a convolution between two dropouts of channels, up to the linear map: [points, draws, units]."""
    kept, after = (mask.to(images).expand(-1, len(images), -1).transpose(0, 1) for mask in (kept, after))
    parts = zip(*(x.split(CONVOLVED) for x in (images, kept, after)), strict=True)
    z = torch.cat([_pooled(layer, x, keep) * then[..., None, None] for x, keep, then in parts])
    return F.linear(F.leaky_relu(z, layer.slope).flatten(2), layer.linear, layer.linear_bias)


def _pooled(layer: "Convolved", images: Tensor, kept: Tensor) -> Tensor:
    """[points, draws, out, high, wide]: sums of what each channel contributes, the largest of each window."""
    width = layer.weight.shape[1]
    alone = layer.weight.transpose(0, 1).reshape(-1, 1, *layer.weight.shape[2:])  # a group for each channel
    each = F.conv2d(images, alone, groups=width).unflatten(1, (width, -1))
    sums = torch.bmm(kept, each.flatten(2)).unflatten(2, each.shape[2:])
    return F.max_pool2d(sums.flatten(0, 1), layer.pool).unflatten(0, sums.shape[:2]) + layer.bias[:, None, None]


def thinned(layer: "MaskedLinear", x: Tensor, keys: Tensor) -> Tensor:
    """All draws of a linear map behind a dropout with a key for each draw and point: [points, draws, out]."""
    kept = hashing.kept(keys.t(), x.shape[1], layer.p).to(x.device, x.dtype)
    return F.linear(x[:, None] * kept, layer.weight, layer.bias)
