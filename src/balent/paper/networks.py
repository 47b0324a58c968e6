"""The networks printed at the end of the paper, layer by layer.

Dropout comes before ReLU everywhere, and before max-pooling in convolutions: a mask commutes with
both, which is what the fast paths use. Every last layer has no bias.
"""

from torch import Tensor, nn

from balent.predictors.variational_dropout import VariationalLinear
from balent.vision.backbones import Weights
from balent.vision.catalogue import backbone, made


def bayesian_head(features: int, classes: int, p: float = 0.2) -> nn.Sequential:
    """The last layers with dropout in between: the part of a network that makes it Bayesian."""
    return nn.Sequential(
        nn.Linear(features, features),
        nn.Dropout(p),
        nn.ReLU(inplace=True),
        nn.Linear(features, classes, bias=False),
    )


class BNN(nn.Module):
    """Moons: points in the plane."""

    def __init__(self, classes: int = 3, width: int = 72, p: float = 0.2) -> None:
        super().__init__()
        self.classifier = nn.Sequential(
            nn.Linear(2, width),
            nn.ReLU(inplace=True),
            nn.Linear(width, width),
            nn.Dropout(p),
            nn.ReLU(inplace=True),
            nn.Linear(width, width),
            nn.Dropout(p),
            nn.ReLU(inplace=True),
            nn.Linear(width, classes, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(x)


class CNN2D(nn.Module):
    """Convolution, dropout of whole channels, max-pooling over 2 × 2, ReLU."""

    def __init__(self, in_channel: int, out_channel: int, kernel_size: int = 5, dropout_p: float = 0.5) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channel, out_channel, kernel_size)
        self.dropout = nn.Dropout2d(dropout_p)
        self.pool = nn.MaxPool2d(2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.pool(self.dropout(self.conv(x))))


class CNNBNN(nn.Module):
    """MNIST: images of 1 × 28 × 28, dropout on all layers."""

    def __init__(self, classes: int = 10, p: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(CNN2D(1, 32, dropout_p=p), CNN2D(32, 64, dropout_p=p))
        self.classifier = nn.Sequential(
            nn.Linear(1024, 128),
            nn.Dropout(p),
            nn.ReLU(inplace=True),
            nn.Linear(128, classes, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


class ResNetClassifier(nn.Module):
    """CIFAR-100: features that a fixed ResNet-50 has computed once."""

    def __init__(self, features: int = 2048, classes: int = 100, p: float = 0.2) -> None:
        super().__init__()
        self.classifier = bayesian_head(features, classes, p)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(x)


class BackboneBNN(nn.Module):
    """Any backbone that gives [batch, width], with a Bayesian head."""

    def __init__(self, features: nn.Module, width: int, classes: int, p: float = 0.2) -> None:
        super().__init__()
        self.features = features
        self.classifier = bayesian_head(width, classes, p)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))


def backbone_with_head(name: str, classes: int, p: float = 0.2, image_size: int | None = None) -> BackboneBNN:
    """Any backbone of the catalogue, trained together with its head. Images are in [0, 1]."""
    features = backbone(name, image_size)
    return BackboneBNN(features, features.width, classes, p)


def svhn_bnn(classes: int = 10, weights: Weights = None, image_size: int = 32) -> BackboneBNN:
    """SVHN: ResNet-18 trained together with its head. Images are in [0, 1]."""
    return BackboneBNN(made("resnet18", weights, image_size), 512, classes)


def tinyimagenet_bnn(classes: int = 200, weights: Weights = None, image_size: int = 64) -> BackboneBNN:
    """TinyImageNet: ResNet-50 trained together with its head. Images are in [0, 1]."""
    return BackboneBNN(made("resnet50", weights, image_size), 2048, classes)


class VariationalDropoutClassifier(nn.Module):
    """CIFAR-10 and CIFAR-100 under variational dropout, on fixed features."""

    def __init__(self, features: int = 2048, classes: int = 10, width: int = 1024) -> None:
        super().__init__()
        self.classifier = nn.Sequential(
            VariationalLinear(features, width),
            VariationalLinear(width, width),
            nn.Linear(width, classes, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(x)
