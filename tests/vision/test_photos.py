"""Photos: features of image files, each by itself; files that cannot be read have a reason."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
import torch
from helpers.formats import picture, write_files
from typer.testing import CliRunner

from balent.apps import cli
from balent.vision import album, blocks, onnx, photos
from balent.vision.photos import Photos, pixels

Image = pytest.importorskip("PIL.Image")
needs_runtime = pytest.mark.skipif(onnx.version() is None, reason="onnxruntime and onnx are not installed")
SMALL = {"backbone": "random:resnet10", "image_size": 32}


@pytest.fixture(scope="module")
def maker():
    return Photos(**SMALL)


@pytest.fixture
def files(tmp_path):
    names = [f"{i}.png" for i in range(7)]
    write_files(tmp_path, {name: picture((40, 48, 3), seed=i) for i, name in enumerate(names)})
    return [tmp_path / name for name in names]


def smooth(width=96, height=64):
    """A picture that survives JPEG: red grows to the right, green downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 0 * x + 100], -1).astype(np.uint8))


def saved(path, image, **settings):
    image.save(path, **settings)
    return path


# ── the interface ────────────────────────────────────────────────────────────────────────────────


def test_files_become_the_features_of_the_backbone(maker, files):
    rows, reasons = maker(files)
    assert (rows.shape, rows.dtype, reasons) == ((7, 256), np.float32, [None] * 7)
    x = torch.stack([torch.from_numpy(pixels(path, 32)) for path in files]).float() / 255
    with torch.inference_mode():
        expected = maker.network(x).numpy()
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_features_depend_neither_on_neighbours_nor_on_threads(files, backend):
    """So what was begun can be continued from any file on, on any number of cores."""
    makers = [Photos(**SMALL, backend=backend, threads=threads) for threads in (1, 3)]
    rows, _ = makers[0](files)
    for maker in makers:
        assert np.array_equal(np.concatenate([maker([path])[0] for path in files]), rows)
        assert np.array_equal(maker(files[::-1])[0], rows[::-1])
        assert np.array_equal(maker(files[2:5])[0], rows[2:5])


def test_torch_keeps_its_number_of_threads(files):
    before = torch.get_num_threads()
    Photos(**SMALL, backend="torch")(files[:1])
    assert torch.get_num_threads() == before


def test_equal_settings_are_equal_and_can_be_stored(maker):
    assert json.loads(json.dumps(maker.about())) == maker.about() == Photos(**SMALL).about()
    assert maker.about()["backend"] == onnx.backend()


@pytest.mark.parametrize("other", [{"image_size": 48}, {"backend": "torch"}, {"backbone": "random:efficientnet-lite0"}])
def test_other_settings_are_other_features(maker, other):
    if other == {"backend": maker.backend}:
        pytest.skip("torch is the only backend here")
    assert Photos(**{**SMALL, **other}).about() != maker.about()


def test_nothing_is_learnt(maker, files):
    maker.fit(files)
    maker.load_state(maker.state())
    assert maker.state() == {}


def test_paths_can_be_text(maker, files):
    """`load_predictor()(["a.png"])` failed: text has no method open."""
    assert np.array_equal(maker([str(file) for file in files])[0], maker(files)[0])


def test_no_files_have_no_features(maker):
    rows, reasons = maker([])
    assert (rows.shape, reasons) == ((0, 256), [])


def test_without_onnxruntime_torch_serves(monkeypatch, files):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    maker = Photos(**SMALL)
    assert maker.about()["backend"] == "torch"
    assert maker(files)[0].shape == (7, 256)


def test_threads_must_be_positive():
    with pytest.raises(ValueError, match="threads must be positive, but is 0"):
        Photos(**SMALL, threads=0)


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_weights_that_are_not_numbers_say_so(files, backend):
    maker = Photos(**SMALL, backend=backend)
    next(maker.network.parameters()).data.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"features must be finite, but those of .* are not; look for NaN"):
        maker(files[:1])


# ── images ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("turn", range(1, 9))
def test_images_are_turned_upright(tmp_path, turn):
    """The camera's pixels are turned; orientation says how to turn them back."""
    undo = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_90",
            7: "TRANSVERSE", 8: "ROTATE_270"}  # fmt: skip
    upright = smooth()
    stored = upright if turn == 1 else upright.transpose(getattr(Image.Transpose, undo[turn]))
    exif = Image.Exif()
    exif[0x0112] = turn
    found = pixels(saved(tmp_path / "a.png", stored, exif=exif), 32)
    assert np.array_equal(found, pixels(saved(tmp_path / "b.png", upright), 32))


def test_a_large_jpeg_is_decoded_small_and_looks_the_same(tmp_path):
    image = smooth(960, 640)
    found = pixels(saved(tmp_path / "a.jpg", image, quality=95), 32)
    expected = pixels(saved(tmp_path / "a.png", image), 32)
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 4


COLOURS = ("1", "L", "LA", "P", "PA", "RGBA", "CMYK", "YCbCr", "I;16", "HSV")


@pytest.mark.parametrize("mode", COLOURS)
def test_any_mode_of_pixels_becomes_colours(tmp_path, mode):
    grey = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16
    image = Image.fromarray(grey) if mode == "I;16" else smooth(64, 64).convert("RGB").convert(mode)
    kind = "TIFF" if mode in ("CMYK", "YCbCr", "PA", "HSV") else "PNG"
    file = tmp_path / f"a.{kind.lower()}"
    if mode in ("HSV", "PA"):
        image, file = image.convert("RGBA"), tmp_path / "a.png"
    found = pixels(saved(file, image), 32)
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype) == ((3, 32, 32), np.uint8)


def test_sixteen_bits_are_brought_to_eight(tmp_path):
    image = Image.fromarray(np.full((8, 8), 200 * 256 + 7, np.uint16))
    assert set(pixels(saved(tmp_path / "a.png", image), 4).flat) == {200}


def test_of_an_animation_the_first_frame_counts(tmp_path):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    found = pixels(saved(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:]), 4)
    assert found[:, 0, 0].tolist() == [255, 0, 0]


# ── files that cannot be read ────────────────────────────────────────────────────────────────────


def jpeg():
    file = io.BytesIO()
    smooth().save(file, "JPEG")
    return file.getvalue()


def bomb():
    """A few hundred bytes that unpack to 400 million pixels."""
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (20_000).to_bytes(4) * 2 + b"\x08\2\0\0\0"
    return head + zlib.crc32(head[12:]).to_bytes(4) + b"\0\0\0\0IEND\xaeB`\x82"


BAD = {
    "truncated": (lambda: jpeg()[:-200], "truncated"),
    "text": (lambda: b"not a picture at all", "not an image"),
    "empty": (lambda: b"", "empty"),
    "bomb": (bomb, "too large: "),
    "zeros in the middle": (lambda: picture()[:200] + b"\0" * 400 + picture()[600:], "damaged: "),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_a_bad_file_has_a_reason_and_no_row(maker, files, content, reason):
    expected, _ = maker(files)
    files[3].write_bytes(content())
    rows, reasons = maker(files)
    assert [bool(why) for why in reasons] == [i == 3 for i in range(7)]
    assert reasons[3].startswith(reason)
    assert np.array_equal(rows, np.delete(expected, 3, 0))


def test_files_that_are_not_there_have_a_reason(maker, files, tmp_path):
    (tmp_path / "link.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "folder.png").mkdir()
    missing = [tmp_path / "gone.png", tmp_path / "link.png", tmp_path / "folder.png"]
    rows, reasons = maker([*missing, files[0]])
    assert (len(rows), reasons) == (1, ["missing", "missing", "a folder", None])


def test_an_error_of_the_disk_is_not_a_bad_file(monkeypatch, maker, files):
    """Or a disk that fails for a minute would leave out thousands of images."""

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(photos.image_file, "square", fail)
    with pytest.raises(OSError, match="Input/output error"):
        maker(files)


# ── balent embed of a folder ─────────────────────────────────────────────────────────────────────

WORDS = ("--backbone", "random:resnet10", "--image-size", "32")


def embed(place, path, *words, code=0):
    result = CliRunner().invoke(cli.app, ["embed", str(place), *WORDS, *words, "-o", str(path)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    if code == 0:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    return result.stderr


def test_features_of_a_folder_are_those_of_photos_and_have_the_names_of_the_files(maker, files, tmp_path):
    found = embed(tmp_path, tmp_path / "f.npz")
    assert found["ids_train"].tolist() == [path.name for path in files]
    assert np.array_equal(found["x_train"], maker(files)[0])
    assert json.loads(str(found["about"])).items() >= maker.about().items()
    assert not (tmp_path / ".balent-cache").exists()


def test_bad_files_are_refused_when_all_are_known_and_skipped_without_computing_again(files, tmp_path, monkeypatch):
    for i in (1, 4):
        files[i].write_bytes(b"damaged")
    said = embed(tmp_path, tmp_path / "f.npz", code=2)
    assert "2 of 7 images cannot be read: 1.png (not an image); 4.png (not an image)" in said.replace("\n", " ")
    with monkeypatch.context() as at_rest:
        at_rest.setattr(Photos, "__call__", None)
        found = embed(tmp_path, tmp_path / "f.npz", "--skip-bad")
    assert found["ids_train"].tolist() == ["0.png", "2.png", "3.png", "5.png", "6.png"]
    assert len(found["x_train"]) == len(found["y_train"]) == 5


def test_a_folder_without_a_readable_image_is_refused(tmp_path):
    write_files(tmp_path, {"a.png": b"damaged"})
    said = embed(tmp_path, tmp_path / "f.npz", "--skip-bad", code=2)
    assert "there is no readable image among 1 files, such as a.png (not an image)" in said.replace("\n", " ")


SCRIPT = """
import sys
from balent.apps import cli
from balent.vision import album, blocks
blocks.ROWS = album.TOGETHER = 4  # every fourth image is a block
cli.app(sys.argv[1:])
"""


def started(place, path):
    words = [sys.executable, "-c", SCRIPT, "embed", str(place), *WORDS, "--skip-bad", "-o", str(path)]
    return subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def test_killed_and_run_again_the_file_is_the_same_byte_for_byte(tmp_path, monkeypatch):
    """kill -9 once the second block is named, whatever it is doing then; a bad file is among those seen."""
    write_files(tmp_path / "p", {f"{i:03d}.png": picture((40, 40, 3), seed=i) for i in range(400)})
    (tmp_path / "p" / "002.png").write_bytes(b"damaged")
    process = started(tmp_path / "p", tmp_path / "killed.npz")
    journal = tmp_path / "killed.npz.parts" / "journal.ndjson"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 2):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed.npz").exists()
    monkeypatch.setattr(blocks, "ROWS", 4)
    monkeypatch.setattr(album, "TOGETHER", 32)
    found = embed(tmp_path / "p", tmp_path / "killed.npz", "--skip-bad")
    assert len(found["x_train"]) == 399
    embed(tmp_path / "p", tmp_path / "whole.npz", "--skip-bad")
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
