"""Shards in object storage: the same picks, requests that fail are tried again, errors name the shard."""

import io
import math

import fsspec
import numpy as np
import pytest
import torch
from helpers import sharded
from helpers.s3_server import credentials, flaky_s3, uploaded
from helpers.small import head, seeded
from torch import nn

from balent import MCDropout, Shards, acquire
from balent.data import storage

X = np.random.default_rng(0).standard_normal((sharded.ENDS[-1], 6)).astype(np.float32)


@pytest.fixture(scope="module")
def sampled():
    return MCDropout(seeded(head, nn.ReLU(), width=256, classes=10)).sample(20, seed=0)


@pytest.fixture
def remote(tmp_path):
    """Copies shards of a format to `memory://`, and gives their address."""
    files = fsspec.filesystem("memory")

    def copied(name, array=X, ends=sharded.ENDS):
        folder = tmp_path / name
        folder.mkdir()
        sharded.FORMATS[name](folder, array, ends)
        for path in folder.iterdir():
            files.pipe_file(f"/{name}/{path.name}", path.read_bytes())
        return f"memory://{name}"

    yield copied
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture
def failing(monkeypatch):
    """Storage in which the first tries of each request fail, without a pause between tries; all tries are kept."""
    files, seen = fsspec.filesystem("memory"), []
    whole = type(files).cat_file

    def first(times, error=OSError):
        def cat_file(self, path, start=None, end=None, **more):
            seen.append((path, start, end))
            if seen.count((path, start, end)) <= times:
                raise error("503 slow down")
            return whole(self, path, start=start, end=end, **more)

        monkeypatch.setattr(type(files), "cat_file", cat_file)
        monkeypatch.setattr(storage, "PAUSE", 0.0)
        return seen

    return first


@pytest.mark.parametrize("name", sharded.FORMATS)
@pytest.mark.parametrize("strategy", ["bald", "auto", "power:bald"])
def test_picks_are_those_of_an_array_read_in_the_same_blocks(sampled, remote, name, strategy):
    picks = acquire(sampled, Shards.of(remote(name)), 8, strategy)
    expected = acquire(sampled, sharded.in_memory(X), 8, strategy)
    assert picks.indices.tolist() == expected.indices.tolist()
    assert torch.equal(picks.scores, expected.scores)


@pytest.mark.parametrize("name", sharded.FORMATS)
@pytest.mark.parametrize("error", [OSError, TimeoutError, RuntimeError])
def test_requests_that_fail_are_tried_again(sampled, remote, failing, name, error):
    where = remote(name)
    seen = failing(1, error)
    rows = np.concatenate([rows for rows, _ in Shards.of(where).blocks(256)])
    assert np.array_equal(rows, X)
    assert len(seen) > 2


@pytest.mark.parametrize("skip_bad", [False, True])
def test_storage_that_is_gone_names_the_shard_and_is_never_skipped(remote, failing, skip_bad):
    shards = Shards.of(remote("npy"), skip_bad=skip_bad)
    failing(math.inf)
    with pytest.raises(ConnectionError, match=r"memory:.*/npy/000.npy could not be read: 5 attempts failed.*503 slow"):
        list(shards.blocks(256))
    assert shards.skipped == []


def test_patterns_and_single_files_are_pools(remote):
    where = remote("npy")
    assert Shards.of(f"{where}/*.npy").shards == Shards.of(where).shards
    assert Shards.of(f"{where}/000.npy").size == 1025


def test_rows_that_lie_near_each_other_are_one_request(remote, failing):
    shards = Shards.of(remote("npy"))
    seen = failing(0)
    positions = torch.tensor([5, 1000, 3, 4])
    assert np.array_equal(shards.at(positions), X[positions])
    assert len(seen) == 2  # the header, and rows 3 to 1000: 24 kB


def test_a_shard_that_was_replaced_is_named(remote):
    where = remote("npy")
    shards = Shards.of(where)
    fsspec.filesystem("memory").pipe_file("/npy/000.npy", b"other")
    with pytest.raises(ValueError, match=r"npy/000.npy cannot be used from row 0: it has 5 bytes instead of"):
        next(shards.blocks(100))


def test_a_shard_that_was_removed_is_named_or_left_out(remote):
    where = remote("npy")
    shards, tolerant = Shards.of(where), Shards.of(where, skip_bad=True)
    fsspec.filesystem("memory").rm_file("/npy/002.npy")
    with pytest.raises(ValueError, match=r"npy/002.npy cannot be used from row 0: it is not there any more"):
        list(shards.blocks(100))
    assert sum(len(at) for _, at in tolerant.blocks(100)) == len(X) - 275
    assert [entry.rows for entry in tolerant.skipped] == [275]


def test_fortran_order_is_refused_where_a_row_would_be_the_whole_file():
    file = io.BytesIO()
    np.save(file, np.asfortranarray(X))
    fsspec.filesystem("memory").pipe_file("/f/x.npy", file.getvalue())
    with pytest.raises(ValueError, match="is in Fortran order, where a row is spread over the file"):
        Shards.of("memory://f/x.npy")


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    def missing(path):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(ValueError, match=r"s3:// needs a package .* pip install 'balent\[s3\]'"):
        Shards.of("s3://bucket/*.npy")


# ── S3 ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def s3():
    with flaky_s3() as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the server and of aiobotocore
@pytest.mark.parametrize("name", sharded.FORMATS)
def test_a_server_of_s3_that_fails_every_tenth_request_gives_the_same_picks(sampled, s3, tmp_path, monkeypatch, name):
    address, seen = s3
    for variable, value in credentials(address).items():
        monkeypatch.setenv(variable, value)
    sharded.FORMATS[name](tmp_path, X)
    shards = Shards.of(uploaded(address, tmp_path, f"pool-{name}"))
    assert all(len(shard.stamp) >= 32 for shard in shards.shards)  # etags
    for strategy in ("bald", "auto", "power:bald"):
        picks = acquire(sampled, shards, 8, strategy)
        expected = acquire(sampled, sharded.in_memory(X), 8, strategy)
        assert picks.indices.tolist() == expected.indices.tolist()
        assert torch.equal(picks.scores, expected.scores)
    assert len(seen) > 20
