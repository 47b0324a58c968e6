"""Scores of shards in a folder: a file per shard, complete or not there, and a run that was stopped goes on."""

import numpy as np
import pytest
import torch
from helpers import sharded
from helpers.small import head, seeded
from pyarrow import parquet
from torch import nn

from balent import MCDropout, Shards, acquire
from balent.acquisition.shard_files import file_names

X = np.random.default_rng(0).standard_normal((sharded.ENDS[-1], 6)).astype(np.float32)


class Counted:
    """Posterior samples that count the points they are asked for, and may fail at one of them."""

    def __init__(self, inner, fails_at=None):
        self.inner, self.points, self.fails_at = inner, 0, fails_at

    @property
    def traits(self):
        return self.inner.traits

    def __call__(self, batch, positions=None):
        return self.inner(batch, positions)

    def moments(self, batch, positions=None):
        self.points += len(batch)
        if self.fails_at is not None and self.fails_at in positions.tolist():
            raise RuntimeError("the power is gone")
        return self.inner.moments(batch, positions)


@pytest.fixture(scope="module")
def inner():
    return MCDropout(seeded(head, nn.ReLU())).sample(20, seed=0)


@pytest.fixture(params=["npy", "parquet"])
def pool(request, tmp_path):
    folder = tmp_path / "pool"
    folder.mkdir()
    sharded.FORMATS[request.param](folder, X)
    return folder


def column(path, name="bald"):
    return np.load(path)[:, 0] if path.suffix == ".npy" else parquet.read_table(path)[name].to_numpy()


def test_each_shard_has_a_file_of_scores_and_picks_are_the_same(inner, pool, tmp_path):
    expected = acquire(inner, sharded.in_memory(X), 7, "bald", scores=None)
    shards = Shards.of(pool)
    picks = acquire(inner, shards, 7, "bald", measures=["entropy"], scores=tmp_path / "scores")
    assert picks.indices.tolist() == expected.indices.tolist()
    assert torch.equal(picks.scores, expected.scores)
    files = sorted(path for path in (tmp_path / "scores").iterdir() if path.name != "finished.jsonl")
    assert [path.name for path in files] == sorted(path.name for path in pool.iterdir())
    assert [len(column(path)) for path in files] == [1025, 0, 275, 1301]
    at = picks.indices[0].item()
    assert column(files[at >> 32])[at & 0xFFFFFFFF] == picks.scores[0]


def test_points_in_a_parquet_file_of_scores_are_positions(inner, tmp_path):
    (tmp_path / "pool").mkdir()
    sharded.tables(tmp_path / "pool", X)
    acquire(inner, Shards.of(tmp_path / "pool"), 7, "bald", scores=tmp_path / "scores")
    assert parquet.read_table(tmp_path / "scores" / "002.parquet")["point"][3].as_py() == (2 << 32) | 3


def test_a_run_that_was_stopped_goes_on(inner, pool, tmp_path):
    shards, folder = Shards.of(pool), tmp_path / "scores"
    with pytest.raises(RuntimeError, match="the power is gone"):
        acquire(Counted(inner, fails_at=(3 << 32) | 700), shards, 7, "bald", scores=folder)
    assert len([path for path in folder.iterdir() if path.name.startswith("00")]) == 2  # no part of the fourth
    again = Counted(inner)
    picks = acquire(again, shards, 7, "bald", scores=folder)
    assert again.points < 1301 + 2 + 16 + 1  # the fourth shard; two points to try the model; eight of each that is done
    expected = acquire(inner, sharded.in_memory(X), 7, "bald")
    assert picks.indices.tolist() == expected.indices.tolist()
    assert torch.equal(picks.scores, expected.scores)


def test_scores_of_another_model_are_refused(inner, pool, tmp_path):
    acquire(inner, Shards.of(pool), 7, "bald", scores=tmp_path / "scores")
    other = MCDropout(seeded(head, nn.ReLU(), seed=1)).sample(20, seed=0)
    with pytest.raises(ValueError, match="holds scores of another model: that of point 0 is"):
        acquire(other, Shards.of(pool), 7, "bald", scores=tmp_path / "scores")


def test_another_measure_or_a_changed_shard_is_computed_anew(inner, pool, tmp_path):
    acquire(inner, Shards.of(pool), 7, "bald", scores=tmp_path / "scores")
    other = Counted(inner)
    acquire(other, Shards.of(pool), 7, "entropy", scores=tmp_path / "scores")
    assert other.points >= len(X)


def test_strategies_with_noise_write_the_scores_before_it(inner, pool, tmp_path):
    shards = Shards.of(pool)
    picks = acquire(inner, shards, 7, "power:bald", scores=tmp_path / "scores")
    expected = acquire(inner, sharded.in_memory(X), 7, "power:bald")
    assert picks.indices.tolist() == expected.indices.tolist()
    assert len(column(tmp_path / "scores" / sorted(p.name for p in pool.iterdir())[3])) == 1301


def test_rows_that_were_left_out_have_no_score(inner, tmp_path):
    cells = [row.tolist() for row in X[:100]]
    cells[40] = None
    sharded.parquet.write_table(sharded.pa.table({"x": cells}), tmp_path / "0.parquet")
    sharded.parquet.write_table(sharded.pa.table({"x": cells[:10]}), tmp_path / "1.parquet")
    shards = Shards.of([tmp_path / "0.parquet", tmp_path / "1.parquet"], skip_bad=True)
    acquire(inner, shards, 7, "bald", scores=tmp_path / "scores")
    scores = column(tmp_path / "scores" / "0.parquet")
    assert np.flatnonzero(np.isnan(scores)).tolist() == [40]
    again = Counted(inner)
    acquire(again, Shards.of([tmp_path / "0.parquet", tmp_path / "1.parquet"], skip_bad=True), 7, "bald",
            scores=tmp_path / "scores")  # fmt: skip
    assert again.points > 99  # a shard with rows left out is not finished


def test_several_shards_have_no_single_file(inner, pool, tmp_path):
    with pytest.raises(ValueError, match="the scores of 4 shards are written to a folder"):
        acquire(inner, Shards.of(pool), 7, "bald", scores=tmp_path / "all.npy")


def test_one_shard_may_have_a_file(inner, tmp_path):
    sharded.tables(tmp_path, X, ends=(0, 500))
    acquire(inner, Shards.of(tmp_path), 7, "bald", scores=tmp_path / "all.npy")
    assert np.load(tmp_path / "all.npy").shape == (500, 1)


def test_files_are_named_below_the_folder_that_shards_share():
    assert file_names(["s3://b/x/0.parquet", "s3://b/y/0.parquet"]) == ["x/0.parquet", "y/0.parquet"]
    assert file_names(["pool/0.tar"]) == ["0.npy"]
    assert file_names(["photos/"]) == ["images.npy"]
