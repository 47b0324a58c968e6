"""The paper's networks: as printed at its end, and with as many weights as that print has."""

import sys

import pytest
import torch
from helpers.labelled import generator
from helpers.resnets import torchvision_names
from safetensors.torch import save_file
from torch import nn
from torch.testing import assert_close

from balent.paper import networks
from balent.vision import backbones
from balent.vision.backbones import efficientnet_lite0, resnet

# Copied from the paper, one line a layer.
PRINTED = {
    networks.BNN: [
        "Linear(in_features=2, out_features=72, bias=True)",
        "ReLU(inplace=True)",
        "Linear(in_features=72, out_features=72, bias=True)",
        "Dropout(p=0.2, inplace=False)",
        "ReLU(inplace=True)",
        "Linear(in_features=72, out_features=72, bias=True)",
        "Dropout(p=0.2, inplace=False)",
        "ReLU(inplace=True)",
        "Linear(in_features=72, out_features=3, bias=False)",
    ],
    networks.CNNBNN: [
        "Linear(in_features=1024, out_features=128, bias=True)",
        "Dropout(p=0.5, inplace=False)",
        "ReLU(inplace=True)",
        "Linear(in_features=128, out_features=10, bias=False)",
    ],
    networks.svhn_bnn: [
        "Linear(in_features=512, out_features=512, bias=True)",
        "Dropout(p=0.2, inplace=False)",
        "ReLU(inplace=True)",
        "Linear(in_features=512, out_features=10, bias=False)",
    ],
    networks.ResNetClassifier: [
        "Linear(in_features=2048, out_features=2048, bias=True)",
        "Dropout(p=0.2, inplace=False)",
        "ReLU(inplace=True)",
        "Linear(in_features=2048, out_features=100, bias=False)",
    ],
    networks.tinyimagenet_bnn: [
        "Linear(in_features=2048, out_features=2048, bias=True)",
        "Dropout(p=0.2, inplace=False)",
        "ReLU(inplace=True)",
        "Linear(in_features=2048, out_features=200, bias=False)",
    ],
    networks.VariationalDropoutClassifier: [
        "VariationalLinear(in_features=2048, out_features=1024)",  # printed as VariationalDropout, our predictor's name
        "VariationalLinear(in_features=1024, out_features=1024)",
        "Linear(in_features=1024, out_features=10, bias=False)",
    ],
}


@pytest.fixture(scope="module")
def made():
    """Each network once: the large ones take a while."""
    return {make: make().eval() for make in PRINTED}


def names(tables):
    return [make.__name__ for make in tables]


@pytest.mark.parametrize(("make", "layers"), PRINTED.items(), ids=names(PRINTED))
def test_the_classifier_is_the_printed_one(made, make, layers):
    assert [repr(layer) for layer in made[make].classifier] == layers


@pytest.mark.parametrize(("block", "channels"), [(0, (1, 32)), (1, (32, 64))])
def test_the_blocks_of_the_mnist_network_are_the_printed_ones(made, block, channels):
    """CNN2D(in_channel, out_channel, kernel_size=5, stride=1, dropout_p=0.5, apply_max_pool=True, apply_relu=True)"""
    conv, dropout, pool, relu = made[networks.CNNBNN].features[block].children()
    assert repr(conv) == f"Conv2d({channels[0]}, {channels[1]}, kernel_size=(5, 5), stride=(1, 1))"
    assert repr(dropout) == "Dropout2d(p=0.5, inplace=False)"
    assert (type(pool), pool.kernel_size, type(relu)) == (nn.MaxPool2d, 2, nn.ReLU)


def test_dropout_in_a_block_takes_whole_channels_and_commutes_with_pooling_and_relu():
    """So that in training a channel of the output is 0, or 1/(1 - p) = 2 times that of eval mode."""
    block, x = networks.CNN2D(1, 16), torch.randn(3, 1, 12, 12, generator=generator())
    dropped, kept = block.train()(x), block.eval()(x)
    ratio = dropped / kept.where(kept > 0, torch.ones(()))
    by_channel = ratio.flatten(2).amax(2)
    assert set(by_channel.flatten().tolist()) == {0.0, 2.0}
    assert_close(dropped, kept * by_channel[:, :, None, None])


# By hand: weights of a linear layer are in·out (+ out), of a convolution in·out·25 + out.
COUNTS = {
    networks.BNN: 2 * 72 + 72 + 2 * (72 * 72 + 72) + 72 * 3,
    networks.CNNBNN: (25 * 32 + 32) + (32 * 64 * 25 + 64) + (1024 * 128 + 128) + 128 * 10,
    networks.svhn_bnn: (11_689_512 - 513_000) + (512 * 512 + 512) + 512 * 10,  # ResNet-18 less its 512·1000 + 1000
    networks.ResNetClassifier: (2048 * 2048 + 2048) + 2048 * 100,
    networks.tinyimagenet_bnn: (25_557_032 - 2_049_000) + (2048 * 2048 + 2048) + 2048 * 200,  # ResNet-50 likewise
    networks.VariationalDropoutClassifier: 2 * (2048 * 1024 + 1024 * 1024) + 2 * 1024 + 1024 * 10,  # θ and α
}


@pytest.mark.parametrize(("make", "count"), COUNTS.items(), ids=names(COUNTS))
def test_the_number_of_weights_is_that_by_hand(made, make, count):
    assert sum(p.numel() for p in made[make].parameters()) == count


INPUTS = {
    networks.BNN: ((2,), 3),
    networks.CNNBNN: ((1, 28, 28), 10),
    networks.svhn_bnn: ((3, 32, 32), 10),
    networks.ResNetClassifier: ((2048,), 100),
    networks.tinyimagenet_bnn: ((3, 64, 64), 200),
    networks.VariationalDropoutClassifier: ((2048,), 10),
}


@pytest.mark.parametrize(("make", "shapes"), INPUTS.items(), ids=names(INPUTS))
@torch.inference_mode()
def test_inputs_become_one_logit_for_each_class(made, make, shapes):
    shape, classes = shapes
    assert made[make](torch.randn(2, *shape, generator=generator())).shape == (2, classes)


# ── backbones ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def resnet18():
    return resnet(18).eval()


def files(path, backbone, kind):
    state = {name: value.contiguous() for name, value in backbone.state_dict().items()}
    if kind == "folder":
        backbone.save_pretrained(path)
        return path
    if kind == "safetensors":
        save_file({f"resnet.{name}": value for name, value in state.items()}, path / "file.safetensors")
        return path / "file.safetensors"
    torch.save(state | {"fc.weight": torch.zeros(1000, 512)}, path / "file.pth")
    return str(path / "file.pth")


@pytest.mark.parametrize("kind", ["folder", "safetensors", "pth"])
@torch.inference_mode()
def test_weights_of_a_resnet_come_from_a_local_file_or_folder(tmp_path, resnet18, kind):
    loaded = resnet(18, files(tmp_path, resnet18.backbone, kind)).eval()
    x = torch.randn(1, 3, 32, 32, generator=generator())
    assert_close(loaded(x), resnet18(x))


def test_files_of_torchvision_are_understood(resnet18):
    assert {backbones.renamed(name) for name in torchvision_names()} == set(resnet18.backbone.state_dict())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("pth", r"file.pth lacks \d+ of the 318 weights .* is it a file of another network"),
        ("folder", r"is not a ResNet-50: its stages have \[2, 2, 2, 2\] blocks, not \[3, 4, 6, 3\]"),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path, resnet18, kind, message):
    with pytest.raises(ValueError, match=message):
        resnet(50, files(tmp_path, resnet18.backbone, kind))


def test_other_depths_are_refused():
    with pytest.raises(ValueError, match="one of 18, 50, 10, but is 34"):
        resnet(34)


@torch.inference_mode()
def test_efficientnet_gives_1280_features_of_bytes_or_floats():
    """4,652,008 weights are those of EfficientNet-Lite0, 1280·1000 + 1000 those of the layer left out."""
    backbone = efficientnet_lite0(None, image_size=64).eval()
    images = torch.randint(0, 256, (2, 3, 64, 64), generator=generator(), dtype=torch.uint8)
    assert sum(p.numel() for p in backbone.parameters()) == 4_652_008 - 1_281_000
    assert backbone(images).shape == (2, backbone.width)
    assert torch.equal(backbone(images), backbone(images.float()))


@torch.inference_mode()
def test_efficientnet_brings_its_weights():
    """Trained features of a picture and of noise differ; those of random weights hardly do."""
    backbone = efficientnet_lite0().eval()
    flat = torch.full((1, 3, 224, 224), 127.0)
    noise = torch.randint(0, 256, (1, 3, 224, 224), generator=generator()).float()
    assert (backbone(flat) - backbone(noise)).abs().mean() > 0.1


@pytest.mark.parametrize(
    ("make", "package"), [(lambda: resnet(18), "transformers"), (efficientnet_lite0, "efficientnet_lite_pytorch")]
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, make, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'balent\[vision\]'"):
        make()
