"""SVHN from MATLAB files that scipy wrote, which knows the format from elsewhere."""

import struct
import zlib

import numpy as np
import pytest
import torch
from helpers.formats import pixels

from balent.data.formats import matlab
from balent.data.sources import load

savemat = pytest.importorskip("scipy.io").savemat


def silent(note):
    """Notes of files that are not the published ones."""


def write(place, train=11, test=4, packed=True, **changes):
    place.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for part, n in (("train", train), ("test", test)):
        x, y = pixels(32, 32, 3, n, seed=n), (np.arange(n) % 10 + 1).astype(np.uint8)[:, None]
        arrays[part] = (x, y)
        savemat(place / f"{part}_32x32.mat", {"X": x, "y": y, **changes}, do_compression=packed)
    return arrays


@pytest.mark.parametrize("packed", [True, False], ids=["compressed", "plain"])
@pytest.mark.parametrize("below", ["", "svhn"])
def test_svhn_is_found_and_read(tmp_path, packed, below):
    arrays = write(tmp_path / below, packed=packed)
    said = []
    data = load("svhn", tmp_path, say=said.append)
    for part, x, y in (("train", data.x_train, data.y_train), ("test", data.x_test, data.y_test)):
        images, labels = arrays[part]
        assert torch.equal(x[:], torch.from_numpy(images.transpose(3, 2, 0, 1) / np.float32(255)))
        assert y.tolist() == [int(label) % 10 for label in labels[:, 0]]  # the files write 0 as 10
    assert (data.classes, data.image) == (10, (3, 32, 32))
    assert len(said) == 2
    assert "is not the published file of svhn" in said[0]


def test_labels_may_be_stored_as_doubles(tmp_path):
    """MATLAB's own kind of number."""
    write(tmp_path, train=3, test=3, y=np.array([[10.0], [1.0], [9.0]]))
    assert load("svhn", tmp_path, say=silent).y_train.tolist() == [0, 1, 9]


def test_other_arrays_in_the_file_are_passed_over(tmp_path):
    write(tmp_path, about="house numbers", scale=np.array([[1.5]]), cells=np.array([[1, "a"]], object))
    assert len(load("svhn", tmp_path, say=silent).y_train) == 11


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("packed", [True, False], ids=["compressed", "plain"])
def test_numbers_of_every_kind_agree_with_scipy(tmp_path, kind, packed):
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    savemat(tmp_path / "a.mat", {"a": array, "one": np.array([[7]], kind)}, do_compression=packed)
    found = matlab.arrays(tmp_path / "a.mat", ("a", "one"))
    assert np.array_equal(found["a"], array)
    assert found["one"].tolist() == [[7]]


def big_endian(array):
    """A file as a machine of the other byte order writes it."""
    body = (
        struct.pack(">4I", 6, 8, 9, 0) + struct.pack(">4I", 5, 8, *array.shape) + struct.pack(">HH", 1, 1) + b"a\0\0\0"
    )
    data = array.astype(">i4").T.tobytes()
    body += struct.pack(">2I", 5, len(data)) + data + b"\0" * (-len(data) % 8)
    return b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + struct.pack(">2I", 14, len(body)) + body


def test_either_byte_order_is_read(tmp_path):
    array = np.array([[1, 2, 3], [4, 5, 6]])
    (tmp_path / "a.mat").write_bytes(big_endian(array))
    assert np.array_equal(matlab.arrays(tmp_path / "a.mat", ("a",))["a"], array)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda b: b[: len(b) // 2], "ends early"),
        (lambda b: b[:100], "longer than its header"),
        (lambda b: b"MATLAB 7.3 MAT-file".ljust(128) + b[128:], "version 7.3"),
        (lambda b: b"<html>".ljust(len(b)), "does not begin as a MATLAB file"),
        (lambda b: b[:900] + bytes([b[900] ^ 1]) + b[901:], "compressed array|ends early|shorter or longer"),
        (lambda b: b + b"\1", "ends within an element"),
    ],
)
def test_damaged_files_are_refused_with_what_was_published(tmp_path, change, why):
    write(tmp_path)
    path = tmp_path / "train_32x32.mat"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=why) as error:
        load("svhn", tmp_path, say=silent)
    assert "train_32x32.mat" in str(error.value)
    assert "md5 e26dedcc434d2e4c54c9b2d4a06d8373, 182,040,794 bytes" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"X": pixels(28, 28, 3, 5)}, r"bytes \[32, 32, 3, n\], but is uint8 \[28, 28, 3, 5\]"),
        ({"X": pixels(32, 32, 3, 5)}, "with 11 labels"),
        ({"X": pixels(32, 32, 3, 11).astype(float)}, "but is float64"),
        ({"y": np.zeros((11, 1))}, "labels must be 1..10, but go from 0"),
        ({"X": np.ones((2, 2)) * 1j}, "does not hold real numbers"),
        ({"X": "text"}, "does not hold real numbers"),
    ],
)
def test_arrays_must_be_those_of_svhn(tmp_path, changes, why):
    write(tmp_path, **changes)
    with pytest.raises(ValueError, match=why):
        load("svhn", tmp_path, say=silent)


def test_a_compressed_array_cannot_grow_beyond_what_it_says(tmp_path):
    """A bomb: 8 bytes of tag that promise little, then far more."""
    content = zlib.compress(struct.pack("<2I", 14, 64) + b"\0" * 10_000_000)
    body = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<2I", 15, len(content)) + content
    (tmp_path / "a.mat").write_bytes(body)
    with pytest.raises(ValueError, match="longer than its header declares"):
        matlab.arrays(tmp_path / "a.mat", ("X",))


def test_what_is_missing_is_said(tmp_path):
    write(tmp_path)
    (tmp_path / "test_32x32.mat").unlink()
    with pytest.raises(FileNotFoundError, match=r"svhn needs test_32x32\.mat.*ufldl\.stanford\.edu"):
        load("svhn", tmp_path)
    savemat(tmp_path / "test_32x32.mat", {"X": pixels(32, 32, 3, 2)})
    with pytest.raises(ValueError, match="no array 'y'"):
        load("svhn", tmp_path, say=silent)
