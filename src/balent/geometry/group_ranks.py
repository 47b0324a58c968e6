"""Places within groups: what "the n first of each group" and "one of each group per round" are made of."""

import torch
from jaxtyping import Int
from torch import Tensor

from balent.types import Indices

Groups = Int[Tensor, " entries"]


def group_ranks(groups: Groups) -> Groups:
    """How many earlier entries have the same group: 0 for the first of each.

    >>> group_ranks(torch.tensor([7, 3, 7, 7, 3]))
    tensor([0, 0, 1, 2, 1])
    """
    order = groups.argsort(stable=True)
    _, counts = groups[order].unique_consecutive(return_counts=True)
    starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
    return torch.empty_like(groups).scatter_(0, order, torch.arange(len(groups)) - starts)


def round_robin(groups: Groups, k: int) -> Indices:
    """k entries, one of each group per round, the smallest group first; in a group, the first entry first.

    Of groups of one size, that comes first whose first entry does. A group that is used up is left out.

    >>> round_robin(torch.tensor([0, 0, 1, 0, 1, 2]), 5)  # 2 has one entry, 1 has two, 0 has three
    tensor([5, 2, 0, 4, 1])
    """
    _, group, sizes = groups.unique(return_inverse=True, return_counts=True)
    first = torch.full_like(sizes, len(groups)).scatter_reduce_(0, group, torch.arange(len(groups)), "amin")
    turn = torch.empty_like(sizes)
    by_first = first.argsort()
    turn[by_first[sizes[by_first].argsort(stable=True)]] = torch.arange(len(sizes))
    by_turn = turn[group].argsort(stable=True)
    return by_turn[group_ranks(group)[by_turn].argsort(stable=True)][:k]
