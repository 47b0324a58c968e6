"""Whatever holds the points, they come in batches, in order, under their positions."""

import threading

import numpy as np
import pytest
import torch
from helpers.items import Items, X, Y
from torch.testing import assert_close
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from balent.acquisition.engines.local import ahead
from balent.data.pool import Indexed, Stream, Subset, as_source, unlabelled
from balent.predictors.inputs import as_tensor


class Flow(IterableDataset):
    def __iter__(self):
        return iter([(x, int(y)) for x, y in zip(X, Y, strict=True)])


def pairs_collate(items):
    """Takes (x, y) apart, as loaders do that need more than the default."""
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])


def read_only():
    array = X.numpy().copy()
    array.flags.writeable = False
    return array


POOLS = {
    "tensor": lambda: X,
    "array": X.numpy,
    "array that cannot be written": read_only,
    "array backwards in memory": lambda: X.numpy()[::-1].copy()[::-1],
    "list of tensors": lambda: list(X),
    "list of arrays": lambda: list(X.numpy()),
    "list of lists": X.tolist,
    "list of pairs": lambda: list(zip(X, Y.tolist(), strict=True)),
    "TensorDataset": lambda: TensorDataset(X),
    "TensorDataset with labels": lambda: TensorDataset(X, Y),
    "Dataset of pairs": lambda: Items(lambda x, y: (x, y)),
    "Dataset of pairs of arrays": lambda: Items(lambda x, y: [x.numpy(), y]),
    "Dataset of points": lambda: Items(lambda x, y: x),
    "DataLoader": lambda: DataLoader(TensorDataset(X, Y), 2, shuffle=True),
    "DataLoader with its own collate": lambda: DataLoader(TensorDataset(X, Y), 2, collate_fn=pairs_collate),
    "DataLoader of a stream": lambda: DataLoader(Flow(), 3),
    "IterableDataset": Flow,
    "stream of batches": lambda: iter(X.split(2)),
    "stream of labelled batches": lambda: ((x, y) for x, y in zip(X.split(3), Y.split(3), strict=True)),
    "generator of arrays": lambda: (x.numpy() for x in X.split(5)),
    "a pool": lambda: as_source(X),
}


@pytest.mark.parametrize("make", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("points", [1, 2, 100])
def test_all_points_come_in_order_with_their_positions(make, points):
    found = list(as_source(make()).blocks(points))
    assert_close(torch.cat([as_tensor(x) for x, _ in found]), X)
    assert torch.cat([at for _, at in found]).tolist() == list(range(7))


@pytest.mark.parametrize(
    "name", [name for name in POOLS if "stream" not in name and "Iter" not in name and "gen" not in name]
)
def test_any_points_can_be_read_again(name):
    pool = as_source(POOLS[name]())
    assert isinstance(pool, Indexed)
    assert len(pool) == 7
    assert_close(as_tensor(pool[torch.tensor([5, 0, 5])]), X[[5, 0, 5]])
    assert_close(as_tensor(pool[2:4]), X[2:4])
    assert pool.positions.tolist() == list(range(7))
    assert_close(as_tensor(pool.at(torch.tensor([6, 1]))), X[[6, 1]])


@pytest.mark.parametrize("positions", [[1, 2, 3], [0, 4, 6], [5]], ids=str)
def test_a_subset_keeps_the_positions_of_the_whole(positions):
    some = Subset(as_source(X), torch.tensor(positions))
    found = list(some.blocks(2))
    assert some.size == len(positions)
    assert torch.cat([at for _, at in found]).tolist() == positions
    assert_close(torch.cat([x for x, _ in found]), X[positions])
    assert_close(some.at(torch.tensor(positions[::-1])), X[positions[::-1]])


@pytest.mark.parametrize("item", [
    lambda x, y: {"input_ids": x.long(), "mask": x > 3, "label": y},
    lambda x, y: {"input_ids": x.long().numpy(), "mask": (x > 3).numpy(), "labels": y},
    lambda x, y: {"input_ids": x.long().tolist(), "mask": (x > 3).tolist()},
], ids=["tensors", "arrays", "lists"])  # fmt: skip
def test_items_of_hugging_face_become_a_dict_of_tensors_without_labels(item):
    """Bug: lists of numbers came out transposed, a list of one tensor for each word."""
    batch = as_source(Items(item))[1:4]
    assert set(batch) == {"input_ids", "mask"}
    assert_close(batch["input_ids"], X[1:4].long())
    assert_close(batch["mask"], X[1:4] > 3)


def test_a_point_of_two_numbers_is_no_pair():
    """Bug: of points in the plane, given as lists, only the first coordinate was left."""
    moons = [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert_close(as_source(moons)[0:3], torch.tensor(moons))
    assert unlabelled((torch.ones(2), 1)).tolist() == [1, 1]


def test_positions_of_a_loader_are_those_of_its_dataset():
    """However it shuffles: what is picked can be found again."""
    pool = as_source(DataLoader(TensorDataset(X, Y), 2, shuffle=True))
    assert_close(pool[4:5], X[4:5])


@pytest.mark.parametrize("source", [7, None, print], ids=["number", "nothing", "function"])
def test_what_is_no_pool_is_refused(source):
    with pytest.raises(
        TypeError, match=r"a pool must be an array, .* a DataLoader, a dict of arrays or an iterable of batches, but"
    ):
        as_source(source)


# ── bad items ────────────────────────────────────────────────────────────────────────────────────


ITEMS = {
    "tensor": lambda x: x,
    "pair": lambda x: (x, 1),
    "array": lambda x: x.numpy(),
    "dict": lambda x: {"image": x},
    "list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
def test_points_of_different_shapes_are_both_named(item):
    source = [item(torch.zeros(3)) for _ in range(6)]
    source[4] = item(torch.zeros(5))
    message = r"must have one shape, but point 2 has \(3,\) and point 4 has \(5,\); resize or pad them first"
    with pytest.raises(ValueError, match=message):
        as_source(source)[2:6]


def test_the_point_that_cannot_be_read_is_named():
    source = Items(lambda x, y: 1 / 0 if y == 5 else x)
    with pytest.raises(ZeroDivisionError) as caught:
        list(as_source(source).blocks(2))
    assert caught.value.__notes__ == ["while reading point 5 of the pool"]


# ── reading ahead ────────────────────────────────────────────────────────────────────────────────


def test_the_next_batch_is_read_in_another_thread_while_this_one_is_used():
    """The second item is asked for before anyone is done with the first: else this would wait for ever."""
    asked = [threading.Event() for _ in range(3)]
    threads = []

    def items():
        for event in asked:
            threads.append(threading.get_ident())
            event.set()
            yield event

    stream = ahead(items())
    assert next(stream) is asked[0]
    assert asked[1].wait(10)
    assert not asked[2].is_set()
    assert list(stream) == asked[1:]
    assert threading.get_ident() not in threads


def test_errors_of_the_reader_come_through_where_they_happened():
    def items():
        yield 1
        raise KeyError("two")

    stream = ahead(items())
    assert next(stream) == 1
    with pytest.raises(KeyError, match="two"):
        next(stream)


def test_a_reader_stops_when_nobody_listens():
    before = threading.active_count()
    stream = ahead(iter(range(1000)))
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_a_stream_numbers_its_points_as_they_come():
    found = list(Stream([np.zeros((2, 3)), np.ones((4, 3)), {"x": torch.ones(1, 3), "label": torch.ones(1)}]).blocks(1))
    assert [at.tolist() for _, at in found] == [[0, 1], [2, 3, 4, 5], [6]]
    assert set(found[2][0]) == {"x"}


def test_a_dict_of_arrays_is_a_pool_without_its_labels():
    pool = as_source({"input_ids": X, "mask": X.numpy() > 3, "label": Y})
    batch = pool[torch.tensor([4, 1])]
    assert len(pool) == 7
    assert set(batch) == {"input_ids", "mask"}
    assert_close(batch["input_ids"], X[[4, 1]])
    assert (batch["mask"] == (X[[4, 1]] > 3).numpy()).all()
    assert_close(torch.cat([b["input_ids"] for b, _ in pool.blocks(3)]), X)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ({"a": X, "b": X[:3]}, ValueError, "one length, but have {'a': 7, 'b': 3}"),
        ({"a": X, "b": [1, 2]}, TypeError, "'b' is of type list"),
        ({"label": Y}, ValueError, "no array"),
    ],
)
def test_a_dict_that_is_no_pool_is_refused(source, error, words):
    with pytest.raises(error, match=words):
        as_source(source)


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"x": x}])
def test_a_masked_array_is_no_pool(wrap):
    """Defect: points were scored with the numbers that the mask hides."""
    with pytest.raises(TypeError, match="must not be a masked array: its mask would be ignored"):
        as_source(wrap(np.ma.masked_less(np.ones((3, 2)), 2)))
