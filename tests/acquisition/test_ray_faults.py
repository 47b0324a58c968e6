"""Workers, machines and the process itself die: the picks stay the same, and little is done twice."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.faults import ROWS, Slow, Traced

from balent import RayEngine, acquire
from balent.acquisition.engines.span_journal import SpanJournal, digest
from balent.acquisition.engines.span_worker import Done
from balent.data.pool import Indexed

SPANS = ROWS // 1024


@pytest.fixture
def files(tmp_path):
    rows = np.zeros((ROWS, 1), dtype=np.float32)
    pool = tmp_path / "pool"
    pool.mkdir()
    written = Traced.written(pool, rows, ROWS)
    return Traced(written.paths, written.lengths, str(tmp_path / "trace"))


def assert_same(one, other):
    assert one.indices.tolist() == other.indices.tolist()
    assert one.scores.tolist() == other.scores.tolist()


def repeated(files):
    return len(files.begun()) - SPANS


# ── the journal ──────────────────────────────────────────────────────────────────────────────────


def test_finished_jobs_are_kept_and_a_torn_line_or_file_is_not(tmp_path):
    journal = SpanJournal.of(tmp_path, "a pass")
    for number in range(3):
        journal.add(number, Done({"x": np.arange(number + 2)}, 10 + number, "me"))
    assert journal.finished() == {0: 10, 1: 11, 2: 12}
    assert journal.load(1, 11).result["x"].tolist() == [0, 1, 2]
    file = next(journal.folder.glob("*1.safetensors"))
    file.write_bytes(file.read_bytes()[:-1])
    with (journal.folder / "done.jsonl").open("a") as lines:
        lines.write('{"job": 3, "poi')
    assert SpanJournal.of(tmp_path, "a pass").finished() == {0: 10, 2: 12}
    journal.add(1, Done({"x": np.arange(3)}, 11, "me"))  # after a torn line
    assert set(journal.finished()) >= {0, 2}
    assert SpanJournal.of(tmp_path, "another").finished() == {}


def test_a_job_that_left_out_rows_is_not_kept(tmp_path):
    """It is done again, and lists them again."""
    journal = SpanJournal.of(tmp_path, "a pass")
    journal.add(0, Done({"x": np.arange(3)}, 10, "me", skipped=("row 7",)))
    assert journal.finished() == {}


def test_a_pass_is_named_after_all_that_it_depends_on():
    array = np.zeros((1000, 3), np.float32)
    same, changed = array.copy(), array.copy()
    changed[500] = 1
    assert digest([Indexed(array)]) == digest([Indexed(same)])
    assert digest([Indexed(array)]) != digest([Indexed(array[:999])])
    assert digest([print, object()]) == digest([print, object()])  # addresses do not count
    assert digest([1, 2]) != digest([12])
    assert digest([{"x": torch.zeros(2)}]) != digest([{"x": torch.ones(2)}])


# ── processes die ────────────────────────────────────────────────────────────────────────────────

ray = pytest.importorskip("ray", reason="the engine of a cluster needs ray: pip install 'balent[ray]'")


def test_a_finished_journal_answers_without_any_worker(files, tmp_path):
    local, journal = acquire(Slow(0), files, 20, "bald"), tmp_path / "journal"
    with RayEngine(workers=1, span_rows=1024, journal=journal) as engine:
        assert_same(acquire(Slow(0), files, 20, "bald", engine=engine), local)
    begun = len(files.begun())
    again = RayEngine(span_rows=1024, journal=journal)
    assert_same(acquire(Slow(0), files, 20, "bald", engine=again), local)
    assert again._cluster is None
    assert len(files.begun()) == begun + 1  # the first block stands for the model


def test_a_worker_that_is_killed_costs_two_spans_at_most(files):
    local, said, killed = acquire(Slow(), files, 20, "bald"), [], []

    def kill(points):
        if not killed:
            killed.append(files.begun()[0][0])
            os.kill(killed[0], signal.SIGKILL)

    with RayEngine(workers=2, span_rows=1024, count=kill, say=said.append) as engine:
        assert_same(acquire(Slow(), files, 20, "bald", engine=engine), local)
    assert killed
    assert 1 <= len(said) <= 2
    assert all("is done again" in line for line in said)
    assert 0 <= repeated(files) <= 2


@pytest.mark.slow
def test_a_span_that_ends_every_worker_is_an_error_and_not_for_ever(files):
    class Deadly(Slow):
        def moments(self, batch, positions=None):
            if int(positions[0]) & 0xFFFFFFFF == 3 * 1024 and files.begun():
                os.kill(os.getpid(), signal.SIGKILL)
            return super().moments(batch, positions)

    with (
        RayEngine(workers=1, span_rows=1024, say=lambda _: None) as engine,
        pytest.raises(RuntimeError, match=r"span 3 of 12.* ended its worker 5 times.*smaller spans"),
    ):
        acquire(Deadly(0), files, 20, "bald", engine=engine)


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_from_its_journal(files, tmp_path):
    journal, pool = tmp_path / "journal", Path(files.paths[0]).parent
    command = [sys.executable, "-m", "helpers.faults", str(pool), files.trace, str(journal), "2"]
    settings = {"cwd": Path(__file__).parents[1], "text": True, "env": os.environ | {"OMP_NUM_THREADS": "1"}}
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, **settings)
    while not any(len(lines.read_text().splitlines()) > 4 for lines in journal.glob("*/done.jsonl")):
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.wait()
    time.sleep(3)  # workers notice, and end
    kept = max(len(list(folder.glob("*.safetensors"))) for folder in journal.iterdir())
    assert 4 < kept < SPANS
    second = subprocess.run(command, capture_output=True, check=True, **settings)
    local = acquire(Slow(), files, 20, "bald")
    scores = [score.hex() for score in local.scores.tolist()]
    assert second.stdout.splitlines()[-1] == f"picks {local.indices.tolist()} {scores}"
    assert repeated(files) <= 2 * 2 + 2  # two per worker; each process tries the first block
    for folder in Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray").glob(f"session_*_{first.pid}"):
        shutil.rmtree(folder, ignore_errors=True)  # a process that is killed cannot do it


@pytest.mark.slow
def test_a_machine_that_dies_costs_two_spans_per_worker_at_most(files):
    """Two machines with a worker each; one of them is gone in the middle, and there is no room for its worker."""
    from ray.cluster_utils import Cluster

    local, said, slow = acquire(Slow(), files, 20, "bald"), [], Slow(3)  # a machine takes a while to die
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        _, other = (cluster.add_node(num_cpus=1) for _ in range(2))
        done = []

        def kill(points):
            done.append(points)
            if len(done) == 2:
                for process in other.all_processes["raylet"]:
                    os.kill(process.process.pid, signal.SIGKILL)

        with RayEngine(cluster.address, workers=2, span_rows=1024, count=kill, say=said.append) as engine:
            assert_same(acquire(slow, files, 20, "bald", engine=engine), local)
        assert len({process for process, _ in files.begun()}) == 2
        assert 1 <= len(said) <= 2
        assert repeated(files) <= 2
    finally:
        folder = Path(cluster.head_node.get_session_dir_path())
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
