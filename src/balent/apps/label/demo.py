"""Pictures to try the page with: handwritten digits that come with balent, in a folder that is removed afterwards."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from balent.data import arrays

PICTURES, SIDE, BORDER = 600, 320, 2
CLASSES = ",".join("0123456789")


@contextmanager
def pictures() -> Iterator[Path]:
    """A folder of PNG files. Their names do not give the labels away."""
    from PIL import Image

    from balent import data

    images = arrays.npz(Path(data.__file__).with_name("digits.npz"), "images")[:PICTURES]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "digits"
        folder.mkdir()
        for number, digit in enumerate(images.reshape(-1, 8, 8)):
            ink = Image.fromarray(np.pad((255.0 * digit / digit.max()).astype(np.uint8), BORDER))
            large = np.asarray(ink.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
            Image.fromarray(sharp(large)).save(folder / f"{number:04d}.png")
        yield folder


def sharp(ink: np.ndarray) -> np.ndarray:
    """Strokes with clear edges on paper: 8 × 8 pixels are hard to read as they are."""
    darkness = 1 / (1 + np.exp(-(ink / 255 - 0.5) * 14))
    return (255 * (1 - darkness)).astype(np.uint8)
