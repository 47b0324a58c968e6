"""Features of images in shards: a file for each, the same by one process and on a cluster; what is done is kept."""

import tarfile
from itertools import pairwise

import numpy as np
import pytest
import torch
from helpers import sharded
from helpers.formats import picture
from pyarrow import parquet
from typer.testing import CliRunner

from balent import MCDropout, Shards, acquire
from balent.apps import cli
from balent.vision.photos import Photos
from balent.vision.shard_features import embed_shards

pytest.importorskip("PIL")
SMALL = {"backbone": "random:resnet10", "image_size": 32}
FILES = [picture((20 + i, 30, 3), seed=i) for i in range(11)]
ENDS = (0, 4, 4, 11)


@pytest.fixture(scope="module")
def photos():
    return Photos(**SMALL)


@pytest.fixture(scope="module")
def expected(photos, tmp_path_factory):
    """Features of the same files as `balent embed` of a folder has them."""
    place = tmp_path_factory.mktemp("files")
    paths = [place / f"{i}.png" for i in range(len(FILES))]
    for path, content in zip(paths, FILES, strict=True):
        path.write_bytes(content)
    return photos(paths)[0]


@pytest.fixture
def pool(tmp_path):
    """Archives of 4, 0 and 7 images."""
    folder = tmp_path / "pool"
    folder.mkdir()
    for shard, (a, b) in enumerate(pairwise(ENDS)):
        with tarfile.open(folder / f"{shard}.tar", "w") as file:
            for i in range(a, b):
                sharded.add(file, f"photo-{i:02d}.png", FILES[i])
    return folder


def of(pool, **settings):
    return Shards.of(pool, size=32, **settings)


def test_each_shard_has_a_file_with_the_features_of_its_images(photos, pool, expected, tmp_path):
    embed_shards(of(pool), photos, tmp_path / "features")
    found = [np.load(tmp_path / "features" / f"{shard}.npy") for shard in range(3)]
    assert [(len(rows), rows.dtype) for rows in found] == [(4, np.float32), (0, np.float32), (7, np.float32)]
    assert np.array_equal(np.concatenate(found), expected)


def test_features_are_a_pool_whose_positions_are_those_of_the_images(photos, pool, expected, tmp_path):
    images = of(pool)
    embed_shards(images, photos, tmp_path / "features")
    shards = Shards.of(tmp_path / "features")
    assert torch.equal(shards.positions, images.positions)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(photos.width, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
    picks = acquire(MCDropout(network).sample(20, seed=0), shards, 2, "bald")
    assert all(np.array_equal(shards.at(at[None])[0], expected[ENDS[at >> 32] + (at & 0xFFFF)]) for at in picks.indices)


def test_a_key_stands_beside_its_features(photos, pool, expected, tmp_path):
    embed_shards(of(pool, key="__key__"), photos, tmp_path / "features")
    table = parquet.read_table(tmp_path / "features" / "2.parquet")
    assert table["__key__"].to_pylist() == [f"photo-{i:02d}" for i in range(4, 11)]
    shards = Shards.of(tmp_path / "features", key="__key__")
    assert np.array_equal(shards.at(shards.positions), expected)
    assert shards.ids(shards.positions[[4]]) == ["photo-04"]


def test_what_is_done_is_kept_and_the_rest_goes_on(photos, pool, expected, tmp_path, monkeypatch):
    seen, whole = [], Photos.of_pixels

    def dying(self, images):
        seen.append(len(images))
        if len(images) == 7 and len(seen) == 2:
            raise RuntimeError("the power is gone")
        return whole(self, images)

    monkeypatch.setattr(Photos, "of_pixels", dying)
    with pytest.raises(RuntimeError, match="the power is gone"):
        embed_shards(of(pool), photos, tmp_path / "features")
    assert sorted(path.name for path in (tmp_path / "features").iterdir()) == ["0.npy", "finished.jsonl"]
    embed_shards(of(pool), photos, tmp_path / "features")
    embed_shards(of(pool), photos, tmp_path / "features")
    assert seen == [4, 7, 7]
    assert np.array_equal(np.load(tmp_path / "features" / "2.npy"), expected[4:])


def test_features_of_another_backbone_are_not_mixed_in(photos, pool, tmp_path):
    embed_shards(of(pool), photos, tmp_path / "features")
    with pytest.raises(FileExistsError, match=r"features exists already, with backbone = 'resnet10', but .*'resnet18'"):
        embed_shards(of(pool), Photos("random:resnet18", 32), tmp_path / "features")


def test_an_image_that_cannot_be_read_is_left_out_once(photos, pool, expected, tmp_path, monkeypatch):
    with tarfile.open(pool / "2.tar", "w") as file:
        for i in range(4, 11):
            sharded.add(file, f"photo-{i:02d}.png", b"no image" if i == 6 else FILES[i])
    with pytest.raises(ValueError, match=r"2.tar cannot be used from row 2: the image cannot be decoded"):
        embed_shards(of(pool, key="__key__"), photos, tmp_path / "features")
    with pytest.raises(ValueError, match=r"rows of features are not rows of their shard, so each needs its key"):
        embed_shards(of(pool, skip_bad=True), photos, tmp_path / "features")
    shards = of(pool, key="__key__", skip_bad=True)
    embed_shards(shards, photos, tmp_path / "features")
    assert [(entry.first, entry.rows) for entry in shards.skipped] == [(2, 1)]
    table = parquet.read_table(tmp_path / "features" / "2.parquet")
    assert table["__key__"].to_pylist() == [f"photo-{i:02d}" for i in (4, 5, 7, 8, 9, 10)]
    assert np.array_equal(np.stack(table["features"].to_numpy()), expected[[4, 5, 7, 8, 9, 10]])
    monkeypatch.setattr(Photos, "of_pixels", None)  # nothing is computed again
    embed_shards(of(pool, key="__key__", skip_bad=True), photos, tmp_path / "features")


def test_points_that_are_no_images_are_refused(photos, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 3), np.float32))
    with pytest.raises(ValueError, match=r"bytes of shape \[3, 32, 32\], but points of .* float32 of shape \[3\]"):
        embed_shards(of(tmp_path / "x.npy"), photos, tmp_path / "features")
    with pytest.raises(ValueError, match="takes images of 32 pixels, but shards are read with size=224"):
        embed_shards(Shards.of(tmp_path / "x.npy"), photos, tmp_path / "features")


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def invoke(*words, code=0):
    result = CliRunner().invoke(cli.app, ["embed", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stderr


EMBED = ("--backbone", "random:resnet10", "--image-size", 32)


def test_the_command_writes_features_of_shards_and_tells_options_apart(pool, expected, tmp_path):
    out = tmp_path / "features"
    assert "256 features of 11 images in 3 shards" in invoke(f"{pool}/*.tar", *EMBED, "-o", out)
    assert np.array_equal(np.load(out / "2.npy"), expected[4:])
    assert "--limit is for one .npz" in invoke(pool, *EMBED, "--limit", 3, "-o", out, code=2)
    assert "--key is for features of shards" in invoke(pool, *EMBED, "--key", "a", "-o", tmp_path / "f.npz", code=2)
    assert "--workers is for --engine ray" in invoke(pool, *EMBED, "--workers", 2, "-o", out, code=2)


def test_workers_of_a_cluster_compute_the_same_features(pool, expected, tmp_path):
    pytest.importorskip("ray")
    words = (pool, *EMBED, "--engine", "ray", "--workers", 2, "--resume", tmp_path / "journal")
    invoke(*words, "-o", tmp_path / "features")
    assert np.array_equal(np.concatenate([np.load(tmp_path / f"features/{i}.npy") for i in range(3)]), expected)
    invoke(*words, "-o", tmp_path / "again")
    for i in range(3):
        assert (tmp_path / f"again/{i}.npy").read_bytes() == (tmp_path / f"features/{i}.npy").read_bytes()
