"""The engine of one process: every point is folded once, whatever fits in memory."""

from dataclasses import dataclass, field
from functools import partial

import pytest
import torch
from helpers.examples import probabilities

from balent import Draws
from balent.acquisition.engines.local import Local, halved, tried
from balent.data.pool import Indexed, Stream
from balent.types import Engine, Fold

POINTS = 50
SAMPLED = Draws(probabilities(POINTS, 8, 3))
SOURCE = Indexed(torch.arange(POINTS))
NARROW = 5_000  # bytes: some points per block
OUT_OF_MEMORY = {
    "of Python": MemoryError(),
    "of a device": torch.OutOfMemoryError("CUDA out of memory"),
    "of the CPU": RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate"),
}


@dataclass
class Seen:
    """A fold of positions. It takes blocks of at most `most` points, and fails before it changes."""

    most: int = POINTS
    error: Exception = field(default_factory=MemoryError)
    positions: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)

    def add(self, sampled, batch, positions):
        assert torch.as_tensor(batch).tolist() == positions.tolist()
        if len(positions) > self.most:
            raise self.error
        self.positions += positions.tolist()
        self.blocks.append(len(positions))

    def merge(self, other):
        return Seen(self.most, self.error, self.positions + other.positions, self.blocks + other.blocks)


def mean(sampled, batch, positions):
    return sampled.moments(batch, positions).mean


def test_it_is_an_engine_and_runs_folds():
    assert isinstance(Local(), Engine)
    assert isinstance(Seen(), Fold)


# ── scan ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("memory", [1, NARROW, 1 << 27])
def test_a_scan_folds_every_point_once_and_in_order(memory):
    fold = Seen()
    assert Local(memory).scan(SAMPLED, SOURCE, fold) is fold
    assert fold.positions == list(range(POINTS))
    assert max(fold.blocks) == 1 or memory > 1


@pytest.mark.parametrize("error", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY)
@pytest.mark.parametrize("most", [1, 3, 20, 49])
def test_a_block_that_does_not_fit_is_halved_and_no_point_is_added_twice(most, error):
    counted = []
    fold = Local(count=counted.append).scan(SAMPLED, SOURCE, Seen(most, error))
    assert fold.positions == list(range(POINTS))
    assert max(fold.blocks) <= most
    assert sum(counted) == POINTS


@pytest.mark.parametrize("error", [*OUT_OF_MEMORY.values(), ValueError("broken")], ids=repr)
def test_one_point_that_does_not_fit_is_an_error(error):
    with pytest.raises(type(error)):
        halved(partial(Seen(0, error).add, SAMPLED), torch.tensor([4]), torch.tensor([4]))


def test_an_error_of_another_kind_is_not_tried_again():
    fold = Seen(20, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        Local().scan(SAMPLED, SOURCE, fold)
    assert fold.positions == []


def test_points_are_counted_in_the_first_scan_only():
    """Strategies that read the pool again, as a race does, must not move the progress bar beyond its end."""
    counted = []
    engine = Local(NARROW, counted.append)
    engine.scan(SAMPLED, SOURCE, Seen())
    assert len(counted) > 1
    assert sum(counted) == POINTS
    engine.scan(SAMPLED, SOURCE, Seen())
    engine.read(SAMPLED, SOURCE, torch.arange(9), mean)
    assert sum(counted) == POINTS


def test_a_stream_is_scanned_in_the_batches_it_has():
    fold = Local(1).scan(SAMPLED, Stream(torch.arange(POINTS).split(20)), Seen())
    assert fold.positions == list(range(POINTS))
    assert fold.blocks == [20, 20, 10]


def test_two_points_tell_the_sizes():
    assert tried(SAMPLED, SOURCE.at(torch.arange(2)), torch.arange(2)) == (3, 1)


# ── read and stream ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("memory", [1, NARROW, 1 << 27])
def test_points_are_read_in_the_order_given(memory):
    at = torch.tensor([7, 49, 0, 7, 31, 30, 29, 8])
    found = Local(memory).read(SAMPLED, SOURCE, at, mean)
    assert torch.equal(found, SAMPLED.moments(at).mean)


def test_no_points_cannot_be_read():
    with pytest.raises(ValueError, match="the pool is empty, so there are no points"):
        Local().read(SAMPLED, SOURCE, torch.arange(0), mean)


def test_a_stream_of_readings_has_all_points_and_counts_them():
    counted = []
    found = list(Local(NARROW, counted.append).stream(SAMPLED, SOURCE, mean))
    assert len(found) > 1
    assert torch.cat([at for at, _ in found]).tolist() == list(range(POINTS))
    assert torch.equal(torch.cat([row for _, row in found]), SAMPLED.moments(torch.arange(POINTS)).mean)
    assert counted == [len(at) for at, _ in found]
