"""Pools in many files give what the same points give in memory, bit for bit."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers import sharded
from helpers.small import head, seeded
from torch import nn

import balent
from balent import MCDropout, Shards, acquire
from balent.data.damage import Damaged
from balent.data.shards import Span
from balent.data.span_source import hashes

X = np.random.default_rng(0).standard_normal((sharded.ENDS[-1], 6)).astype(np.float32)
STRATEGIES = [
    "balentacq",
    "power:bald",
    "jitter:bald",
    "auto",
    "diverse:entropy",
    "core_mse",
    "batch_bald",
    "badge",
    "random",
]


def network():
    """Of a width at which the last bits of a row depend on its place in a block, so that other blocks are noticed."""
    return seeded(head, nn.ReLU(), width=256, classes=10)


@pytest.fixture(scope="module")
def sampled():
    return MCDropout(network()).sample(20, seed=0)


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    """A folder for each format, with the same points in it."""
    found = {}
    for name, write in sharded.FORMATS.items():
        found[name] = tmp_path_factory.mktemp(name)
        write(found[name], X)
    return found


def same(one, other):
    assert one.indices.tolist() == other.indices.tolist()
    assert torch.equal(one.scores, other.scores)


# ── every format, every strategy ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sharded.FORMATS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_picks_and_scores_are_those_of_an_array_read_in_the_same_blocks(sampled, pools, name, strategy):
    """Bit for bit. `sharded.in_memory` has the positions of the shards, and cuts its blocks where they do."""
    expected = acquire(sampled, sharded.in_memory(X), 10, strategy, seed=3)
    same(acquire(sampled, Shards.of(pools[name]), 10, strategy, seed=3), expected)


@pytest.mark.parametrize("name", sharded.FORMATS)
def test_masks_of_each_point_belong_to_its_position(pools, name):
    own = MCDropout(network()).sample(20, seed=0, masks="per-point")
    expected = acquire(own, sharded.in_memory(X), 10, "bald")
    same(acquire(own, Shards.of(pools[name]), 10, "bald"), expected)


def test_draws_that_are_made_where_they_are_needed_give_the_same_picks(sampled, pools):
    expected = acquire(sampled, sharded.in_memory(X), 10, "bald", draws="auto", with_error=False)
    same(acquire(sampled, Shards.of(pools["parquet"]), 10, "bald", draws="auto"), expected)


@pytest.mark.parametrize("strategy", ["balentacq", "bald", "diverse:entropy"])
def test_shards_of_whole_blocks_are_the_plain_array(sampled, tmp_path, strategy):
    """Shards of 1,024 rows do not move a block, so without noise even the bits are those of the array itself."""
    sharded.npy(tmp_path, X, ends=(0, 1024, 2048, len(X)))
    picks, expected = acquire(sampled, Shards.of(tmp_path), 10, strategy), acquire(sampled, X, 10, strategy)
    assert [(at >> 32) * 1024 + (at & 0xFFFFFFFF) for at in picks.indices.tolist()] == expected.indices.tolist()
    assert torch.equal(picks.scores, expected.scores)


@pytest.mark.parametrize("strategy", ["balentacq", "bald", "diverse:entropy", "core_mse"])
def test_other_shards_are_the_plain_array_up_to_rounding(sampled, pools, strategy):
    picks, expected = acquire(sampled, Shards.of(pools["npy"]), 10, strategy), acquire(sampled, X, 10, strategy)
    rows = [sharded.ENDS[at >> 32] + (at & 0xFFFFFFFF) for at in picks.indices.tolist()]
    assert rows == expected.indices.tolist()
    torch.testing.assert_close(picks.scores, expected.scores, rtol=1e-3, atol=1e-6)  # balentacq is 1/BalEnt near 0


def test_one_shard_is_the_array_itself(sampled, tmp_path):
    """Positions of the first shard are rows, so even noise is that of the array."""
    np.save(tmp_path / "x.npy", X)
    for strategy in STRATEGIES:
        same(acquire(sampled, Shards.of(tmp_path / "x.npy"), 10, strategy), acquire(sampled, X, 10, strategy))


# ── blocks, positions, spans ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sharded.FORMATS)
@pytest.mark.parametrize("points", [1, 7, 256, 1024, 5000])
def test_blocks_are_cut_from_the_start_of_each_shard(pools, name, points):
    for (rows, at), (other, expected) in zip(
        Shards.of(pools[name]).blocks(points), sharded.in_memory(X).blocks(points), strict=True
    ):
        assert torch.equal(at, expected)
        assert np.array_equal(rows, other)


@pytest.mark.parametrize("name", sharded.FORMATS)
def test_points_are_read_again_in_any_order_and_more_than_once(pools, name):
    shards, rows = Shards.of(pools[name]), torch.tensor([2600, 0, 1025, 1024, 1299, 0])
    at = sharded.in_memory(X).positions[rows]
    assert np.array_equal(shards.at(at), X[rows])


def test_a_position_is_a_file_and_a_row(pools):
    shards = Shards.of(pools["npy"])
    assert shards.locate((2 << 32) | 7) == (str(pools["npy"] / "002.npy"), 7)
    assert shards.ids(torch.tensor([(2 << 32) | 7])) == [f"{pools['npy']}/002.npy#7"]
    assert torch.equal(shards.positions, sharded.in_memory(X).positions)
    assert torch.equal(torch.cat(list(shards.pieces())), shards.positions)
    with pytest.raises(ValueError, match="there is no point at position"):
        shards.locate(1 << 32)  # the second shard is empty


@pytest.mark.parametrize("name", sharded.FORMATS)
def test_blocks_of_spans_are_those_of_a_whole_pass(pools, name):
    """In spans of 1,024 rows, whose sources are pickled as for a worker elsewhere."""
    shards = Shards.of(pools[name])
    spans = shards.spans(1024)
    assert spans[:3] == [Span(0, 0, 1024), Span(0, 1024, 1), Span(2, 0, 275)]
    parts = [pickle.loads(pickle.dumps(shards.part(span))) for span in spans]
    found = [block for part in parts for block in part.blocks(256)]
    for (rows, at), (other, expected) in zip(found, shards.blocks(256), strict=True):
        assert torch.equal(at, expected)
        assert np.array_equal(rows, other)
    assert [part.size for part in parts] == [span.rows for span in spans]


def test_a_part_refuses_points_of_others(pools):
    part = Shards.of(pools["npy"]).part(Span(0, 0, 10))
    with pytest.raises(ValueError, match=r"must be those of rows 0 to 9 of .*000.npy \(shard 0\)"):
        part.at(torch.tensor([10]))


SCAN = """
import sys, torch
from torch import nn
from balent import MCDropout, Shards, acquire

def refuse(self):
    raise AssertionError("800 MB for 10⁸ points")

Shards.positions = property(refuse)
torch.manual_seed(0)
sampled = MCDropout(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))).sample(10, seed=0)
for strategy in ("bald", "power:bald", "jitter:bald", "auto", "core_mse", "random", "batch_bald", "diverse:bald"):
    acquire(sampled, Shards.of(sys.argv[1]), 5, strategy)
"""


def test_no_strategy_makes_the_positions_of_all_points(pools):
    """In a process of its own: checks of types, here, look at every attribute."""
    subprocess.run([sys.executable, "-c", SCAN, str(pools["npy"])], check=True)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("masks", ["shared", "per-point"])
@pytest.mark.parametrize("strategy", ["bald", "power:bald", "jitter:bald", "auto", "badge", "random", "batch_bald"])
def test_with_keys_picks_survive_another_cut_into_shards(pools, tmp_path, strategy, masks):
    if masks == "per-point" and strategy == "batch_bald":
        pytest.skip("needs shared masks")
    own = MCDropout(network()).sample(20, seed=0, masks=masks)
    order = np.random.default_rng(1).permutation(len(X))
    names = np.array(sharded.keys(len(X)))[order].tolist()
    for i, part in enumerate(np.array_split(np.arange(len(X)), 5)):
        table = sharded.lists(X[order][part], [names[j] for j in part])
        sharded.parquet.write_table(table, tmp_path / f"{i}.parquet", row_group_size=77)
    one, other = Shards.of(pools["parquet"], key="id"), Shards.of(tmp_path, key="id")
    a, b = acquire(own, one, 10, strategy), acquire(own, other, 10, strategy)
    assert one.ids(a.indices) == other.ids(b.indices)
    torch.testing.assert_close(a.scores, b.scores, rtol=1e-5, atol=1e-8)  # other blocks round otherwise


def test_keys_are_hashes_and_ids_are_the_keys(pools):
    shards, names = Shards.of(pools["parquet"], key="id"), sharded.keys(len(X))
    at = shards.positions[[0, 1300, 5]]
    assert shards.ids(at) == [names[0], names[1300], names[5]]
    assert shards.keys(at).tolist() == hashes([names[0], names[1300], names[5]]).tolist()
    assert torch.equal(Shards.of(pools["parquet"]).keys(at), at)


def test_keyed_noise_is_that_of_the_same_points_in_memory(sampled, pools):
    known = sharded.in_memory(X, names=torch.from_numpy(hashes(sharded.keys(len(X)))))
    for strategy in ("power:bald", "jitter:bald", "random", "badge"):
        same(acquire(sampled, Shards.of(pools["hub"], key="id"), 10, strategy), acquire(sampled, known, 10, strategy))


def test_names_in_an_archive_are_its_keys(pools):
    shards = Shards.of(pools["tar"], key="__key__")
    assert shards.ids(shards.positions[[7]]) == [sharded.keys(len(X))[7]]


# ── what is given ────────────────────────────────────────────────────────────────────────────────


def test_the_order_of_listing_does_not_matter(pools):
    files = sorted(str(path) for path in pools["npy"].iterdir())
    expected = Shards.of(pools["npy"]).shards
    assert Shards.of(files[::-1]).shards == Shards.of(f"{pools['npy']}/*.npy").shards == expected


def test_a_manifest_is_continued_when_shards_are_added(pools, tmp_path):
    saved, files = tmp_path / "pool.jsonl", sorted(pools["npy"].iterdir())
    first = Shards.of(files[2:], manifest=saved)
    second = Shards.of(files[::-1], manifest=saved)
    assert second.shards[:2] == first.shards
    assert [shard.path for shard in second.shards] == [str(files[i]) for i in (2, 3, 0, 1)]
    assert Shards.of(files, manifest=saved).shards == second.shards
    assert np.array_equal(second.at(torch.tensor([5])), X[1030:1031])


def test_a_shard_that_left_the_manifest_is_named(pools, tmp_path):
    saved, files = tmp_path / "pool.jsonl", sorted(pools["npy"].iterdir())
    Shards.of(files, manifest=saved)
    with pytest.raises(
        ValueError, match=r"000.npy cannot be used from row 0: it is listed in .*pool.jsonl, but is not"
    ):
        Shards.of(files[1:], manifest=saved)
    left = Shards.of(files[1:], manifest=saved, skip_bad=True)
    assert left.size == len(X) - 1025
    assert [entry.rows for entry in left.skipped] == [1025]


@pytest.mark.parametrize(
    ("column", "expected"), [("c1", X[:, 1:2]), ("c4,c0", X[:, [4, 0]]), (None, X)], ids=["one", "two", "all"]
)
def test_columns_of_numbers_stand_side_by_side(pools, column, expected):
    shards = Shards.of(pools["columns"], column=column)
    assert np.array_equal(np.concatenate([rows for rows, _ in shards.blocks(1000)]), expected)


def test_lists_in_lists_have_an_axis_each(tmp_path):
    cube = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    table = sharded.pa.table({"x": cube.tolist()})
    sharded.parquet.write_table(table, tmp_path / "x.parquet")
    assert np.array_equal(Shards.of(tmp_path).at(torch.tensor([1, 0])), cube[::-1])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"column": "z"}, "has no column 'z', which column= names"),
        ({"key": "idd"}, "has no column 'idd', which key= names; did you mean id?"),
    ],
)
def test_a_column_that_is_not_there_is_answered_with_those_that_are(pools, settings, words):
    with pytest.raises(ValueError, match=words):
        Shards.of(pools["parquet"], **settings)


def test_what_are_no_shards_is_said(tmp_path, pools):
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no shards; they end in \.npy, \.parquet"):
        Shards.of(tmp_path / "a")
    np.save(tmp_path / "a" / "x.npy", X)
    (tmp_path / "a" / "x.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match="shards must be of one kind"):
        Shards.of(tmp_path / "a")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Shards.of(tmp_path / "no.npy")
    with pytest.raises(ValueError, match="is given twice"):
        Shards.of([pools["npy"] / "000.npy", pools["npy"] / "000.npy"])


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def damaged(tmp_path):
    """Parquet shards, the third of which has a row group that cannot be decoded: rows 300 to 599."""
    sharded.tables(tmp_path, X, ends=(0, 1000, 1000, 2601))
    path = tmp_path / "002.parquet"
    about = sharded.parquet.ParquetFile(path).metadata.row_group(1)
    start = about.column(1).dictionary_page_offset or about.column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    return tmp_path


def test_a_damaged_row_group_is_named_with_its_row(sampled, damaged):
    with pytest.raises(ValueError, match=r"002.parquet cannot be used from row 300: row group 1 cannot be decoded"):
        acquire(sampled, Shards.of(damaged), 5, "bald")


@pytest.mark.parametrize("strategy", ["bald", "power:bald", "auto", "core_mse", "badge"])
def test_without_what_cannot_be_read_picks_are_those_of_the_rest(sampled, damaged, strategy):
    """Also where random points are read before the damage was seen."""
    shards = Shards.of(damaged, skip_bad=True)
    there = np.r_[0:1300, 1600:2601]
    whole = sharded.in_memory(X, ends=(0, 1000, 1000, 2601))
    expected = acquire(sampled, sharded.InMemory(X[there], whole.positions[there]), 8, strategy)
    same(acquire(sampled, shards, 8, strategy), expected)
    assert [(entry.first, entry.rows) for entry in shards.skipped] == [(300, 300)]
    assert shards.size == 2301


def test_a_shard_that_is_cut_off_is_named(tmp_path):
    sharded.npy(tmp_path, X)
    content = (tmp_path / "002.npy").read_bytes()
    (tmp_path / "002.npy").write_bytes(content[:-4])
    with pytest.raises(ValueError, match=r"002.npy cannot be used from row 0: .*is truncated"):
        Shards.of(tmp_path)
    shards = Shards.of(tmp_path, skip_bad=True)
    assert shards.size == len(X) - 275
    assert [entry.path for entry in shards.skipped] == [str(tmp_path / "002.npy")]


def test_a_shard_that_changes_during_the_run_is_named(tmp_path):
    sharded.npy(tmp_path, X)
    shards = Shards.of(tmp_path)
    np.save(tmp_path / "000.npy", X[:1000])
    with pytest.raises(Damaged, match=r"000.npy cannot be used from row 0: it has .* bytes instead of"):
        list(shards.blocks(100))


def test_rows_that_differ_from_the_manifest_are_named(tmp_path):
    """Row counts are checked again when a shard is read, whatever its size and time say."""
    sharded.npy(tmp_path, X)
    shards = Shards.of(tmp_path)
    lied = Shards(tuple(balent.data.shards.replace(shard, rows=shard.rows + 1) for shard in shards.shards))
    with pytest.raises(
        Damaged, match=r"000.npy cannot be used from row 0: it has 1,025 rows, but the manifest has 1,026"
    ):
        next(lied.blocks(100))


def test_an_empty_cell_is_named_with_its_row(tmp_path):
    cells = [[1.0, 2.0]] * 5 + [None] + [[1.0, 2.0, 3.0]] + [[1.0, None]]
    sharded.parquet.write_table(sharded.pa.table({"x": cells}), tmp_path / "x.parquet", row_group_size=3)
    with pytest.raises(Damaged, match="cannot be used from row 5: column 'x' is empty"):
        list(Shards.of(tmp_path).blocks(10))
    shards = Shards.of(tmp_path, skip_bad=True)
    [(_, at)] = shards.blocks(10)
    assert at.tolist() == [0, 1, 2, 3, 4]
    assert sorted((entry.first, entry.rows) for entry in shards.skipped) == [(5, 1), (6, 1), (7, 1)]
