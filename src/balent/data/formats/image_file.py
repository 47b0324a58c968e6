"""One image file: opened safely, turned upright, in plain colours. No torch here: the labelling page shows images too.

Only formats that Pillow decodes by itself are opened, and only if the file is large enough for its pixels.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from types import ModuleType
from typing import Any

import numpy as np

from balent.data.formats import limits

FORMATS = ("JPEG", "MPO", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")  # others may run programs
GREY = ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L")
DEEP = ("I", "I;16", "I;16B", "I;16L")  # 16 bits
TRANSPARENT = ("RGBA", "LA", "PA", "La", "RGBa")


class TooLarge(ValueError):
    """An image of more pixels than a file of its size may have."""


@dataclass(frozen=True)
class Picture:
    """An image file, wherever it lies."""

    name: str
    open: Callable[[], BufferedIOBase]


def pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise ValueError("image files need Pillow; install it with: pip install 'balent[images]'") from None
    return Image


@contextmanager
def opened(picture: Picture) -> Iterator[Any]:
    """Only its header is read here: a few bytes of PNG may be gigabytes of pixels."""
    image = pillow()
    image.init()
    with picture.open() as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        with image.open(file, formats=[name for name in FORMATS if name in image.OPEN]) as found:
            width, height = found.size
            if width * height > max(limits.PIXELS, limits.RATIO * size):
                raise TooLarge(f"{width:,} × {height:,} pixels are too many for {size:,} bytes")
            yield found


def head(picture: Picture) -> tuple[str, tuple[int, int]]:
    """Mode, and width and height as they are when the image is upright; nothing is decoded."""
    with opened(picture) as image:
        width, height = image.size
        sideways = image.getexif().get(0x0112, 1) >= 5  # the orientations with width and height exchanged
        mode = "RGB" if image.mode == "P" else image.mode
        return mode, (height, width) if sideways else (width, height)


def square(picture: Picture, side: int) -> np.ndarray:
    """Colours [3, side, side] of the upright image, cropped around the centre: for features, so as fast as can be.

    A JPEG is decoded to the smallest of its sizes (1/1, 1/2, 1/4, 1/8) that is enough, half of what `blocks` takes.
    """
    from PIL import ImageOps

    with opened(picture) as image:
        image.draft("RGB", (side, side))
        ImageOps.exif_transpose(image, in_place=True)
        upright = plain(image, 3, [])
        fitted = ImageOps.fit(upright, (side, side), pillow().Resampling.BILINEAR)
        return np.stack([np.asarray(colour, np.uint8) for colour in fitted.split()])


def fitting(picture: Picture, side: int) -> Any:
    """A Pillow image of the upright picture in colour, with at most `side` pixels on its longer side."""
    from PIL import ImageOps

    with opened(picture) as image:
        image.draft("RGB", (side, side))
        upright = plain(ImageOps.exif_transpose(image), 3, [])
        upright.thumbnail((side, side), pillow().Resampling.LANCZOS, reducing_gap=2.0)
        return upright


def plain(image: Any, channels: int, done: list[str]) -> Any:
    """In grey or colour, 8 bits per channel, nothing transparent."""
    if image.mode in DEEP:
        done.append("of 16 bits a pixel, brought to 8")
        image = pillow().fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    if image.mode == "F":
        raise ValueError("pixels are floating-point numbers, whose range is not known")
    if image.mode in TRANSPARENT or "transparency" in image.info:
        done.append("transparent, laid on white")
        image = image.convert("RGBA")
        image = pillow().alpha_composite(pillow().new("RGBA", image.size, "white"), image)
    elif channels == 3 and image.mode in GREY:
        done.append("grey, made colour")
    wanted = "L" if channels == 1 else "RGB"
    return image if image.mode == wanted else image.convert(wanted)  # which would copy what is right already
