"""Formats of shards: images in folders, archives and tables; data sets of Hugging Face; what is damaged in each."""

import io
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import torch
from helpers import sharded
from PIL import Image

from balent import Shards
from balent.data.damage import Damaged
from balent.data.formats.image_file import Picture, square

SIZE = 16


def encoded(i, kind="PNG"):
    """A picture of its own size and colours."""
    pixels = np.random.default_rng(i).integers(0, 255, (20 + i, 30, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


FILES = [encoded(i, kind) for i, kind in enumerate(["PNG", "JPEG", "WEBP", "PNG", "JPEG"] * 20)]
DECODED = np.stack([square(Picture("", lambda content=content: io.BytesIO(content)), SIZE) for content in FILES])
ENDINGS = [("png", "jpg", "webp", "png", "jpeg")[i % 5] for i in range(100)]


def folder(place):
    for i, content in enumerate(FILES):
        (place / f"{i // 50}").mkdir(exist_ok=True)
        (place / f"{i // 50}" / f"{i:03d}.{ENDINGS[i]}").write_bytes(content)


def archive(place):
    for shard in range(2):
        with tarfile.open(place / f"{shard}.tar", "w") as file:
            for i in range(50 * shard, 50 * shard + 50):
                sharded.add(file, f"train/{i:03d}.{ENDINGS[i]}", FILES[i])
                sharded.add(file, f"train/{i:03d}.json", b"{}")


def bare_bytes(place):
    table = sharded.pa.table({"picture": FILES, "label": [1] * 100})
    sharded.parquet.write_table(table, place / "x.parquet", row_group_size=30)


def hugging_face(place):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    cells = [{"bytes": content, "path": None} for content in FILES]
    datasets.Dataset.from_dict({"image": cells, "label": [0] * 100}, features).save_to_disk(place, num_shards=2)


@pytest.mark.parametrize("write", [folder, archive, bare_bytes, hugging_face])
def test_images_are_squares_of_colours(tmp_path, write):
    write(tmp_path)
    shards = Shards.of(tmp_path, size=SIZE)
    assert np.array_equal(np.concatenate([rows for rows, _ in shards.blocks(32)]), DECODED)
    assert np.array_equal(shards.at(shards.positions[[99, 3, 50]]), DECODED[[99, 3, 50]])


def test_ids_of_images_are_their_paths(tmp_path):
    folder(tmp_path)
    shards = Shards.of(tmp_path, size=SIZE, key="path")
    assert shards.ids(torch.tensor([51])) == [f"{tmp_path}/1/051.jpg"]
    assert Shards.of(f"{tmp_path}/1/*.jpg", size=SIZE).ids(torch.tensor([0])) == [f"{tmp_path}/1/051.jpg"]


def test_images_that_came_since_the_manifest_are_noticed(tmp_path):
    (tmp_path / "photos").mkdir()
    folder(tmp_path / "photos")
    Shards.of(tmp_path / "photos", manifest=tmp_path / "m.jsonl")
    (tmp_path / "photos" / "new.png").write_bytes(FILES[0])
    with pytest.raises(Damaged, match="photos/ cannot be used from row 0: it has 101 files instead of 100"):
        Shards.of(tmp_path / "photos", manifest=tmp_path / "m.jsonl")


@pytest.mark.parametrize("write", [folder, archive, bare_bytes])
def test_an_image_that_cannot_be_decoded_is_named_with_its_row(tmp_path, monkeypatch, write):
    monkeypatch.setattr(sys.modules[__name__], "FILES", [*FILES[:7], b"no image", *FILES[8:]])
    write(tmp_path)
    with pytest.raises(Damaged, match="cannot be used from row 7: the image cannot be decoded"):
        list(Shards.of(tmp_path, size=SIZE).blocks(32))
    shards = Shards.of(tmp_path, size=SIZE, skip_bad=True)
    rows = np.concatenate([rows for rows, _ in shards.blocks(32)])
    assert np.array_equal(rows, np.delete(DECODED, 7, 0))
    assert [(entry.first, entry.rows) for entry in shards.skipped] == [(7, 1)]
    assert shards.size == 99


# ── Hugging Face ─────────────────────────────────────────────────────────────────────────────────


def test_vectors_of_a_saved_data_set_are_read(tmp_path):
    datasets = pytest.importorskip("datasets")
    x = np.random.default_rng(0).standard_normal((70, 5)).astype(np.float32)
    data = datasets.Dataset.from_dict({"id": [f"k{i}" for i in range(70)], "x": x.tolist(), "label": [0] * 70})
    data.save_to_disk(tmp_path / "whole", num_shards=3)
    shards = Shards.of(tmp_path / "whole", key="id")
    assert np.array_equal(np.concatenate([rows for rows, _ in shards.blocks(16)]), x)
    assert shards.ids(shards.positions[[69]]) == ["k69"]
    datasets.DatasetDict(train=data, test=data).save_to_disk(tmp_path / "parts")
    with pytest.raises(ValueError, match="holds a data set in parts; name one of them: test, train"):
        Shards.of(tmp_path / "parts")
    assert Shards.of(tmp_path / "parts" / "train").size == 70


# ── archives ─────────────────────────────────────────────────────────────────────────────────────


def test_an_archive_that_is_cut_off_is_named(tmp_path):
    archive(tmp_path)
    content = (tmp_path / "1.tar").read_bytes()
    (tmp_path / "1.tar").write_bytes(content[: len(content) // 2])
    with pytest.raises(Damaged, match=r"1.tar cannot be used from row 0: it is not a readable .tar archive"):
        Shards.of(tmp_path, size=SIZE)
    assert Shards.of(tmp_path, size=SIZE, skip_bad=True).size == 50


def test_a_point_without_an_image_is_named(tmp_path):
    with tarfile.open(tmp_path / "0.tar", "w") as file:
        sharded.add(file, "a.png", FILES[0])
        sharded.add(file, "b.txt", b"words")
    with pytest.raises(ValueError, match=r"each point must have a .npy or an image, but 'b' \(row 1\) has none"):
        Shards.of(tmp_path)
    with pytest.raises(ValueError, match=r"each point must have a member ending in .npy, but 'a' \(row 0\) has none"):
        Shards.of(tmp_path, column="npy")


def test_arrays_in_archives_that_hold_objects_are_never_unpickled(tmp_path):
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with tarfile.open(tmp_path / "0.tar", "w") as opened:
        sharded.add(opened, "a.npy", file.getvalue())
    with pytest.raises(ValueError, match="which are never unpickled"):
        list(Shards.of(tmp_path).blocks(4))


# ── memory ───────────────────────────────────────────────────────────────────────────────────────

PEAK = """
import sys, torch
from torch import nn
from balent import MCDropout, Shards, acquire

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 32), nn.Dropout(0.5), nn.ReLU(), nn.Linear(32, 3))
acquire(MCDropout(model).sample(4, seed=0), Shards.of(sys.argv[1]), 10, sys.argv[2])
[peak] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak // 1024)  # not ru_maxrss, which a process inherits from the one that started it
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize("strategy", ["bald", "auto", "power:bald"])
def test_memory_does_not_grow_with_the_pool(tmp_path, kind, strategy):
    """300 MB against 30 MB, in shards of 30 MB: the peak differs by less than a tenth of what was added."""
    rows = np.random.default_rng(0).standard_normal((29_300, 256)).astype(np.float32)
    for i in range(11):
        place = tmp_path / ("small" if i == 0 else "large")
        place.mkdir(exist_ok=True)
        (sharded.npy if kind == "npy" else sharded.tables)(place, rows, ends=(0, len(rows)))
        next(place.glob("000.*")).rename(place / f"shard-{i}.{kind}")
    small, large = (
        int(subprocess.run(
            [sys.executable, "-c", PEAK, str(tmp_path / name), strategy], capture_output=True, text=True, check=True
        ).stdout.split()[0])
        for name in ("small", "large")
    )  # fmt: skip
    print(f"{kind} {strategy}: {small} MB for 30 MB, {large} MB for 300 MB")
    assert large < small + 24
