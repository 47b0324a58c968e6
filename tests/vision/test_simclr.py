"""SimCLR: its loss by its definition, training that learns, and weights that a kill does not change."""

import inspect
import math
import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.labelled import same_weights
from helpers.pictures import generator, images_file, stripes, tiny
from torch.testing import assert_close
from typer.testing import CliRunner

from balent.apps import cli
from balent.vision import catalogue
from balent.vision.simclr import SimCLR, nt_xent, positions, train

SMALL = SimCLR(epochs=2, batch_size=8, learning_rate=0.003, image_size=8, projection=4)


def trained(directory=None, settings=SMALL, images=None, stop=None, every=0.0, about=None):
    """The backbone and the losses, after all steps or after some."""
    backbone = tiny()
    news = train(
        backbone, 6, stripes(30)[0] if images is None else images, settings,
        directory=directory, every=every, about=about,
    )  # fmt: skip
    for step in news:
        if stop is not None and step.done >= stop:
            break
    news.close()
    return backbone, list(step.losses)


# ── the loss ─────────────────────────────────────────────────────────────────────────────────────


def by_definition(z, temperature):
    """Chen et al. (2020), equation 1, one pair at a time."""
    n = len(z) // 2

    def similar(i, k):
        return math.exp(float(z[i] @ z[k] / (z[i].norm() * z[k].norm())) / temperature)

    losses = [
        -math.log(similar(i, (i + n) % (2 * n)) / sum(similar(i, k) for k in range(2 * n) if k != i))
        for i in range(2 * n)
    ]
    return sum(losses) / (2 * n)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
def test_the_loss_is_its_definition(temperature):
    z = torch.randn(10, 4, generator=generator(), dtype=torch.float64)
    assert_close(float(nt_xent(z, temperature)), by_definition(z, temperature))


def test_views_that_say_nothing_cost_the_logarithm_of_the_others():
    """All alike: each of the 2n - 1 other views is as likely."""
    assert_close(nt_xent(torch.ones(8, 3), 0.5), torch.tensor(math.log(7)))


def test_the_loss_does_not_look_at_lengths():
    z = torch.randn(6, 4, generator=generator())
    assert_close(nt_xent(z, 0.5), nt_xent(z * torch.rand(6, 1, generator=generator()) + 0 * z, 0.5))


# ── training ─────────────────────────────────────────────────────────────────────────────────────


def test_every_epoch_has_every_image_once():
    settings = SimCLR(batch_size=8)
    epochs = [torch.cat([positions(30, 4 * epoch + i, settings) for i in range(4)]) for epoch in range(2)]
    assert [len(positions(30, i, settings)) for i in range(4)] == [8, 8, 7, 7]
    assert all(epoch.sort().values.tolist() == list(range(30)) for epoch in epochs)
    assert not torch.equal(*epochs)


def probe(backbone, ridge=1e-3):
    """Accuracy of a linear classifier (least squares) of features on images that it has not seen."""
    with torch.no_grad():
        (x, y), (held, labels) = ((backbone.eval()(x).double(), y) for x, y in (stripes(150, 5), stripes(150, 6)))
    x, held = ((f - x.mean(0)) / x.std(0) for f in (x, held))
    weights = torch.linalg.solve(x.T @ x + ridge * torch.eye(x.shape[1]), x.T @ torch.eye(3, dtype=torch.float64)[y])
    return float(((held @ weights).argmax(1) == labels).float().mean())


def test_the_loss_falls_and_features_tell_more_than_random_ones():
    """Stripes across, stripes down, none: colours change from view to view, so what is left to learn is the shape."""
    settings = SimCLR(epochs=30, batch_size=50, learning_rate=0.01, image_size=8, projection=4, temperature=0.2)
    backbone, losses = trained(settings=settings, images=stripes(150)[0])
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.5
    assert probe(backbone) > probe(tiny()) + 0.05


def test_the_seed_decides_every_bit_and_nothing_else_does():
    state = torch.get_rng_state()
    (one, losses), (two, again) = trained(), trained()
    assert same_weights(one, two)
    assert losses == again
    assert len(losses) == 8
    assert torch.equal(torch.get_rng_state(), state)
    assert trained(settings=SimCLR(epochs=2, batch_size=8, image_size=8, projection=4, seed=1))[1] != losses


def test_steps_may_end_it_before_its_epochs():
    assert len(trained(settings=SimCLR(epochs=2, batch_size=8, image_size=8, steps=3))[1]) == 3
    assert len(trained(settings=SimCLR(epochs=2, batch_size=8, image_size=8, steps=30))[1]) == 8


def killed_at(directory, step):
    torch.set_num_threads(1)
    for news in train(tiny(), 6, stripes(30)[0], SMALL, directory=Path(directory), every=0.0):
        if news.done >= step:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("step", [0, 3, 8])
def test_killed_and_run_again_the_weights_are_the_same(tmp_path, step):
    process = multiprocessing.get_context("fork").Process(target=killed_at, args=(tmp_path, step))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    first = next(train(tiny(), 6, stripes(30)[0], SMALL, directory=tmp_path))
    assert (first.done, first.steps) == (step, 8)
    (resumed, losses), (whole, expected) = trained(tmp_path), trained()
    assert losses == expected
    assert same_weights(resumed, whole)


def test_an_old_checkpoint_costs_its_steps_and_nothing_else(tmp_path):
    """Killed long after its last checkpoint: what came after is done again."""
    trained(tmp_path, stop=2)
    old = (tmp_path / "checkpoint.safetensors").read_bytes()
    trained(tmp_path, stop=5)
    (tmp_path / "checkpoint.safetensors").write_bytes(old)
    assert same_weights(trained(tmp_path)[0], trained()[0])


@pytest.mark.parametrize(
    ("settings", "about", "message"),
    [
        (
            SimCLR(epochs=2, batch_size=8, image_size=8, projection=4),
            {},
            "learning_rate = 0.003, but .* = 0.0003 was given",
        ),
        (SMALL, {"images": "others"}, "images = None, but images = 'others' was given"),
    ],
)
def test_a_training_goes_on_as_it_began(tmp_path, settings, about, message):
    trained(tmp_path, stop=2)
    with pytest.raises(ValueError, match=message):
        trained(tmp_path, settings, about=about)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    trained(tmp_path, stop=2)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(
        ValueError, match=r"checkpoint.safetensors is not a checkpoint of SimCLR: .* remove it to start again"
    ):
        trained(tmp_path)


def test_two_trainings_do_not_share_a_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("balent.loop.journal.PATIENCE", 0.1)
    news = train(tiny(), 6, stripes(30)[0], SMALL, directory=tmp_path)
    next(news)
    with pytest.raises(BlockingIOError, match="is in use by process"):
        trained(tmp_path)
    news.close()


@pytest.mark.parametrize("name", ["epochs", "batch_size", "learning_rate", "image_size", "temperature", "steps"])
def test_settings_are_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be positive, but is 0"):
        SimCLR(**{name: type(getattr(SimCLR(), name) or 0)()})


def test_other_than_images_is_refused():
    with pytest.raises(ValueError, match=r"SimCLR takes two images or more, .* but they are \(9, 4\)"):
        trained(images=torch.rand(9, 4))


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def test_defaults_are_those_of_the_paper():
    """ "ResNet-50 with 224 × 224 image size, 192 batch size, 500 epochs, and 0.0003 learning rate with Adam"."""
    given = {name: p.default for name, p in inspect.signature(cli.simclr).parameters.items()}
    paper = {"epochs": 500, "batch_size": 192, "learning_rate": 0.0003, "image_size": 224}
    assert {**paper, "backbone": "resnet50"}.items() <= given.items()
    for name in (*paper, "temperature", "steps", "seed"):
        assert getattr(SimCLR(), name) == given[name]


@pytest.fixture
def images(tmp_path):
    return images_file(tmp_path / "images.npz")


def invoke(*words, code=0):
    result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_the_command_writes_a_backbone_that_embed_takes(tmp_path, images):
    path = tmp_path / "mine.safetensors"
    words = (
        "simclr",
        images,
        "--backbone",
        "resnet10",
        "--image-size",
        32,
        "--batch-size",
        6,
        "--epochs",
        1,
        "-o",
        path,
    )
    said = invoke(*words)
    assert "loss: " in said.stderr
    assert f"{path}: weights of resnet10" in said.stderr
    assert not (tmp_path / "mine.safetensors.parts").exists()
    found = catalogue.backbone(str(path))
    assert (found.name, found.image_size, found.width) == ("resnet10", 32, 256)
    invoke("embed", images, "--backbone", path, "-o", tmp_path / "f.npz")
    with np.load(tmp_path / "f.npz") as file, torch.inference_mode():
        x = torch.from_numpy(np.load(images)["x_train"]).float() / 255
        assert_close(torch.from_numpy(file["x_train"]), found.eval()(x), rtol=1e-4, atol=1e-5)
    invoke(*words)  # it is there already, and the same
    assert "simclr = " in invoke(*words, "--seed", 1, code=2).stderr


def test_weights_go_to_a_file_that_says_so(tmp_path, images):
    said = invoke("simclr", images, "--backbone", "resnet10", "-o", tmp_path / "mine.pth", code=2)
    assert "the output must be a .safetensors file, but" in said.stderr
