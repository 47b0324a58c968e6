"""Features of images in arrays, computed once: a backbone over the pool and the test set, into one .npz.

Batches begin at the same images in every process, so a process that was killed is continued to the same file, byte for
byte (on the same machine; with torch also with as many threads: how its convolutions round depends on both).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from balent.acquisition.engines.local import ahead
from balent.data.sources import Data
from balent.predictors.inputs import channels_last, fitting
from balent.predictors.training import placed
from balent.vision import onnx
from balent.vision.blocks import Computed, Features, Work, backend_for, written
from balent.vision.catalogue import Backbone
from balent.vision.fingerprints import IDS, PARTS, fingerprint, fingerprint_of

PIXELS = 250_000  # of a batch on a CPU

Given = TypeVar("Given")
Made = TypeVar("Made")
Compute = Callable[[Any, int], Iterator[np.ndarray]]  # images, from one of them on


def embed(
    data: Data,
    backbone: nn.Module,
    path: Path,
    *,
    about: dict[str, Any],
    batch_size: int = 64,
    device: str = "cpu",
    backend: str = onnx.AUTO,
) -> Iterator[tuple[int, int]]:
    """Writes the features of all images to an .npz; yields (images done, number of images).

    data        images and labels
    backbone    a module from images [batch, 3, height, width] to features [batch, width]
    path        the .npz to write; a file with the same settings is kept, one with other settings is an error
    about       settings that decide the features; they are kept in the file
    batch_size  images at a time
    device      where the backbone runs
    backend     onnxruntime or torch; auto is the one that the file was begun with, else onnxruntime if it is installed

    A process that was stopped is continued by the same call.
    """
    _check(data, batch_size)
    said = {**about, "batch_size": batch_size, "device": device.partition(":")[0]}
    said |= {"images": fingerprint(data), "weights": fingerprint_of(backbone)}
    said["backend"] = backend_for(path, backend, device)
    compute = _none if path.exists() else computing(data, backbone, batch_size, device, said["backend"])

    def features(part: str, start: int) -> Iterator[Computed]:
        for rows in _checked(compute(getattr(data, part), start), part, start):
            yield Computed(rows, len(rows))

    sizes = {part: len(getattr(data, part)) for part in PARTS}
    yield from written(path, Work(said, sizes, features, _columns(data)))


def _none(images: Any, start: int) -> Iterator[np.ndarray]:
    """For a file that is complete."""
    return iter(())


def _columns(data: Data) -> dict[str, np.ndarray]:
    ids = {name: getattr(data, name) for name in IDS.values() if getattr(data, name) is not None}
    return {**{name: getattr(data, name).numpy() for name in PARTS.values()}, **ids}


def together(image_size: int, device: str = "cpu") -> int:
    """How many images to take at a time: a power of two, of 250,000 pixels or less on a CPU.

    With torch, maps that are larger than 32 MB come from the system, page by page, at every layer, unless the process
    keeps its pages (balent.acquisition.pages): 4 images of 224 × 224 were then more than twice as fast as 64.
    """
    return 2 ** int(math.log2(max(1, PIXELS // image_size**2))) if device == "cpu" else 256


def computing(data: Data, backbone: nn.Module, batch_size: int, device: str, backend: str) -> Compute:
    """Images to features, batch by batch, by a backend."""
    if backend == onnx.TORCH:
        backbone = placed(backbone, device).eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return partial(_by_torch, backbone, batch_size)
    channels, height, width = _prepared(backbone, data.x_train[:1]).shape[1:]
    example = torch.rand(batch_size, channels, height, width, generator=Generator().manual_seed(0))
    return partial(_by_onnx, backbone, onnx.Exported(backbone, example))


def _by_torch(backbone: nn.Module, batch_size: int, images: Any, start: int) -> Iterator[np.ndarray]:
    """The next batch is read while this one is computed."""
    for _, batch in ahead((i, images[i : i + batch_size]) for i in range(start, len(images), batch_size)):
        with torch.inference_mode():
            yield backbone(channels_last(fitting(backbone, batch))).float().cpu().numpy()


def _by_onnx(backbone: nn.Module, run: onnx.Exported, images: Any, start: int) -> Iterator[np.ndarray]:
    """Batches side by side, each by one thread."""

    def batch(i: int) -> np.ndarray:
        x = _prepared(backbone, images[i : i + run.batch]).numpy()
        features = run(x)
        features[~np.isfinite(x).all((1, 2, 3))] = np.nan  # a ReLU of onnxruntime may turn NaN into 0
        return features

    return side_by_side(batch, range(start, len(images), run.batch), torch.get_num_threads())


@torch.inference_mode()
def _prepared(backbone: nn.Module, batch: Any) -> Tensor:
    """In precision and size as the network takes them: scaling with antialiasing cannot be exported."""
    x = fitting(backbone, batch)
    return backbone.scaled(x) if isinstance(backbone, Backbone) else x


def side_by_side(work: Callable[[Given], Made], items: Iterable[Given], threads: int) -> Iterator[Made]:
    """The work on each item, in order; one item more than there are threads waits, so that memory is bounded."""
    left = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        under_way: list[Future[Made]] = [pool.submit(work, item) for item in islice(left, threads + 1)]
        while under_way:
            done = under_way.pop(0).result()
            under_way += [pool.submit(work, item) for item in islice(left, 1)]
            yield done


def _checked(found: Iterator[np.ndarray], part: str, start: int) -> Iterator[Features]:
    """Features that are one vector of finite numbers per image."""
    for features in found:
        if features.ndim != 2:
            raise ValueError(f"a backbone must give [batch, width], but this one gave {features.shape}")
        bad = np.flatnonzero(~np.isfinite(features).all(1))
        if len(bad):
            raise ValueError(
                f"features must be finite, but those of image {start + bad[0]} of {part} are not; look for NaN "
                "in this image, and in the weights of the backbone"
            )
        yield features
        start += len(features)


def first(data: Data, images: int | None) -> Data:
    """The first images of the pool and of the test set."""
    if images is None:
        return data
    if images < 1:
        raise ValueError(f"the number of images must be 1 or more, but is {images}")
    names = (*PARTS, *PARTS.values(), *(name for name in IDS.values() if getattr(data, name) is not None))
    return replace(data, **{name: getattr(data, name)[:images] for name in names})


# ── what features depend on ──────────────────────────────────────────────────────────────────────


def _check(data: Data, batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size must be positive, but is {batch_size}")
    if len(data.x_train) == 0:
        raise ValueError("x_train must have images, but is empty")
    for part in PARTS:
        images = getattr(data, part)
        shape = tuple(images[:1].shape)
        if len(shape) != 4 or shape[1] not in (1, 3):
            raise ValueError(
                f"a backbone takes images [images, 1 or 3 channels, height, width], but {part} is "
                f"{(len(images), *shape[1:])}"
            )
