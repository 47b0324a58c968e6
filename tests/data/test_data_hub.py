"""Hugging Face data sets from disk, and what is said without a network."""

import io

import numpy as np
import pytest
import torch
from helpers.formats import pixels

from balent.data.formats import hub
from balent.data.sources import load

datasets = pytest.importorskip("datasets")
Image = pytest.importorskip("PIL.Image")


def read(name, **options):
    said = []
    return load(f"hf:{name}", say=said.append, **options), said


def images(n, seed=0):
    return [Image.fromarray(pixels(8, 8, 3, seed=seed + i)) for i in range(n)]


def with_images(place, labels=("cat", "dog"), test=True):
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(labels))})
    rows = {"train": {"image": images(6), "label": [0, 1, 0, 1, 0, -1]}}
    if test:
        rows["test"] = {"image": images(2, seed=50), "label": [1, 0]}
    found = {part: datasets.Dataset.from_dict(columns, features=features) for part, columns in rows.items()}
    datasets.DatasetDict(found).save_to_disk(place)


def test_images_with_class_labels(tmp_path):
    with_images(tmp_path / "pets")
    data, said = read(tmp_path / "pets")
    assert (data.names, data.image) == (("cat", "dog"), (3, 8, 8))
    assert data.y_train.tolist() == [0, 1, 0, 1, 0, -1]
    assert data.y_test.tolist() == [1, 0]
    assert torch.equal(data.x_train[4], torch.from_numpy(pixels(8, 8, 3, seed=4)).permute(2, 0, 1).float() / 255)
    assert said == ["1 of 8 points have no label"]
    assert torch.equal(read(tmp_path / "pets")[0].x_test[:], data.x_test[:])
    assert read(tmp_path / "pets", size=4)[0].image == (3, 4, 4)


def test_classes_of_the_test_part_must_occur_in_train(tmp_path):
    """That the data set has a name for it is not enough."""
    features = datasets.Features({"a": datasets.Value("float32"), "label": datasets.ClassLabel(names=["x", "y"])})
    train = datasets.Dataset.from_dict({"a": [1.0, 2.0], "label": [0, 0]}, features=features)
    test = datasets.Dataset.from_dict({"a": [1.0], "label": [1]}, features=features)
    datasets.DatasetDict({"train": train, "test": test}).save_to_disk(tmp_path / "d")
    with pytest.raises(ValueError, match="of class 'y' in the test set, which does not occur"):
        read(tmp_path / "d")


@pytest.mark.parametrize("number", [2, -2])
def test_numbers_without_a_class_name_are_refused(tmp_path, number):
    """Defect: -2 was the last name but one, counted from the end, and 2 of two names an IndexError."""
    features = datasets.Features({"a": datasets.Value("float32"), "label": datasets.ClassLabel(names=["x", "y"])})
    part = datasets.Dataset.from_dict({"a": [1.0, 2.0], "label": [0, number]})
    part.info.features = features  # the library would check it, a damaged file does not
    with pytest.raises(ValueError, match=rf"labels of column 'label' must be -1\.\.1, but one is {number}"):
        hub._words(part, "label")


def test_unreadable_images_are_listed(tmp_path):
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    file = io.BytesIO()
    images(1)[0].save(file, "PNG")
    good, bad = {"bytes": file.getvalue(), "path": None}, {"bytes": b"damaged", "path": None}
    made = datasets.Dataset.from_dict({"image": [good, bad, good], "label": [0, 1, 1]}, features=features)
    made.save_to_disk(tmp_path / "d")
    with pytest.raises(ValueError, match=r"1 of 3 images cannot be read: [a-z]+ 1 "):
        read(tmp_path / "d")
    assert read(tmp_path / "d", skip_bad=True)[0].y_train.tolist() == [0, 1]


@pytest.mark.parametrize("columns", ["lists", "numbers"])
def test_features_as_lists_or_as_columns(tmp_path, columns):
    x = np.random.default_rng(0).random((20, 3)).astype(np.float32)
    rows = {"emb": x.tolist()} if columns == "lists" else {f"c{i}": x[:, i].tolist() for i in range(3)}
    made = datasets.Dataset.from_dict({**rows, "label": [i % 2 for i in range(20)]})
    made.save_to_disk(tmp_path / "d")
    data, said = read(tmp_path / "d")
    assert (len(data.y_train), len(data.y_test), data.names) == (16, 4, ("0", "1"))
    assert "one in 5" in said[0]
    known = {tuple(row): i % 2 for i, row in enumerate(x.tolist())}
    for points, labels in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert [known[tuple(row)] for row in points.tolist()] == labels.tolist()


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"a": [1.0], "kind": [0]}, "must have a column label"),
        ({"text": ["a b"], "label": [0]}, "must have images, one column of lists"),
        ({"a": [[1.0, 2.0]], "b": [[1.0]], "label": [0]}, "one column of lists"),
        ({"a": [1.0, None], "label": [0, 1]}, "row 1, has a number that is missing"),
        ({"a": [1.0, 2.0], "label": [0.5, 1.0]}, r"row 0 of train, has '0\.5'"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path, columns, why):
    datasets.Dataset.from_dict(columns).save_to_disk(tmp_path / "d")
    with pytest.raises(ValueError, match=why):
        read(tmp_path / "d")


def test_a_name_without_network_names_the_way_around(monkeypatch):
    def unreachable(name):
        raise ConnectionError(f"Couldn't reach '{name}' on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(ValueError, match=r"hf:someone/pets cannot be loaded: ConnectionError.*save_to_disk.*hf:DIR"):
        read("someone/pets")
