"""Places within groups, and taking turns."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from balent.geometry.group_ranks import group_ranks, round_robin

groups = st.lists(st.integers(0, 5), max_size=30).map(lambda x: torch.tensor(x, dtype=torch.int64))


@given(groups)
def test_a_rank_counts_the_earlier_entries_of_the_group(x):
    assert group_ranks(x).tolist() == [x[:i].tolist().count(int(g)) for i, g in enumerate(x)]


def test_the_smallest_group_is_first_in_every_round():
    """Groups 8 (one entry), 9 (two) and 5 (three), then 9 and 5 again, then 5 alone."""
    assert round_robin(torch.tensor([5, 5, 9, 5, 9, 8]), 6).tolist() == [5, 2, 0, 4, 1, 3]


def test_of_groups_of_one_size_the_one_with_the_earlier_entry_is_first():
    assert round_robin(torch.tensor([3, 1, 2, 1, 2, 3]), 6).tolist() == [0, 1, 2, 5, 3, 4]


@pytest.mark.parametrize("k", [1, 4, 9])
def test_one_group_is_taken_in_order(k):
    assert round_robin(torch.zeros(9, dtype=torch.int64), k).tolist() == list(range(k))


@given(groups)
def test_nobody_is_left_out(x):
    assert sorted(round_robin(x, len(x)).tolist()) == list(range(len(x)))
