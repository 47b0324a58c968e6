"""The engine of a cluster: picks and scores are those of one process, bit for bit."""

import contextlib
import copy
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.spanned import NpyFiles

import balent
from balent import RayEngine, acquire
from balent.acquisition import loading
from balent.acquisition.engines import cluster
from balent.acquisition.engines.cluster import check_room, places
from balent.acquisition.engines.likeness import Likeness, Refused
from balent.acquisition.engines.mapped_pool import portable
from balent.acquisition.engines.span_worker import Work, Worker
from balent.data.pool import Indexed, Subset

pytest.importorskip("ray", reason="the engine of a cluster needs ray: pip install 'balent[ray]'")

POINTS, WIDTH = 5 * 1024 + 1, 6  # the last span has one row
SPANS = 1024


@pytest.fixture(scope="module")
def engine():
    said = []
    with RayEngine(workers=2, span_rows=SPANS, say=said.append) as engine:
        yield engine
    assert said == []


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((POINTS, WIDTH)).astype(np.float32) * 2


@pytest.fixture(scope="module")
def predictor():
    torch.manual_seed(0)
    layers = torch.nn.Linear(WIDTH, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 4)
    return balent.MCDropout(torch.nn.Sequential(*layers))


def assert_same(one, other):
    assert one.indices.tolist() == other.indices.tolist()
    assert one.scores.tolist() == other.scores.tolist()


EVERY = [
    *("balentacq", "random", "power:bald", "jitter:balentacq", "diverse:bald", "auto", "herding", "batch_bald"),
    *("core_mse", "core_mse(reference=1500)", "core_log", "badge", "core_set", "cluster_margin", "seals:balentacq"),
]
SHARED = ("batch_bald", "core_mse", "core_log")  # which compare points through their draws
OWN = [name for name in EVERY if not name.startswith(SHARED)]  # with masks per point too


@pytest.mark.parametrize("strategy", EVERY)
def test_picks_and_scores_of_every_strategy_are_those_of_one_process(engine, predictor, rows, strategy):
    sampled = predictor.sample(20, seed=0)
    labelled = rows[:50] + 1
    local = acquire(sampled, rows, 40, strategy, labelled=labelled)
    assert_same(acquire(sampled, rows, 40, strategy, labelled=labelled, engine=engine), local)


@pytest.mark.parametrize("strategy", OWN)
def test_masks_per_point_belong_to_points_wherever_they_are_scored(engine, predictor, rows, strategy):
    sampled = predictor.sample(20, seed=0, masks="per-point")
    local = acquire(sampled, rows, 40, strategy, labelled=rows[:50] + 1)
    assert_same(acquire(sampled, rows, 40, strategy, labelled=rows[:50] + 1, engine=engine), local)


@pytest.mark.parametrize("masks", ["shared", "per-point"])
def test_a_race_takes_the_same_draws_and_picks(engine, predictor, rows, masks):
    """Stages after the first read many points again, on the workers."""
    sampled = predictor.sample(60, seed=0, masks=masks)
    local = acquire(sampled, rows, 40, "bald", draws="auto")
    found = acquire(sampled, rows, 40, "bald", draws="auto", engine=engine)
    assert_same(found, local)
    assert (found.draws, found.confidence) == (local.draws, local.confidence)


def test_errors_stability_and_the_file_of_scores_are_the_same(engine, predictor, rows, tmp_path):
    sampled, found = predictor.sample(20, seed=0), {}
    for name, running in {"local": "local", "ray": engine}.items():
        file = tmp_path / f"{name}.npy"
        settings = {"with_error": True, "measures": ["entropy"], "scores": file}
        found[name] = acquire(sampled, rows, 40, "bald", engine=running, **settings), np.load(file)
    (local, all_local), (ray, all_ray) = found["local"], found["ray"]
    assert_same(ray, local)
    assert (ray.stability, ray.errors.tolist()) == (local.stability, local.errors.tolist())
    assert np.array_equal(all_local, all_ray)
    assert all_ray.shape == (POINTS, 2)


def test_files_give_the_picks_of_one_process(engine, predictor, rows, tmp_path):
    """Workers open the files themselves; one file has a single row."""
    sampled = predictor.sample(20, seed=0)
    files = NpyFiles.written(tmp_path, rows, 2560)
    for strategy in ("bald", "herding", "core_mse", "badge"):
        assert_same(acquire(sampled, files, 40, strategy, engine=engine), acquire(sampled, files, 40, strategy))


def test_other_kinds_of_pools_are_sent_to_workers_too(engine, predictor, rows):
    sampled = predictor.sample(20, seed=0)
    local = acquire(sampled, rows, 40, "bald")
    left = Subset(Indexed(torch.from_numpy(rows)), torch.arange(0, POINTS, 2))
    assert_same(acquire(sampled, torch.from_numpy(rows), 40, "bald", engine=engine), local)
    assert_same(acquire(sampled, list(rows), 40, "bald", engine=engine), local)
    assert_same(acquire(sampled, left, 40, "bald", engine=engine), acquire(sampled, left, 40, "bald"))


def test_an_array_that_is_mapped_is_mapped_by_workers_and_not_sent(engine, predictor, rows, tmp_path):
    sampled, path = predictor.sample(20, seed=0), tmp_path / "rows.npy"
    np.save(path, rows)
    mapped = np.load(path, mmap_mode="r")
    left = Subset(Indexed(mapped), torch.arange(0, POINTS, 3))
    for pool in (Indexed(mapped), left):
        assert len(pickle.dumps(portable(pool))) < len(pickle.dumps(left.positions)) + 2000
        assert np.array_equal(portable(pool).opened().at(left.positions), left.at(left.positions))
        assert_same(acquire(sampled, pool, 40, "bald", engine=engine), acquire(sampled, pool, 40, "bald"))
    assert portable(Indexed(mapped[5:])).source is not mapped  # does not know where in the file it begins
    sent = portable(Indexed(mapped))
    np.save(path, rows[1:])
    with pytest.raises(FileNotFoundError, match=r"rows.npy, which a worker does not have as it is here"):
        sent.opened()


def test_models_and_measures_from_a_file_go_with_their_code(engine, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    sampled = loading.sampled("mine.py:net", "20", "mine.py:spread", seed=0, masks="shared", design="independent")
    local = acquire(sampled, rows, 40, "mine.py:spread")
    assert_same(acquire(sampled, rows, 40, "mine.py:spread", engine=engine), local)


MINE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = torch.nn.Linear(6, 9), torch.nn.Dropout(0.3), torch.nn.Linear(9, 4)

    def forward(self, x):
        return self.last(self.drop(self.first(x)))

def net():
    torch.manual_seed(0)
    return Net()

def spread(m):
    return m.var.sum(-1)
"""


def test_a_learner_asks_the_same_points_with_either_engine(engine, predictor, rows):
    def asked(engine):
        learner = balent.Learner(copy.deepcopy(predictor), rows[:3000], "bald", draws=20, engine=engine)
        learner.tell(range(60), np.arange(60) % 4)
        return learner.ask(20)

    assert_same(asked(engine), asked("local"))


def test_a_stream_is_refused_in_a_sentence(engine, predictor, rows):
    with pytest.raises(TypeError, match=r"engine='ray' needs a pool that workers can read in parts.*Stream"):
        acquire(predictor.sample(20, seed=0), iter([rows]), 40, "bald", engine=engine)


def test_an_error_on_a_worker_is_the_error_of_one_process(engine, predictor, rows):
    broken = rows.copy()
    broken[3000] = np.nan
    sampled, found = predictor.sample(20, seed=0), []
    for running in ("local", engine):
        with pytest.raises(ValueError, match="3000") as caught:
            acquire(sampled, broken, 40, "bald", engine=running)
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert caught.value.__notes__ == ["in span 2 of 6, range(2048, 3072)"]


def test_workers_stay_from_one_call_to_the_next(engine, predictor, rows):
    sampled, found = predictor.sample(5, seed=0), []
    for _ in range(2):
        acquire(sampled, rows, 3, "bald", engine=engine)
        found.append(list(engine._crew.workers))
    assert found[0] == found[1]


def test_nothing_is_left_of_a_cluster_that_was_made_here(tmp_path):
    """In a process of its own, since this one has a cluster already. Ray keeps a folder for each unless told not to."""
    script = tmp_path / "once.py"
    script.write_text(ONCE)
    folder = Path(subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.strip())
    assert folder.name.startswith("session_")
    assert not folder.exists()
    deadline = time.monotonic() + 30
    while (left := processes(folder.name)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


ONCE = """
import numpy as np, torch, balent
from balent.acquisition.engines import RayEngine

if __name__ == "__main__":
    sampled = balent.MCDropout(torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 2))).sample(5, seed=0)
    with RayEngine(workers=1) as engine:
        balent.acquire(sampled, np.ones((9, 3), np.float32), 2, "bald", engine=engine)
        print(engine._cluster.folder)
"""


def processes(word):
    """Command lines with this word."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if word in line]


def test_points_are_counted_as_spans_are_done(engine, predictor, rows):
    seen = []
    acquire(predictor.sample(5, seed=0), rows, 3, "bald", engine=engine, progress=lambda *n: seen.append(n))
    assert len(seen) == 6
    assert seen[-1] == (POINTS, POINTS)


@pytest.mark.parametrize("rows", [0, 1000, 1025, -1024])
def test_spans_that_would_cut_blocks_are_refused(rows):
    with pytest.raises(ValueError, match=f"span_rows must be a multiple of 1,024.*but is {rows:,}"):
        RayEngine(span_rows=rows)


def test_more_workers_than_there_is_room_for_are_refused():
    assert places([8.0, 4.0, 0.5], threads=4) == 3
    with pytest.raises(ValueError, match=r"room for 3 workers of 4 threads, .* but 5 are wanted"):
        check_room(5, 3, 4)
    with pytest.raises(ValueError, match="at least one worker, but workers is 0"):
        check_room(0, 3, 4)


def test_a_cluster_without_room_is_not_waited_for_in_silence(engine, predictor, rows, monkeypatch):
    acquire(predictor.sample(5, seed=0), rows, 3, "bald", engine=engine)  # its workers have all CPUs
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    said, waiting = [], engine._cluster.workers(1)
    cluster.awaited(waiting, said.append)
    cluster.end(waiting)
    assert len(said) == 1
    assert said[0].startswith("no worker has started in 0 s: the CPUs of the cluster are taken")


def test_a_worker_that_would_change_bits_is_refused(rows):
    here = Likeness.here()
    other = replace(here, kernel="avx9", torch="1.0")
    worker = Worker(other, fetch=lambda reference: reference)
    with pytest.raises(Refused, match=rf"not used.*kernel {here.kernel} instead of avx9, torch .* instead of 1.0"):
        worker.fold(Work(None, Indexed(rows), None, 256), range(9))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("span_rows", [1024, 16_384, 65_536])
def test_neither_spans_nor_workers_change_a_bit(predictor, workers, span_rows):
    """131,073 points, so that the last span has one row whatever the size of spans."""
    rows = np.random.default_rng(1).standard_normal((2 * 65_536 + 1, WIDTH)).astype(np.float32) * 2
    shared, own = (predictor.sample(20, seed=0, masks=masks) for masks in ("shared", "per-point"))
    with RayEngine(workers=workers, span_rows=span_rows) as engine:
        for sampled, strategy in [*((shared, name) for name in EVERY), *((own, name) for name in OWN)]:
            found = acquire(sampled, rows, 40, strategy, labelled=rows[:50] + 1, engine=engine)
            assert_same(found, once(sampled, rows, strategy))
        for sampled in (shared, own):
            local = acquire(sampled, rows, 40, "bald", draws="auto")
            assert_same(acquire(sampled, rows, 40, "bald", draws="auto", engine=engine), local)


LOCAL = {}


def once(sampled, rows, strategy):
    """The picks of one process."""
    key = strategy, sampled.traits.shared
    if key not in LOCAL:
        LOCAL[key] = acquire(sampled, rows, 40, strategy, labelled=rows[:50] + 1)
    return LOCAL[key]
