"""Random changes to images that leave their class alone: crop, flip, colour jitter, grayscale.

Images are [batch, channels, height, width] in [0, 1], and stay so. Each image has random numbers of its own, all of
them from the generator that is passed in. The definitions are those of kornia's RandomResizedCrop,
RandomHorizontalFlip, ColorJitter and RandomGrayscale, which draw from torch's global state instead.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, grid_sample

from balent.lookup import lookup

Augment = Callable[[Any, Generator], Any]  # (batch, generator) -> batch
Images = Float[Tensor, "batch channels height width"]
Factors = Float[Tensor, " batch"]
Range = tuple[float, float]

LUMA = (0.299, 0.587, 0.114)  # of red, green and blue in grey (ITU-R BT.601)
TRIES = 10  # boxes that are drawn for a crop until one lies within the image


@dataclass(frozen=True)
class Views:
    """The four changes in their order, each with its chance.

    The paper names the four and no numbers; these are SimCLR's for small images (Chen et al., 2020, appendices A and
    B.9: colour strength 0.5, no blur).
    """

    area: Range = (0.08, 1.0)  # share of the image that a crop keeps
    ratio: Range = (3 / 4, 4 / 3)  # width to height of a crop
    flip: float = 0.5  # chance to be mirrored
    jitter: float = 0.8  # chance that colours change
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1  # of a turn of the colour wheel, either way
    gray: float = 0.2  # chance to lose all colour
    size: int | None = None  # pixels of a side that crops are scaled to; as it was, if None

    def __call__(self, images: Any, generator: Generator) -> Tensor:
        _check(images)
        views = self.cropped(images, generator)
        chosen = _chance(self.jitter, images, generator)
        if len(chosen):
            views[chosen] = self.jittered(views[chosen], generator)
        chosen = _chance(self.gray, images, generator)
        views[chosen] = grayscale(views[chosen]).expand_as(views[chosen])
        return views

    def cropped(self, images: Images, generator: Generator) -> Float[Tensor, "batch channels rows columns"]:
        """A box of each image, mirrored or not, scaled to the full size: all in one bilinear sampling."""
        n, channels, height, width = images.shape
        w, h = boxes(n, width / height, self.area, self.ratio, generator)
        x, y = (
            _between(-1.0, 1.0, n, generator) * (1 - side) for side in (w, h)
        )  # centres, in [-1, 1] like the grid's
        mirror = 1 - 2 * (torch.rand(n, generator=generator) < self.flip).float()
        zero = torch.zeros(n)
        theta = torch.stack([w * mirror, zero, x, zero, h, y], 1).reshape(n, 2, 3).to(images)
        out = [n, channels, self.size or height, self.size or width]
        grid = affine_grid(theta, out, align_corners=False)
        return grid_sample(images, grid, padding_mode="border", align_corners=False).clamp_(0, 1)

    def jittered(self, images: Images, generator: Generator) -> Images:
        """Brightness, contrast, saturation and hue, in an order that the batch shares."""
        n = len(images)
        for which in torch.randperm(4, generator=generator).tolist():
            change, strength = ADJUSTMENTS[which]
            by: float = getattr(self, strength)
            middle = 0.0 if strength == "hue" else 1.0
            images = change(images, _between(middle - by, middle + by, n, generator).to(images))
        return images


def boxes(n: int, shape: float, area: Range, ratio: Range, generator: Generator) -> tuple[Factors, Factors]:
    """Widths and heights of crops as shares of the image's, whose width is `shape` times its height.

    Area is uniform, the logarithm of width to height is uniform. Of ten boxes the first that fits is taken; the whole
    image if none does.
    """
    share = _between(*area, (TRIES, n), generator)
    tall = _between(math.log(ratio[0]), math.log(ratio[1]), (TRIES, n), generator).exp() / shape
    w, h = (share * tall).sqrt(), (share / tall).sqrt()
    fits = (w <= 1) & (h <= 1)
    first = fits.float().argmax(0, keepdim=True)
    whole = ~fits.any(0)
    return tuple(side.gather(0, first)[0].where(~whole, torch.ones(())) for side in (w, h))  # type: ignore[return-value]


# ── colours ──────────────────────────────────────────────────────────────────────────────────────


def grayscale(images: Images) -> Float[Tensor, "batch 1 height width"]:
    """One channel: how bright a pixel looks."""
    if images.shape[1] == 1:
        return images
    return (images * images.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)


def brightness(images: Images, factor: Factors) -> Images:
    """0 is black, 1 the image."""
    return (images * _each(factor)).clamp(0, 1)


def contrast(images: Images, factor: Factors) -> Images:
    """0 is the mean grey of the image everywhere, 1 the image."""
    return _blend(images, grayscale(images).mean((1, 2, 3), keepdim=True), factor)


def saturation(images: Images, factor: Factors) -> Images:
    """0 is the image in grey, 1 the image."""
    return _blend(images, grayscale(images), factor)


def hue(images: Images, turn: Factors) -> Images:
    """Colours moved along the wheel by this part of a turn; the largest and the smallest channel stay what they are.

    >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> hue(red, torch.tensor([1 / 3])).flatten().round(decimals=3)  # green
    tensor([0., 1., 0.])
    """
    if images.shape[1] == 1:
        return images
    high, low = images.amax(1), images.amin(1)
    red, green, blue = images.unbind(1)
    chroma = high - low
    unit = chroma.where(chroma > 0, torch.ones_like(chroma))  # greys have no hue: any will do, for nothing is added
    sixth = (2 + (blue - red) / unit).where(high == green, 4 + (red - green) / unit)
    sixth = ((green - blue) / unit).where(high == red, sixth)
    at = (sixth[:, None] + 6 * _each(turn) + images.new_tensor([5, 3, 1])[:, None, None]) % 6
    return high[:, None] - chroma[:, None] * torch.minimum(at, 4 - at).clamp(0, 1)


ADJUSTMENTS = ((brightness, "brightness"), (contrast, "contrast"), (saturation, "saturation"), (hue, "hue"))

# Training takes one of these by name, so that it can stand in a record.
AUGMENTATIONS: dict[str, Augment] = {
    "crop-flip-jitter-gray": Views(),  # TinyImageNet: "strong data augmentations" of section 5
    "crop-flip": Views(jitter=0.0, gray=0.0),
}


def augmentation(chosen: str | Augment) -> Augment | None:
    """A function as it is, or the one of that name; none for the empty name."""
    if not isinstance(chosen, str):
        return chosen
    return lookup(AUGMENTATIONS, chosen, "augmentation") if chosen else None


def _check(images: Any) -> None:
    if not isinstance(images, Tensor) or images.ndim != 4 or images.shape[1] not in (1, 3):
        came = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(
            f"augmentation takes images [batch, 1 or 3 channels, height, width], but {came} was given; "
            'train features and tables with augment=""'
        )
    low, high = (float(edge) for edge in images.aminmax())
    if low < 0 or high > 1:
        raise ValueError(
            f"augmentation takes images from 0 to 1, but these go from {low:.3g} to {high:.3g}; "
            "normalise them within the network, after augmentation"
        )


def _chance(p: float, images: Tensor, generator: Generator) -> Tensor:
    """Which images it falls on."""
    return (torch.rand(len(images), generator=generator) < p).nonzero().flatten().to(images.device)


def _between(low: float, high: float, shape: int | tuple[int, ...], generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator)


def _each(factor: Factors) -> Tensor:
    return factor[:, None, None, None]


def _blend(images: Tensor, other: Tensor, factor: Factors) -> Tensor:
    return torch.lerp(other.expand_as(images), images, _each(factor)).clamp(0, 1)
