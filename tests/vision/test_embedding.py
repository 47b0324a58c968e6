"""Features: those of the backbone, the same however often the process was killed, refused where something changed."""

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.formats import picture, write_files
from helpers.pictures import data, images_file, tiny
from torch import nn
from torch.testing import assert_close
from typer.testing import CliRunner

from balent.apps import cli
from balent.data import sources as datasets
from balent.paper.experiments import FEATURES
from balent.simulation.experiment import run
from balent.vision import blocks, embedding
from balent.vision.embedding import embed

ABOUT = {"backbone": "tiny"}


def written(path, source=None, backbone=None, about=ABOUT, **settings):
    """The last news, and the file's arrays."""
    settings = {"batch_size": 8, **settings}
    *_, last = embed(source or data(), backbone or tiny(), path, about=about, **settings)
    with np.load(path, allow_pickle=False) as file:
        return last, {name: file[name] for name in file.files}


def test_a_file_has_the_backbones_features_and_the_labels(tmp_path):
    source, backbone = data(), tiny()
    last, found = written(tmp_path / "f.npz", source, backbone)
    assert last == (70, 70)
    for part in ("train", "test"):
        assert_close(torch.from_numpy(found[f"x_{part}"]), backbone(getattr(source, f"x_{part}")).detach())
        assert found[f"y_{part}"].tolist() == getattr(source, f"y_{part}").tolist()
    assert os.listdir(tmp_path) == ["f.npz"]


def test_the_file_is_a_data_set_of_features(tmp_path):
    written(tmp_path / "f.npz")
    found = datasets.load(str(tmp_path / "f.npz"))
    assert (tuple(found.x_train.shape), found.classes, found.image) == ((50, 6), 3, None)


def test_an_empty_test_set_stays_empty(tmp_path):
    """A pool of one's own has labels to come, and perhaps nothing to test with."""
    source = data()
    _, found = written(tmp_path / "f.npz", replace(source, x_test=source.x_test[:0], y_test=source.y_test[:0]))
    assert found["x_test"].shape == (0, 6)


@pytest.mark.parametrize(
    ("side", "device", "images"), [(224, "cpu", 4), (96, "cpu", 16), (2000, "cpu", 1), (224, "cuda:1", 256)]
)
def test_batches_on_a_cpu_are_small_enough_for_its_memory(side, device, images):
    """4 · 224² = 200,704 pixels; 8 would be 401,408."""
    assert embedding.together(side, device) == images


# ── killed ───────────────────────────────────────────────────────────────────────────────────────


def killed_at(path, images):
    """A process of its own that is killed (SIGKILL) once so many images are done; every batch is a block."""
    torch.set_num_threads(1)
    blocks.ROWS = 1
    for done, _ in embed(data(), tiny(), Path(path), about=ABOUT, batch_size=8):
        if done >= images:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("images", [0, 24, 50, 70])
def test_killed_and_run_again_the_file_is_the_same_byte_for_byte(tmp_path, images):
    """Before the first block, between two, between pool and test set, and before the file is put together."""
    process = multiprocessing.get_context("fork").Process(target=killed_at, args=(tmp_path / "killed.npz", images))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "killed.npz").exists()
    first = next(embed(data(), tiny(), tmp_path / "killed.npz", about=ABOUT, batch_size=8))
    assert first == (images, 70)
    written(tmp_path / "killed.npz")
    written(tmp_path / "whole.npz")
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["killed.npz", "whole.npz"]


def begun(path, monkeypatch, batches=3):
    """A run that was left after some batches, each a block of its own."""
    monkeypatch.setattr(blocks, "ROWS", 1)
    news = embed(data(), tiny(), path, about=ABOUT, batch_size=8)
    for _ in range(batches + 1):
        next(news)
    news.close()
    return path.with_name(path.name + ".parts")


def test_a_line_torn_by_the_end_of_a_process_is_done_again(tmp_path, monkeypatch):
    parts = begun(tmp_path / "f.npz", monkeypatch)
    journal = parts / "journal.ndjson"
    journal.write_bytes(journal.read_bytes()[:-20])
    assert next(embed(data(), tiny(), tmp_path / "f.npz", about=ABOUT, batch_size=8)) == (16, 70)
    written(tmp_path / "f.npz")
    written(tmp_path / "whole.npz")
    assert (tmp_path / "f.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("damage", [lambda b: b[:-3] + b"abc", lambda b: b[:50], None])
def test_a_block_that_was_damaged_is_not_used(tmp_path, monkeypatch, damage):
    parts = begun(tmp_path / "f.npz", monkeypatch)
    block = parts / "x_train-000000008.npy"
    block.write_bytes(damage(block.read_bytes())) if damage else block.unlink()
    with pytest.raises(
        ValueError, match=r"x_train-000000008.npy is damaged or missing; remove .*f.npz.parts and run again"
    ):
        written(tmp_path / "f.npz")
    assert not (tmp_path / "f.npz").exists()


CHANGED = {
    "batch size": ({"batch_size": 4}, "batch_size = 8, but batch_size = 4 was given"),
    "weights": ({"backbone": tiny(1)}, "weights = '.*', but weights = "),
    "images": ({"source": data(51)}, "images = '.*', but images = "),
    "backbone": ({"about": {"backbone": "other"}}, "backbone = 'tiny', but backbone = 'other' was given"),
}


@pytest.mark.parametrize(("changed", "message"), CHANGED.values(), ids=CHANGED)
def test_what_was_begun_or_is_complete_is_not_mixed_with_something_else(tmp_path, monkeypatch, changed, message):
    begun(tmp_path / "f.npz", monkeypatch)
    with pytest.raises(ValueError, match=message):
        written(tmp_path / "f.npz", **changed)
    written(tmp_path / "f.npz")
    with pytest.raises(FileExistsError, match=message):
        written(tmp_path / "f.npz", **changed)


def test_one_pixel_of_an_image_that_is_looked_at_is_another_data_set():
    source = data()
    x = source.x_train.clone()
    x[49, 0, 0, 0] += 0.25
    assert embedding.fingerprint(source) != embedding.fingerprint(replace(source, x_train=x))


def test_a_complete_file_is_left_alone(tmp_path):
    written(tmp_path / "f.npz")
    before = (tmp_path / "f.npz").stat().st_mtime_ns
    assert list(embed(data(), tiny(), tmp_path / "f.npz", about=ABOUT, batch_size=8)) == [(70, 70)]
    assert (tmp_path / "f.npz").stat().st_mtime_ns == before


def test_a_file_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "f.npz").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"f.npz exists already, and is not a file of features; name another"):
        written(tmp_path / "f.npz")
    assert (tmp_path / "f.npz").read_bytes() == b"precious"


# ── bad input ────────────────────────────────────────────────────────────────────────────────────


def test_features_that_are_not_numbers_say_whose_they_are(tmp_path):
    source = data()
    x = source.x_train.clone()
    x[21] = torch.nan
    with pytest.raises(ValueError, match="features must be finite, but those of image 21 of x_train are not"):
        written(tmp_path / "f.npz", replace(source, x_train=x))


def test_a_device_that_is_not_there_is_said_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"device 'nowhere' cannot be used: .*; device='cpu' always can"):
        written(tmp_path / "f.npz", device="nowhere")


def test_features_of_features_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"takes images \[.*\], but x_train is \(30, 2\)"):
        written(tmp_path / "f.npz", replace(data(), x_train=torch.rand(30, 2), y_train=torch.zeros(30).long()))


def test_a_backbone_that_gives_maps_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must give \[batch, width\], but this one gave \(8, 4, 6, 6\)"):
        written(tmp_path / "f.npz", backbone=nn.Conv2d(3, 4, 3))


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def invoke(*words, code=0):
    result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def images(tmp_path):
    return images_file(tmp_path / "images.npz")


def test_the_command_writes_features_that_experiments_take(tmp_path, images):
    said = invoke("embed", images, "--backbone", "random:resnet10", "--image-size", 32, "-o", tmp_path / "f.npz")
    assert "f.npz: 256 features of 18 images" in said.stderr
    with np.load(tmp_path / "f.npz") as file:
        about = json.loads(str(file["about"]))
    assert (about["backbone"], about["image_size"]) == ("resnet10", 32)
    few = {"epochs": 1, "draws": 2, "evaluation_draws": 2, "start": 3, "total": 3}
    [record] = run(replace(FEATURES, data=str(tmp_path / "f.npz"), **few))
    assert record["labels"] == 3


def test_random_weights_are_the_same_every_time_and_a_limit_takes_the_first_images(tmp_path, images):
    for name in ("a", "b"):
        words = ("--backbone", "random:resnet10", "--image-size", 32, "--limit", 5)
        invoke("embed", images, *words, "-o", tmp_path / f"{name}.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert datasets.load(str(tmp_path / "a.npz")).x_train.shape == (5, 256)


EMBED = ("--backbone", "random:resnet10", "--image-size", 32)


def photos(place, names):
    pytest.importorskip("PIL")
    write_files(place, {name: picture((8, 8, 3), seed=i) for i, name in enumerate(names)})
    return place


def test_rows_keep_the_names_of_their_files_when_bad_images_are_skipped(tmp_path):
    """Defect: --skip-bad shifted all rows after a bad image against a sorted list of files, and nobody could tell."""
    names = [f"{c}/{i}.png" for c in "ab" for i in range(6)]
    place = photos(tmp_path / "photos", names)
    (place / "a/2.png").write_bytes(b"damaged")
    invoke("embed", place, *EMBED, "--skip-bad", "-o", tmp_path / "f.npz")
    source, found = datasets.load(str(place), skip_bad=True, say=print), datasets.load(str(tmp_path / "f.npz"))
    assert sorted([*found.ids_train, *found.ids_test]) == [name for name in names if name != "a/2.png"]
    for part in ("train", "test"):
        ids, y = getattr(found, f"ids_{part}").tolist(), getattr(found, f"y_{part}").tolist()
        assert ids == getattr(source, f"ids_{part}").tolist()
        assert ["ab"[label] for label in y] == [name[0] for name in ids]
    with np.load(tmp_path / "f.npz", allow_pickle=False) as file:
        assert file["ids_train"].dtype.kind == "U"


def test_a_limit_takes_the_names_of_the_first_images(tmp_path):
    place = photos(tmp_path / "photos", [f"{i}.png" for i in range(5)])
    invoke("embed", place, *EMBED, "--limit", 3, "-o", tmp_path / "f.npz")
    assert datasets.load(str(tmp_path / "f.npz")).ids_train.tolist() == ["0.png", "1.png", "2.png"]


def test_features_of_images_without_labels_are_a_pool_that_an_experiment_refuses(tmp_path):
    """Defect: the command wrote a file that datasets.load rejected."""
    place = photos(tmp_path / "photos", [f"{i}.png" for i in range(5)])
    invoke("embed", place, *EMBED, "-o", tmp_path / "f.npz")
    found = datasets.load(str(tmp_path / "f.npz"))
    assert (found.y_train.tolist(), len(found.x_test), found.classes) == ([-1] * 5, 0, 0)
    with pytest.raises(ValueError, match="needs the label of every point, but 5 of 5 points have none"):
        datasets.all_labelled(found)


def test_files_that_were_renamed_are_not_taken_for_the_same(tmp_path):
    place = photos(tmp_path / "photos", ["0.png", "1.png"])
    invoke("embed", place, *EMBED, "-o", tmp_path / "f.npz")
    (place / "1.png").rename(place / "2.png")
    assert "with images = " in invoke("embed", place, *EMBED, "-o", tmp_path / "f.npz", code=2).stderr


@pytest.mark.parametrize("content", [b"PK\x03\x04 and no more", b"", b"text"])
def test_a_file_that_is_no_npz_is_not_written_over(tmp_path, images, content):
    """Defect: what begins as a zip archive and is none ended in a traceback."""
    (tmp_path / "f.npz").write_bytes(content)
    said = invoke("embed", images, *EMBED, "-o", tmp_path / "f.npz", code=2)
    assert "exists already, and is not a file of features" in said.stderr


def test_names_that_are_not_utf_8_are_kept(tmp_path):
    """Defect: a file from an old disk in Latin-1 ended in UnicodeEncodeError."""
    name = os.fsdecode(b"caf\xe9")
    place = photos(tmp_path / f"{name} photos", [f"{name}/0.png", f"{name}/1.png", "b/0.png"])
    invoke("embed", place, *EMBED, "-o", tmp_path / f"{name}.npz")
    found = datasets.load(str(tmp_path / f"{name}.npz"))
    assert found.ids_train.tolist() == ["b/0.png", f"{name}/0.png", f"{name}/1.png"]
    (place / name / "1.png").write_bytes(b"damaged")
    assert (
        "1 of 3 images cannot be read: caf" in invoke("embed", place, *EMBED, "-o", tmp_path / "g.npz", code=2).stderr
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backbone", "resnet51"], "there is no backbone 'resnet51'; did you mean resnet50"),
        (["--backbone", "resnet10"], "there are no published weights of resnet10; train them with balent simclr"),
        (["--backbone", "random:resnet9"], "there is no backbone 'resnet9'; did you mean"),
        (["--backbone", "mine.safetensors"], "there is no file mine.safetensors"),
        (["--backbone", "./somewhere/else"], "there is no file somewhere/else"),
        (["--backbone", "resnet50"], "microsoft/resnet-50 could not be loaded from the hub"),
        (["--backbone", "someone/something"], "without network, name a local file"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, images, monkeypatch, words, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # as HF_HUB_OFFLINE=1 sets it
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    result = invoke("embed", images, *words, "-o", tmp_path / "f.npz", code=2)
    assert said in result.stderr
    assert not (tmp_path / "f.npz").exists()
