"""Decoded once: the second start reads what the first one wrote, and nothing that is not whole."""

import errno
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from helpers.formats import write_idx

from balent.data import cache
from balent.data.formats import idx
from balent.data.sources import load


def silent(note):
    """Notes of files that are not the published ones."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    write_idx(tmp_path / "data")
    return tmp_path / "data"


def kept(folder):
    return [path for path in (folder / ".balent-cache").iterdir() if path.is_dir()]


@pytest.fixture
def decodings(monkeypatch):
    """How often files were decoded."""
    seen = []
    decoded = idx.IdxSet.decoded
    monkeypatch.setattr(idx.IdxSet, "decoded", lambda self, paths: (seen.append(1), decoded(self, paths))[1])
    return seen


def test_the_second_start_maps_what_the_first_one_wrote(folder, decodings):
    said = []
    first, second = load("mnist", folder, say=silent), load("mnist", folder, say=said.append)
    assert decodings == [1]
    assert isinstance(second.x_train.array, np.memmap)
    assert torch.equal(first.x_train[:], second.x_train[:])
    assert torch.equal(first.y_test, second.y_test)
    assert (first.names, first.notes) == (second.names, second.notes)
    assert len(said) == 4  # what should be known is said at every start


def test_a_folder_is_the_same_however_it_is_named(folder, decodings, monkeypatch):
    load("mnist", folder, say=silent)
    monkeypatch.chdir(folder.parent)
    load("mnist", "data", say=silent)
    load("mnist", folder / ".." / "data", say=silent)
    assert decodings == [1]


def test_files_that_changed_are_decoded_anew_and_the_old_arrays_go(folder, decodings):
    load("mnist", folder, say=silent)
    write_idx(folder, train=15)
    assert len(load("mnist", folder, say=silent).y_train) == 15
    assert len(decodings) == 2
    assert len(kept(folder)) == 1
    path = folder / "train-labels-idx1-ubyte.gz"
    os.utime(path, ns=(1, 1))
    load("mnist", folder, say=silent)
    assert len(decodings) == 3


@pytest.mark.parametrize("name", ["x_train.npy", "y_test.npy", "about.json"])
@pytest.mark.parametrize("size", [0, 100])
def test_arrays_that_are_damaged_are_made_again(folder, decodings, name, size):
    whole = load("mnist", folder, say=silent).x_train[:]
    path = kept(folder)[0] / name
    path.write_bytes(path.read_bytes()[:size])
    assert torch.equal(load("mnist", folder, say=silent).x_train[:], whole)
    assert len(decodings) == 2


def test_a_decoding_that_fails_leaves_nothing(folder):
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="damaged"):
        load("mnist", folder, say=silent)
    assert kept(folder) == []


def test_a_full_disk_is_said_and_leaves_nothing(folder, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache.os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot be written to .*\.balent-cache: No space left.*BALENT_CACHE"):
        load("mnist", folder, say=silent)
    assert kept(folder) == []


def test_what_a_killed_process_left_is_cleared_away(folder):
    load("mnist", folder, say=silent)
    (target,) = kept(folder)
    target.rename(target.with_name(target.name + ".partial"))
    load("mnist", folder, say=silent)
    assert kept(folder) == [target]


def test_another_place_can_be_named_and_folders_of_one_name_do_not_mix(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "elsewhere"))
    write_idx(tmp_path / "other" / "data", train=20)
    assert len(load("mnist", folder, say=silent).y_train) == 12
    assert len(load("mnist", tmp_path / "other" / "data", say=silent).y_train) == 20
    assert len(load("mnist", folder, say=silent).y_train) == 12
    assert not (folder / ".balent-cache").exists()
    assert len([path for path in (tmp_path / "elsewhere").iterdir() if path.is_dir()]) == 2


def test_a_data_folder_that_cannot_be_written_to_leaves_the_users_own_cache(folder, tmp_path, monkeypatch):
    (folder / ".balent-cache").write_bytes(b"a file where the cache would be, as good as no permission")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    load("mnist", folder, say=silent)
    assert any((tmp_path / "home" / "balent").iterdir())
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(OSError, match="set BALENT_CACHE"):
        load("mnist", folder, say=silent)


def test_of_two_that_start_together_one_decodes_and_the_other_waits(folder, decodings, monkeypatch):
    """Locks belong to open files, so two threads stand for two processes."""
    decoded = idx.IdxSet.decoded
    monkeypatch.setattr(idx.IdxSet, "decoded", lambda self, paths: (time.sleep(0.3), decoded(self, paths))[1])
    with ThreadPoolExecutor(2) as together:
        sizes = list(together.map(lambda _: len(load("mnist", folder, say=silent).y_train), range(2)))
    assert sizes == [12, 12]
    assert decodings == [1]


def test_fewer_points_than_were_announced_are_a_whole_array(tmp_path):
    """Images that cannot be read leave the array shorter than its header first said."""
    x = np.arange(2 * 3, dtype=np.float32).reshape(2, 3)
    part = cache.Part(1_000_000, (3,), [(x, np.array([4, 5]))], np.float32)
    cache._write_part(tmp_path, "train", part)
    assert np.array_equal(np.load(tmp_path / "x_train.npy"), x)
    assert np.load(tmp_path / "y_train.npy").tolist() == [4, 5]


def test_nothing_kept_is_a_pickle(folder):
    load("mnist", folder, say=silent)
    (target,) = kept(folder)
    assert {path.suffix for path in target.iterdir()} == {".npy", ".json"}
    for path in target.glob("*.npy"):
        np.load(path, allow_pickle=False)
    assert set(json.loads((target / "about.json").read_text())) == {"names", "notes"}
