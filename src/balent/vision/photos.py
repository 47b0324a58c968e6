"""Features of image files, as a project computes them: decoded, turned upright, cropped, through a backbone.

Images are computed one by one, several of them side by side. So the features of an image depend neither on the
images beside it nor on the number of threads. A file that cannot be read is skipped, with a reason.
"""

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from threading import Semaphore
from typing import Any, cast

import numpy as np
import torch
from torch import Generator, Tensor, nn

from balent.data.formats import image_file
from balent.data.formats.image_file import Picture
from balent.loop.seeds import seed_of
from balent.predictors.training import reproducible
from balent.vision import catalogue, onnx
from balent.vision.catalogue import Backbone
from balent.vision.fingerprints import fingerprint_of

# Raise the number when the pixels of a file change: features of before and after must not be mixed.
PREPROCESSING = "1: upright, JPEG draft, centre crop, bilinear"
APPLE = (".heic", ".heif")  # photos of telephones
NOT_HERE = {errno.ENOENT: "missing", errno.EACCES: "no permission to read it", errno.EISDIR: "a folder"}


class Photos:
    """Image files to features.

    backbone    a name of the catalogue, random:NAME, a file or folder of weights, or a hub name
    image_size  pixels of a side; None is what the weights were trained with
    backend     auto, onnxruntime, torch, or the backend of features that are to be continued
    threads     images at a time; None is torch's number of threads. Features do not depend on it
    """

    def __init__(
        self,
        backbone: str = "efficientnet-lite0",
        image_size: int | None = None,
        backend: str = onnx.AUTO,
        threads: int | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be positive, but is {threads}")
        self.network = named(backbone, image_size)
        self.side = self.network.image_size or 224
        self.backend = onnx.backend(backend)
        self.threads = threads or torch.get_num_threads()

    @property
    def width(self) -> int:
        return self.network.width

    def about(self) -> dict[str, Any]:
        """The settings that decide the features. Makers with equal settings compute equal features."""
        return {**self._settings, "backend": self.backend, "preprocessing": PREPROCESSING}

    def state(self) -> dict[str, np.ndarray]:
        """Nothing is learnt from the images."""
        return {}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """There is nothing to load."""

    def fit(self, contents: Sequence[Path]) -> None:
        """There is nothing to fit."""

    def __call__(self, contents: Sequence[str | Path]) -> tuple[np.ndarray, list[str | None]]:
        """Features of the files that can be read, in order; and for every file None, or why it cannot be read."""
        found = self._side_by_side([Path(content) for content in contents], partial(pixels, side=self.side))
        rows = [row for row in found if not isinstance(row, str)]
        reasons = [row if isinstance(row, str) else None for row in found]
        return np.concatenate([np.empty((0, self.width), np.float32), *rows]), reasons

    def of_pixels(self, images: np.ndarray) -> np.ndarray:
        """Features of images that are decoded already: bytes [images, 3, side, side]."""
        rows = cast(list[np.ndarray], self._side_by_side(images, lambda image: image))
        return np.concatenate([np.empty((0, self.width), np.float32), *rows])

    def __getstate__(self) -> dict[str, Any]:
        """Without what runs the network, which each process makes for itself."""
        return {name: value for name, value in vars(self).items() if name != "_run"}

    def _side_by_side(
        self, contents: Sequence[Path] | np.ndarray, decoded: Callable[[Any], np.ndarray | str]
    ) -> list[np.ndarray | str]:
        """One thread more than compute: it reads and decodes meanwhile."""
        work = partial(self._row, decoded, run=self._run, free=Semaphore(self.threads))
        alone = onnx.one_thread() if self.backend == onnx.TORCH else nullcontext()
        with alone, ThreadPoolExecutor(self.threads + 1) as pool:
            try:
                return list(pool.map(work, contents))
            except BaseException:
                pool.shutdown(cancel_futures=True)  # or an interrupt would wait for the whole block
                raise

    def _row(
        self, decoded: Callable[[Any], np.ndarray | str], content: Any, run: onnx.Run, free: Semaphore
    ) -> np.ndarray | str:
        image = decoded(content)
        if isinstance(image, str):
            return image
        with free:
            row = run(image[None])
        if not np.isfinite(row).all():
            which = content if isinstance(content, Path) else "an image"
            raise ValueError(f"features must be finite, but those of {which} are not; look for NaN in the weights")
        return row

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return {**self.network.about(), "weights": fingerprint_of(self.network)}

    @cached_property
    def _run(self) -> onnx.Run:
        onnx.backend(self.backend)  # refused if it is not the one of the process that made this
        example = torch.randint(256, (1, 3, self.side, self.side), generator=Generator().manual_seed(0))
        with onnx.one_thread():
            return onnx.run_by(self.backend, Bytes(self.network), example.to(torch.uint8))


class Bytes(nn.Module):
    """A backbone of pixels 0..255: a quarter of the memory to move, and normalisation is part of the graph."""

    def __init__(self, network: Backbone) -> None:
        super().__init__()
        self.network = network
        self.shift, self.scale = 255 * network.mean, 255 * network.std
        # EfficientNet takes 0..255: three passes over the pixels less, a hundredth of the time.
        self.as_they_are = not self.shift.any() and torch.allclose(self.scale, torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        return self.network.network(x if self.as_they_are else (x - self.shift) / self.scale)


def named(backbone: str, image_size: int | None = None) -> Backbone:
    """A backbone by name; random weights are the same every time."""
    with reproducible(Generator().manual_seed(seed_of(0, "initial weights"))):
        return catalogue.backbone(backbone, image_size).eval()


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def pixels(path: Path, side: int) -> np.ndarray | str:
    """The pixels [3, side, side] of an image file, or why it cannot be read."""
    try:
        return image_file.square(Picture(str(path), lambda: path.open("rb")), side)
    except OSError as error:
        if error.errno is not None and error.errno not in NOT_HERE:
            raise  # of the disk, not of this file
        return NOT_HERE.get(error.errno or 0) or _reason(path, error)
    except Exception as error:  # a damaged image can raise anything
        return _reason(path, error)


def _reason(path: Path, error: Exception) -> str:
    from PIL import Image, UnidentifiedImageError

    known: dict[type[Exception], Callable[[], str]] = {
        image_file.TooLarge: lambda: f"too large: {error}",
        Image.DecompressionBombError: lambda: f"too large: {error}",
        Image.DecompressionBombWarning: lambda: f"too large: {error}",
        UnidentifiedImageError: lambda: _unidentified(path),
    }
    if type(error) in known:
        return known[type(error)]()
    words = str(error).replace("\n", " ")[:100]
    return "truncated" if "truncated" in words else f"damaged: {type(error).__name__}: {words}"


def _unidentified(path: Path) -> str:
    if path.suffix.lower() in APPLE:
        return "in a format of Apple's that Pillow does not read; convert it to JPEG"
    return "not an image" if path.stat().st_size else "empty"
