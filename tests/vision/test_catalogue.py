"""Backbones by name: found wherever they are, prepared as their weights expect, and Bayesian with a head on top."""

import json
import sys

import pytest
import torch
from helpers.labelled import same_weights
from helpers.pictures import generator, stripes
from helpers.resnets import torchvision_names
from helpers.small import seeded  # which also makes the paper's networks traceable while types are checked
from safetensors.torch import save_file
from torch.nn.functional import interpolate
from torch.testing import assert_close

from balent.paper import networks
from balent.predictors import MCDropout
from balent.vision import backbones, catalogue
from balent.vision.catalogue import KINDS, Backbone, backbone, made


def images(n=2, channels=3, side=32, seed=0):
    return torch.rand(n, channels, side, side, generator=generator(seed))


@pytest.fixture(scope="module")
def small():
    return made("resnet10", None, 32).eval()


@pytest.fixture
def offline(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # as HF_HUB_OFFLINE=1 sets it
    monkeypatch.setenv("HF_HOME", str(tmp_path))


# ── preparation ──────────────────────────────────────────────────────────────────────────────────


class Seen(torch.nn.Module):
    """A network that gives back what it is given."""

    def forward(self, x):
        return x.flatten(1)


def test_images_are_normalised_channel_by_channel():
    """By hand, with ImageNet's numbers: red (0.5 - 0.485) / 0.229."""
    seen = Backbone(Seen(), "seen", 3)(torch.full((1, 3, 1, 1), 0.5))
    assert_close(seen, torch.tensor([[(0.5 - 0.485) / 0.229, (0.5 - 0.456) / 0.224, (0.5 - 0.406) / 0.225]]))


def test_efficientnet_sees_bytes_less_127_over_128():
    pixels = torch.randint(256, (2, 3, 32, 32), generator=generator(), dtype=torch.uint8)
    network = made("efficientnet-lite0", None, 32).eval()
    with torch.inference_mode():
        assert_close(network(pixels / 255), network.network(pixels), rtol=1e-3, atol=1e-4)
    prepared = (pixels / 255 - network.mean) / network.std
    assert_close((prepared - 127) / 128, (pixels.float() - 127) / 128, rtol=0, atol=1e-6)


def test_one_channel_becomes_three_and_sizes_become_its_own():
    seen = Backbone(Seen(), "seen", 3, image_size=16, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    gray = images(channels=1, side=8)
    found = seen(gray).reshape(2, 3, 16, 16)
    assert_close(found, interpolate(gray, (16, 16), mode="bilinear").repeat(1, 3, 1, 1))
    large = torch.ones(1, 3, 64, 64) * torch.arange(64).remainder(
        2
    )  # stripes of one pixel, which smaller images average
    assert_close(seen(large).reshape(3, 16, 16)[:, :, 1:-1], torch.full((3, 16, 14), 0.5), rtol=0, atol=0.02)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "resnet50"])  # test_networks.py has that one
@torch.inference_mode()
def test_every_kind_has_the_width_that_it_says(name):
    found = made(name, None, 32).eval()
    assert found(images()).shape == (2, found.width)
    assert found.width == KINDS[name].width


# ── files, folders, the hub ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["resnet10", "efficientnet-lite0"])
@torch.inference_mode()
def test_what_is_saved_is_found_again(tmp_path, name):
    trained = made(name, None, 48).eval()
    trained.mean.fill_(0.25)
    catalogue.save(tmp_path / "mine.safetensors", trained, note="ours")
    found = backbone(str(tmp_path / "mine.safetensors")).eval()
    assert found.about() == trained.about()
    assert found.image_size == 48
    assert torch.equal(found(images()), trained(images()))
    assert catalogue.about(tmp_path / "mine.safetensors")["note"] == "ours"
    assert backbone(str(tmp_path / "mine.safetensors"), 32).image_size == 32


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_weights_alone_is_recognised(tmp_path, name):
    """As torch.save(model.state_dict(), …) leaves it, with the classifier that it had."""
    original = made(name, None, 32)
    state = {key.removeprefix("backbone."): value for key, value in original.network.state_dict().items()}
    fc = "_fc" if name == "efficientnet-lite0" else "fc"
    torch.save(state | {f"{fc}.weight": torch.zeros(5, original.width)}, tmp_path / "file.pth")
    found = backbone(str(tmp_path / "file.pth"))
    assert found.name == name
    assert same_weights(found.network, original.network)


def test_names_of_torchvision_are_recognised(tmp_path):
    """Its ResNet-18, by name; a 34, which has all of these names and more, is not taken for one."""
    here = made("resnet18", None).network.backbone.state_dict()
    state = {name: here[backbones.renamed(name)] for name in torchvision_names()}
    torch.save(state, tmp_path / "resnet18.pth")
    assert backbone(str(tmp_path / "resnet18.pth")).name == "resnet18"
    torch.save(state | {"layer1.2.conv1.weight": torch.zeros(64, 64, 3, 3)}, tmp_path / "resnet34.pth")
    with pytest.raises(ValueError, match=r"resnet34.pth holds \d+ weights that fit none of the networks here"):
        backbone(str(tmp_path / "resnet34.pth"))


@torch.inference_mode()
def test_a_folder_of_the_hub_brings_its_own_preparation(tmp_path, small):
    small.network.backbone.save_pretrained(tmp_path)
    plain = backbone(str(tmp_path))
    assert (plain.image_size, plain.width) == (224, 256)
    words = {"size": {"shortest_edge": 40}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(words))
    found = backbone(str(tmp_path)).eval()
    assert found.about() | {"backbone": ""} == {"backbone": "", "image_size": 40, "mean": [0.5] * 3, "std": [0.25] * 3}
    x = images(side=40)
    assert_close(found(x), small.network((x - 0.5) / 0.25))


def test_a_model_with_weights_missing_is_refused(tmp_path, small):
    """transformers would make them up at random."""
    small.network.backbone.save_pretrained(tmp_path)
    state = {name: value.contiguous() for name, value in small.network.backbone.state_dict().items()}
    state.pop("embedder.embedder.convolution.weight")
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks weights of its network, the first is 'embedder.embedder.convolution"):
        backbone(str(tmp_path))


class Malicious:
    def __reduce__(self):
        return (sys.exit, ("executed",))


def files_that_are_none(path):
    torch.save({"a": Malicious()}, path / "code.pth")
    torch.save([1, 2], path / "list.pth")
    (path / "torn.safetensors").write_bytes(b"\x10\x00\x00\x00")
    (path / "torn.pth").write_bytes(b"PK\x03\x04 and then nothing")
    torch.save({"weight": torch.zeros(3)}, path / "other.pth")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("code.pth", "code.pth is not a whole file of weights, or holds more than weights"),
        ("torn.pth", "torn.pth is not a whole file of weights"),
        ("torn.safetensors", "torn.safetensors is not a whole file of weights"),
        ("list.pth", "list.pth must hold tensors by name"),
        ("other.pth", "other.pth holds 1 weights that fit none of the networks here"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path, name, message):
    files_that_are_none(tmp_path)
    with pytest.raises(ValueError, match=message):
        backbone(str(tmp_path / name))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["resnet50", "resnet18", "someone/something"])
def test_without_network_the_local_way_is_named(name):
    with pytest.raises(OSError, match=r"could not be loaded .* name a local file .* or efficientnet-lite0"):
        backbone(name)


@torch.inference_mode()
def test_published_weights_come_with_the_package():
    """Features of a photograph-like image and of a flat one differ far more than those of random weights do."""
    x = torch.stack([torch.full((3, 64, 64), 0.5), interpolate(images(1, side=4), (64, 64), mode="bilinear")[0]])
    names = "efficientnet-lite0", "random:efficientnet-lite0"
    trained, random = (seeded(backbone, name, 64).eval()(x) for name in names)
    assert (trained[0] - trained[1]).abs().mean() > 10 * (random[0] - random[1]).abs().mean()


# ── with a head ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["random:resnet10", "random:efficientnet-lite0"])
def test_the_backbone_runs_once_for_all_draws(name):
    network = seeded(networks.backbone_with_head, name, 3, image_size=32)
    count = []
    sampled = MCDropout(network).sample(7, seed=0)
    sampled(images())
    assert sampled.plan.startswith("fast: what precedes the first dropout runs once")
    sampled.network.module.features.network.register_forward_hook(lambda *_: count.append(1))
    draws = sampled(images())
    assert (draws.shape, len(count)) == ((2, 7, 3), 1)
    assert float(draws.std(1).max()) > 0


@pytest.mark.parametrize("warm", [False, True])
def test_backbone_and_head_train_together_augmented_and_warm(warm):
    network = seeded(networks.backbone_with_head, "random:resnet10", 3, image_size=32)
    first = {name: value.clone() for name, value in network.named_parameters()}
    settings = {"epochs": 1, "batch_size": 6, "augment": "crop-flip-jitter-gray", "warm_start": warm}
    predictor, labelled = MCDropout(network, **settings), stripes(12, side=32)
    predictor.fit(labelled, generator=generator())
    assert all(not torch.equal(value, first[name]) for name, value in network.named_parameters())
    once = {name: value.clone() for name, value in network.named_parameters()}
    predictor.fit(labelled, generator=generator())
    again = all(torch.equal(value, once[name]) for name, value in network.named_parameters())
    assert again is not warm
