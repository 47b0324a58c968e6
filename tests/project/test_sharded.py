"""Projects whose items are rows of features in shards: the same words as `balent acquire` takes for a pool."""

import fsspec
import numpy as np
import pytest
from helpers import sharded

from balent.project.project import Project
from balent.project.sharded import Sharded

GROUPS = np.repeat([0, 1], 20)
X = (np.random.default_rng(0).standard_normal((40, 5)) + 4 * GROUPS[:, None]).astype(np.float32)
ENDS = (0, 15, 15, 40)
NAMES = sharded.keys(40)


@pytest.fixture
def pool(tmp_path):
    folder = tmp_path / "pool"
    folder.mkdir()
    return folder


def labelled(project, rows):
    project.tell({id: ("low", "high")[GROUPS[row]] for row, id in rows.items()})
    return project


@pytest.mark.parametrize("kind", sharded.FORMATS)
def test_every_row_of_every_shard_is_an_item(pool, kind):
    sharded.FORMATS[kind](pool, X, ENDS)
    items = Sharded(str(pool))
    ids = [found.id for found in items.found()]
    suffix = next(pool.glob("000.*")).suffix
    assert ids == [f"000{suffix}#{i}" for i in range(15)] + [f"002{suffix}#{i}" for i in range(25)]
    assert np.array_equal(np.stack([items.content(id) for id in ids]), X)
    assert len({found.fingerprint() for found in items.found()}) == 40


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_project_over_shards_asks_learns_and_predicts(pool, tmp_path, kind):
    sharded.FORMATS[kind](pool, X, ENDS)
    key = "id" if kind == "parquet" else ""
    project = Project.create(tmp_path / "p", pool, classes=["low", "high"], id=key, audit=0)
    assert project.settings.kind == "features"
    ids = NAMES if key else [f"{'000' if i < 15 else '002'}.npy#{i if i < 15 else i - 15}" for i in range(40)]
    labelled(project, {i: ids[i] for i in (0, 5, 10, 30, 35, 39)})
    assert {item.id for item in project.ask(4)} <= set(ids)
    found = {line.id: line.label for line in Project(tmp_path / "p").predict()}
    assert [found[id] for id in ids] == [("low", "high")[group] for group in GROUPS]


def test_labels_stay_when_rows_move_to_other_shards(pool, tmp_path):
    """By the key, and without one by the content."""
    sharded.tables(pool, X, ENDS)
    projects = [Project.create(tmp_path / f"p{key}", pool, classes=["low", "high"], id=key) for key in ("id", "")]
    labelled(projects[0], {30: NAMES[30]})
    labelled(projects[1], {30: "002.parquet#15"})
    for file in pool.iterdir():
        file.unlink()
    sharded.tables(pool, X, (0, 25, 40))
    for project, id in zip(projects, (NAMES[30], "001.parquet#5"), strict=True):
        project.refresh()
        assert [project.items[number].id for number in project.state.last] == [id]


def test_patterns_and_object_storage_are_sources_too(pool, tmp_path):
    sharded.npy(pool, X, ENDS)
    files = fsspec.filesystem("memory")
    for path in pool.iterdir():
        files.pipe_file(f"/sharded-project/{path.name}", path.read_bytes())
    try:
        for i, words in enumerate([f"{pool}/00[02].npy", "memory://sharded-project"]):
            Project.create(tmp_path / f"p{i}", words, classes=["low", "high"])
            project = Project(tmp_path / f"p{i}")
            assert len(project.items.present()) == 40
            assert project.ask(1)
    finally:
        files.rm("/sharded-project", recursive=True)


def test_rows_that_cannot_be_read_are_skipped_with_a_reason(pool):
    cells = [row.tolist() for row in X]
    cells[7] = None
    sharded.parquet.write_table(sharded.pa.table({"x": cells}), pool / "0.parquet", row_group_size=10)
    items = Sharded(str(pool))
    ids = [found.id for found in items.found()]
    assert ids == [f"0.parquet#{i}" for i in range(40) if i != 7]
    assert list(items.skipped) == ["0.parquet#7"]
    assert "is empty" in items.skipped["0.parquet#7"]
    assert np.array_equal(items.content("0.parquet#39"), X[39])


def test_keys_that_are_not_unique_and_rows_that_are_no_features_are_refused(pool):
    sharded.parquet.write_table(sharded.lists(X[:3], ["a", "b", "a"]), pool / "0.parquet")
    with pytest.raises(ValueError, match=r"ids must be unique, but 'a' is that of row 0 of .* and of row 2 of"):
        list(Sharded(str(pool), "id").found())
    np.save(pool / "1.npy", np.zeros((2, 3, 4, 4), np.uint8))
    with pytest.raises(ValueError, match=r"are uint8 of shape \[3, 4, 4\] each; of images .*balent embed"):
        list(Sharded(str(pool / "1.npy")).found())


@pytest.mark.slow
def test_a_project_asks_the_same_items_whatever_its_engine(pool, tmp_path):
    pytest.importorskip("ray", reason="the engine of a cluster needs ray: pip install 'balent[ray]'")
    sharded.npy(pool, X, ENDS)
    asked = []
    for engine in ("local", "ray"):
        settings = {"classes": ["low", "high"], "engine": engine, "strategy": "balentacq", "audit": 0}
        project = Project.create(tmp_path / engine, pool, **settings)
        labelled(project, {0: "000.npy#0", 39: "002.npy#24", 20: "002.npy#5"})
        asked.append([item.id for item in project.ask(5)])
    assert asked[0] == asked[1]
