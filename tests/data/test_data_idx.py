"""MNIST and its kin, from files that the tests write: right bytes are read, wrong ones are named."""

import gzip
import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.formats import idx as written
from helpers.formats import write_idx

from balent.data.formats import idx
from balent.data.formats.files import Known
from balent.data.sources import load


@pytest.fixture
def said():
    return []


@pytest.mark.parametrize("packed", [True, False], ids=["gz", "plain"])
@pytest.mark.parametrize("place", ["", "mnist", "MNIST/raw"])
def test_mnist_is_found_and_read(tmp_path, said, packed, place):
    arrays = write_idx(tmp_path / place, packed=packed)
    data = load("mnist", tmp_path, say=said.append)
    assert torch.equal(data.x_train[:], torch.from_numpy(arrays["train-images"])[:, None].float() / 255)
    assert torch.equal(data.x_test[:], torch.from_numpy(arrays["t10k-images"])[:, None].float() / 255)
    assert data.y_train.tolist() == arrays["train-labels"].tolist()
    assert data.y_test.tolist() == arrays["t10k-labels"].tolist()
    assert (data.classes, data.image, data.names) == (10, (1, 28, 28), tuple("0123456789"))
    assert len(said) == 4
    assert "is not the published file of mnist" in said[0]


@pytest.mark.parametrize(("name", "first"), [("fashion-mnist", "T-shirt/top"), ("kmnist", "o")])
def test_its_kin_have_names_of_their_own(tmp_path, said, name, first):
    write_idx(tmp_path / name)
    assert load(name, tmp_path, say=said.append).names[0] == first


def test_the_folder_may_come_from_the_environment(tmp_path, said, monkeypatch):
    write_idx(tmp_path / "mnist")
    monkeypatch.setenv("BALENT_DATA", str(tmp_path))
    assert len(load("mnist", say=said.append).y_train) == 12


def test_what_is_missing_is_named_with_where_to_get_it_and_where_to_put_it(tmp_path, monkeypatch):
    write_idx(tmp_path / "mnist")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"needs t10k-labels-idx1-ubyte\.gz, which.*ossci.*put it into .*mnist"):
        load("mnist", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"needs train-images-idx3-ubyte\.gz, train-labels"):
        load("kmnist", tmp_path)
    monkeypatch.delenv("BALENT_DATA", raising=False)
    with pytest.raises(ValueError, match=r"--data.*BALENT_DATA"):
        load("mnist")
    with pytest.raises(FileNotFoundError, match=r"must be a folder, but .* is not"):
        load("mnist", tmp_path / "nowhere")


def damage(path, change):
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda b: b[: len(b) // 2], "end-of-stream"),
        (lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:], "damaged"),  # a flipped bit: gzip notices
        (lambda b: b"<html>not found</html>", "Not a gzipped file"),
        (lambda b: gzip.compress(gzip.decompress(b)[:-1]), r"declares 9,424 bytes for \[12, 28, 28\].*9,423"),
        (lambda b: gzip.compress(b"\0\0\x0d\x03" + gzip.decompress(b)[4:]), "begins with 000803, this with 00000d03"),
        (lambda b: gzip.compress(b"\0\0"), "begins with 000803"),
    ],
)
def test_damaged_files_are_refused_with_what_was_published(tmp_path, change, why):
    write_idx(tmp_path)
    damage(tmp_path / "train-images-idx3-ubyte.gz", change)
    with pytest.raises(ValueError, match=why) as error:
        load("mnist", tmp_path)
    assert "train-images-idx3-ubyte.gz" in str(error.value)
    assert "f68b3c2dcbeaaa9fbdd348bbdeb94873, 9,912,422 bytes" in str(error.value)


def test_a_file_of_the_published_size_must_have_the_published_checksum(tmp_path):
    """A flipped bit in a file without a checksum of its own: 60,000 labels, one of them wrong."""
    write_idx(tmp_path, packed=False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(written(np.zeros(60_000, np.uint8)))
    with pytest.raises(ValueError, match=r"published size, but its md5.*a25bea736e30d166cdddb491f175f624"):
        load("mnist", tmp_path)


def test_files_of_another_set_are_told_apart_by_their_checksums(tmp_path, monkeypatch):
    """Fashion-MNIST has the file names of MNIST."""
    write_idx(tmp_path)
    content = gzip.decompress((tmp_path / "train-images-idx3-ubyte.gz").read_bytes())
    fashion = replace(idx.FASHION_MNIST, plain={"train-images": hashlib.md5(content).hexdigest()})
    monkeypatch.setitem(idx.SETS, "fashion-mnist", fashion)
    with pytest.raises(ValueError, match="is the file of fashion-mnist, not of mnist"):
        load("mnist", tmp_path)


def test_the_published_file_is_not_worth_a_word(tmp_path, said):
    write_idx(tmp_path)
    stems = {stem: tmp_path / f"{stem}-idx{3 if 'images' in stem else 1}-ubyte.gz" for stem in idx.SIZES}
    packed = {stem: Known(hashlib.md5(path.read_bytes()).hexdigest()) for stem, path in stems.items()}
    replace(idx.MNIST, packed=packed)(tmp_path)
    assert replace(idx.MNIST, packed=packed)(tmp_path).notes == ()


def test_labels_and_images_must_agree(tmp_path):
    write_idx(tmp_path, packed=False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(written(np.zeros(11, np.uint8)))
    with pytest.raises(ValueError, match=r"12 images, but .* has 11 labels"):
        load("mnist", tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(written(np.full(12, 10, np.uint8)))
    with pytest.raises(ValueError, match=r"labels 0\.\.9, but that of image 0 is 10"):
        load("mnist", tmp_path)
