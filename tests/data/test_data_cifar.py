"""CIFAR in both editions, packed and unpacked, and pickles that would do harm."""

import os
import pickle

import numpy as np
import pytest
import torch
from helpers.formats import cifar10_binary, cifar10_python, pickled, pixels, write_files, write_tar

from balent.data.formats import pickles
from balent.data.sources import load

EDITIONS = {
    "python": (cifar10_python, "cifar-10-batches-py", "cifar-10-python.tar.gz"),
    "binary": (cifar10_binary, "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
}


def silent(note):
    """Notes of files that are not the published ones."""


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("packed", [True, False], ids=["tar.gz", "unpacked"])
@pytest.mark.parametrize("below", ["", "cifar10"])
def test_cifar10_is_found_and_read(tmp_path, edition, packed, below):
    make, folder, archive = EDITIONS[edition]
    files, x, y = make()
    (tmp_path / below).mkdir(exist_ok=True)
    if packed:
        write_tar(tmp_path / below / archive, folder, files)
    else:
        write_files(tmp_path / below / folder, files)
    data = load("cifar10", tmp_path, say=silent)
    images = torch.from_numpy(x).float() / 255
    assert torch.equal(data.x_train[:], images[:20])
    assert torch.equal(data.x_test[:], images[20:])
    assert data.y_train.tolist() + data.y_test.tolist() == y
    assert (data.classes, data.image, data.names[:2]) == (10, (3, 32, 32), ("class 0", "class 1"))


@pytest.mark.parametrize("edition", ["python", "binary"])
def test_cifar100_has_the_fine_labels(tmp_path, edition):
    x, fine = pixels(6, 3072), [5, 99, 0, 7, 7, 1]
    names = [f"fine {i}" for i in range(100)]
    if edition == "python":
        coarse = [0] * 6
        one = pickled(data=x, fine_labels=fine, coarse_labels=coarse)
        meta = pickled(fine_label_names=names, coarse_label_names=["c"] * 20)
        write_files(tmp_path / "cifar-100-python", {"train": one, "test": one, "meta": meta})
    else:
        one = b"".join(bytes([3, label]) + row.tobytes() for row, label in zip(x, fine, strict=True))
        meta = "\n".join(names).encode()
        files = {"train.bin": one, "test.bin": one, "fine_label_names.txt": meta}
        write_files(tmp_path / "cifar-100-binary", files)
    data = load("cifar100", tmp_path, say=silent)
    assert data.y_train.tolist() == data.y_test.tolist() == fine
    assert torch.equal(data.x_test[:].reshape(6, -1), torch.from_numpy(x) / 255)
    assert (data.classes, data.names[99]) == (100, "fine 99")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_python_3_are_read_too(protocol):
    x = pixels(4, 3072)
    found = pickles.read(pickle.dumps({b"data": x, "labels": [1, 2, 3, 4], "names": [b"a", "b"]}, protocol))
    assert np.array_equal(found["data"], x)
    assert (found["labels"], found["names"]) == ([1, 2, 3, 4], ["a", "b"])


class Harm:
    """Pickled, it is a program that makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_malicious_pickle_is_refused_and_nothing_of_it_is_run(tmp_path, protocol):
    files, _, _ = cifar10_python()
    mark = tmp_path / "mark"
    files["data_batch_3"] = pickle.dumps({"data": Harm(mark), "labels": []}, protocol)
    write_files(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(ValueError, match=r"data_batch_3 is refused: it asks for (posix|os|nt)\.system"):
        load("cifar10", tmp_path, say=silent)
    assert not mark.exists()
    pickle.loads(files["data_batch_3"])  # it would have done its harm
    assert mark.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__class__\x93.",  # a name with a dot goes through attributes
        b"cbalent.data.formats.pickles\n_reconstruct\n.",
        b"Pid\n.",
    ],
)
def test_no_other_name_is_found(program):
    with pytest.raises(ValueError, match=r"asks for|cannot be read as a pickle"):
        pickles.read(program)


def test_arrays_of_objects_are_refused():
    """Objects are pickled within the array's state; nothing but bytes is an image."""
    with pytest.raises(ValueError, match="must be of bytes, but one is of 'O8'"):
        pickles.read(pickle.dumps({"data": np.array([{}, 1], object)}, 2))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("data_batch_2", lambda b: b[:-10], "cannot be read as a pickle"),
        ("data_batch_2", lambda b: b[: len(b) // 2], "cannot be read as a pickle"),
        ("data_batch_2", lambda b: pickled(data=pixels(4, 3071), labels=[0] * 4), r"rows of 3072 bytes.*\[4, 3071\]"),
        ("data_batch_2", lambda b: pickled(data=pixels(4, 3072), labels=[0] * 3), "4 images, but 3 labels"),
        ("data_batch_2", lambda b: pickled(data=pixels(1, 3072), labels=[10]), r"labels must be 0\.\.9"),
        ("data_batch_2", lambda b: pickled(data=pixels(1, 3072), labels=["cat"]), "whole numbers"),
        ("data_batch_2", lambda b: pickled(data=pixels(1, 3072), fine_labels=[1]), "should hold 'data' and 'labels'"),
        ("data_batch_2", lambda b: pickle.dumps([1, 2]), "should hold a dict, but holds list"),
        ("batches.meta", lambda b: pickled(label_names=["one"]), "should name 10 classes, but names 1"),
    ],
)
def test_damaged_batches_are_named_with_the_published_checksum(tmp_path, name, content, why):
    files, _, _ = cifar10_python()
    files[name] = content(files[name])
    write_files(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(ValueError, match=why) as error:
        load("cifar10", tmp_path, say=silent)
    assert name in str(error.value)
    assert "published is md5" in str(error.value)


def test_records_must_be_whole(tmp_path):
    files, _, _ = cifar10_binary()
    files["test_batch.bin"] = files["test_batch.bin"][:-1]
    write_files(tmp_path / "cifar-10-batches-bin", files)
    with pytest.raises(ValueError, match=r"test_batch\.bin.*records of 3,073 bytes, but has 12,291"):
        load("cifar10", tmp_path, say=silent)


def test_a_truncated_archive_is_refused_with_its_published_size(tmp_path):
    path = tmp_path / "cifar-10-python.tar.gz"
    write_tar(path, "cifar-10-batches-py", cifar10_python()[0])
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r"is damaged.*c58f30108f718f92721af3b95e74349a, 170,498,071 bytes"):
        load("cifar10", tmp_path, say=silent)


def test_what_an_archive_or_a_folder_lacks_is_named(tmp_path):
    files, _, _ = cifar10_python()
    del files["data_batch_4"]
    write_tar(tmp_path / "cifar-10-python.tar.gz", "cifar-10-batches-py", files)
    with pytest.raises(ValueError, match="it has no data_batch_4"):
        load("cifar10", tmp_path, say=silent)
    write_files(tmp_path / "cifar-10-batches-py", files)
    with pytest.raises(FileNotFoundError, match="lacks data_batch_4"):
        load("cifar10", tmp_path, say=silent)
    with pytest.raises(FileNotFoundError, match=r"needs cifar-100-python\.tar\.gz or cifar-100-binary\.tar\.gz"):
        load("cifar100", tmp_path, say=silent)
