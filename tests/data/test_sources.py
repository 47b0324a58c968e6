"""Data sets: the same on every machine, split once and for all, and files that say what is wrong with them."""

import numpy as np
import pytest
import torch

from balent.data import sources as datasets
from balent.data.sources import DATASETS, known, load


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_is_the_same_at_every_call_and_fits_together(name):
    one, other = load(name), load(name)
    assert torch.equal(one.x_train, other.x_train)
    for x, y in ((one.x_train, one.y_train), (one.x_test, one.y_test)):
        assert len(x) == len(y)
        assert x.dtype == torch.float32
        assert set(y.tolist()) == set(range(one.classes))


@pytest.mark.parametrize("name", DATASETS)
def test_no_point_of_the_pool_is_in_the_test_set(name):
    data = load(name)
    pool, test = ({tuple(row) for row in x.flatten(1).tolist()} for x in (data.x_train, data.x_test))
    assert len(pool & test) == 0


def test_digits_are_those_of_scikit_learn():
    sklearn = pytest.importorskip("sklearn.datasets")
    data, known = load("digits"), sklearn.load_digits()
    ours = torch.cat([data.x_train, data.x_test]).reshape(-1, 64) * 16
    rows = sorted(zip(ours.tolist(), torch.cat([data.y_train, data.y_test]).tolist(), strict=True))
    assert rows == sorted(zip(known.data.tolist(), known.target.tolist(), strict=True))


def test_moons_without_noise_are_half_circles():
    """Centres (-1, 0), (0, ½), (1, 0), radius 1; the middle one opens upwards."""
    data = datasets.moons(300, 30, noise=0.0)
    centers = torch.tensor([[-1.0, 0.0], [0.0, 0.5], [1.0, 0.0]])[data.y_train]
    offset = data.x_train - centers
    torch.testing.assert_close(offset.norm(dim=1), torch.ones(300))
    assert bool(((offset[:, 1] >= -1e-6) == (data.y_train != 1)).all())


@pytest.fixture
def saved(tmp_path):
    def save(**changes):
        x, y = np.random.default_rng(0).random((6, 2)), np.array([0, 1, 2, 0, 1, 2])
        arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y, **changes}
        np.savez(tmp_path / "d.npz", **{name: array for name, array in arrays.items() if array is not None})
        return str(tmp_path / "d.npz")

    return save


def test_features_come_from_a_file(saved):
    data = load(saved())
    assert (data.x_train.shape, data.classes, data.image) == ((6, 2), 3, None)


def test_labels_that_nobody_has_given_yet_are_kept_apart(saved):
    data = load(saved(y_train=np.array([0, -1, 2, -1, 1, 2])))
    assert (data.y_train.tolist(), data.classes) == ([0, -1, 2, -1, 1, 2], 3)


def test_features_of_a_named_set_lie_in_the_folder_with_data(saved, tmp_path):
    saved()
    (tmp_path / "d.npz").rename(tmp_path / "cifar100-features.npz")
    assert load("cifar100-features", tmp_path).classes == 3
    assert len(load("3xcifar100-features", tmp_path).y_train) == 18
    with pytest.raises(FileNotFoundError, match=r"there is no .*svhn-features\.npz.*balent embed svhn"):
        load("svhn-features", tmp_path)


def test_a_damaged_npz_is_named(saved):
    path = saved()
    with open(path, "r+b") as file:
        file.truncate(300)
    with pytest.raises(ValueError, match=r"d\.npz is not a readable \.npz file"):
        load(path)


def test_bytes_are_images_from_0_to_1(saved):
    images = np.full((6, 1, 4, 4), 255, np.uint8)
    data = load(saved(x_train=images, x_test=images))
    assert data.image == (1, 4, 4)
    assert float(data.x_train.max()) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y_test": None}, "has no y_test"),
        ({"y_train": np.zeros(5, int)}, "6 points and y_train has 5 labels"),
        ({"y_train": np.zeros(6)}, "whole numbers"),
        ({"y_train": np.full(6, -2)}, "whole numbers 0"),
        ({"y_test": np.full(6, -1)}, "whole numbers 0"),
        ({"x_train": np.full((6, 2), np.nan)}, "row 0 is not"),
        ({"x_train": np.array([["a", "b"]] * 6)}, "must be numbers"),
        ({"x_train": np.array([[{}, 1]] * 6, object)}, "'x_train', holds Python objects"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(saved, changes, said):
    with pytest.raises(ValueError, match=said):
        load(saved(**changes))


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean digits"):
        load("digit")
    with pytest.raises(ValueError, match="did you mean fashion-mnist"):
        known("fasion-mnist")
    for name in ("digits", "mnist", "3xcifar10-features", "a.csv", "hf:name", "mine.npz"):
        known(name)
    with pytest.raises(FileNotFoundError, match=r"there is no file nowhere\.npz"):
        load("nowhere.npz")


def test_a_folder_of_records_does_not_hide_the_data_set_of_its_name(tmp_path, monkeypatch):
    """Bug: after balent run 3xmnist --out 3xmnist, "3xmnist" was read as a folder of images."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "3xmoons").mkdir()
    assert len(load("3xmoons").y_train) == 3 * len(load("moons").y_train)
