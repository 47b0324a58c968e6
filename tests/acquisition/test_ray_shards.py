"""Pools in many files on a cluster: the picks of one process, whatever the files."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import balent
from balent import RayEngine, Shards, acquire

pytest.importorskip("ray", reason="the engine of a cluster needs ray: pip install 'balent[ray]'")

LENGTHS = (3000, 1, 2048, 1500)


@pytest.fixture(scope="module")
def engine():
    with RayEngine(workers=2, span_rows=1024) as engine:
        yield engine


@pytest.fixture(scope="module")
def sampled():
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 4)
    predictor = balent.MCDropout(torch.nn.Sequential(*layers))
    return {masks: predictor.sample(20, seed=0, masks=masks) for masks in ("shared", "per-point")}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same points as .npy, and as .parquet with a key, cut in two ways."""
    import pyarrow
    from pyarrow import parquet

    place = tmp_path_factory.mktemp("pools")
    rows = np.random.default_rng(0).standard_normal((sum(LENGTHS), 6)).astype(np.float32)
    ends = np.cumsum((0, *LENGTHS))
    cuts = {"npy": ends, "parquet": ends, "other": np.array([0, 4096, len(rows)])}
    for name, at in cuts.items():
        (place / name).mkdir()
        for i, (a, b) in enumerate(pairwise(at)):
            if name == "npy":
                np.save(place / name / f"{i}.npy", rows[a:b])
            else:
                table = {"x": list(rows[a:b]), "id": [f"p{j}" for j in range(a, b)]}
                parquet.write_table(pyarrow.table(table), place / name / f"{i}.parquet", row_group_size=700)
    return place


def assert_same(one, other):
    assert one.indices.tolist() == other.indices.tolist()
    assert one.scores.tolist() == other.scores.tolist()


@pytest.mark.parametrize("masks", ["shared", "per-point"])
@pytest.mark.parametrize(
    "strategy", ["balentacq", "power:bald", "jitter:bald", "auto", "diverse:bald", "badge", "random"]
)
def test_picks_from_shards_are_those_of_one_process(engine, sampled, folders, strategy, masks):
    pool = Shards.of(folders / "npy")
    assert_same(acquire(sampled[masks], pool, 30, strategy, engine=engine), acquire(sampled[masks], pool, 30, strategy))


@pytest.mark.parametrize("strategy", ["core_mse", "core_log", "batch_bald", "core_set"])
def test_strategies_of_shared_draws_too(engine, sampled, folders, strategy):
    pool = Shards.of(folders / "npy")
    assert_same(
        acquire(sampled["shared"], pool, 30, strategy, engine=engine), acquire(sampled["shared"], pool, 30, strategy)
    )


@pytest.mark.parametrize("strategy", ["bald", "power:bald", "jitter:bald"])
def test_with_a_key_picks_do_not_depend_on_files_nor_on_the_engine(engine, sampled, folders, strategy):
    one, other = (Shards.of(folders / name, column="x", key="id") for name in ("parquet", "other"))
    local = acquire(sampled["per-point"], one, 30, strategy)
    found = acquire(sampled["per-point"], one, 30, strategy, engine=engine)
    again = acquire(sampled["per-point"], other, 30, strategy, engine=engine)
    assert_same(found, local)
    assert one.ids(found.indices) == other.ids(again.indices)


def test_a_manifest_in_another_order_has_the_same_picks(engine, sampled, folders):
    """Files are numbered by their names, not by the order in which they are listed."""
    files = [str(folders / "npy" / f"{i}.npy") for i in (2, 0, 3, 1)]
    for strategy in ("balentacq", "power:bald", "core_mse"):
        local = acquire(sampled["shared"], Shards.of(folders / "npy"), 30, strategy)
        assert_same(acquire(sampled["shared"], Shards.of(files), 30, strategy, engine=engine), local)


def test_a_race_over_shards(engine, sampled, folders):
    pool = Shards.of(folders / "npy")
    local = acquire(sampled["shared"], pool, 30, "bald", draws="auto")
    assert_same(acquire(sampled["shared"], pool, 30, "bald", draws="auto", engine=engine), local)


def test_scores_of_all_points_beside_the_shards(engine, sampled, folders, tmp_path):
    pool = Shards.of(folders / "npy")
    for name, running in {"local": "local", "ray": engine}.items():
        acquire(sampled["shared"], pool, 30, "bald", scores=tmp_path / name, engine=running)
    files = sorted((tmp_path / "local").glob("*.npy"))
    assert len(files) == 4
    assert all(np.array_equal(np.load(file), np.load(tmp_path / "ray" / file.name)) for file in files)


def test_what_cannot_be_read_is_named_or_left_out_and_listed(engine, sampled, folders, tmp_path):
    import shutil

    shutil.copytree(folders / "parquet", tmp_path / "bad")
    file = tmp_path / "bad" / "0.parquet"
    content = bytearray(file.read_bytes())
    content[4:204] = bytes(200)
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"0\.parquet cannot be used"):
        acquire(sampled["shared"], Shards.of(tmp_path / "bad", column="x"), 30, "bald", engine=engine)
    one, other = (Shards.of(tmp_path / "bad", column="x", skip_bad=True) for _ in range(2))
    assert_same(
        acquire(sampled["shared"], one, 30, "bald", engine=engine), acquire(sampled["shared"], other, 30, "bald")
    )
    assert one.skipped
    assert sorted(map(str, one.skipped)) == sorted(map(str, other.skipped))


def test_scores_beside_shards_have_the_blocks_of_one_process_and_list_what_was_left_out(
    engine, sampled, tmp_path, monkeypatch
):
    """Defects: on a cluster the source of unfinished shards had blocks of 1,024 points, whatever fits in memory, and
    forgot which rows had been left out."""
    import pyarrow
    from pyarrow import parquet

    rows = np.random.default_rng(0).standard_normal((3000, 6)).astype(np.float32)
    cells = [None if i == 1500 else row for i, row in enumerate(rows)]
    (tmp_path / "pool").mkdir()
    parquet.write_table(pyarrow.table({"x": cells}), tmp_path / "pool" / "0.parquet", row_group_size=700)
    memory, found, left_out = 1 << 19, {}, {}
    monkeypatch.setattr(engine, "memory", memory)
    for name, running in {"local": "local", "ray": engine}.items():
        pool = Shards.of(tmp_path / "pool", skip_bad=True)
        settings = {"scores": tmp_path / name, "memory": memory, "engine": running}
        found[name] = acquire(sampled["shared"], pool, 30, "bald", **settings)
        left_out[name] = [(entry.first, entry.rows) for entry in pool.skipped]
    assert left_out["ray"] == left_out["local"] == [(1500, 1)]
    assert_same(found["ray"], found["local"])
    one, other = (parquet.read_table(tmp_path / name / "0.parquet") for name in found)
    assert np.array_equal(one["bald"].to_numpy(), other["bald"].to_numpy(), equal_nan=True)
