"""Items of many parts: tokens of a text, pixels of an image, labels of which several may hold.

Each part has moments of its own, as a point has that is labelled alone. The rows of such `Moments` are parts, item by
item; `Items` says which row belongs to which item, and how scores of parts become the score of their item. Ignored
parts (padding, void pixels) have no row.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from balent.types import ByClass, Scores

OfParts = Float[Tensor, " parts"]  # one number per part


@dataclass(frozen=True)
class Aggregate:
    """From scores of parts to the score of their item.

    share  of the parts of an item that count, the best first: 1 all of them, 0 the best one alone
    total  their sum; else their mean
    """

    share: float = 1.0
    total: bool = False

    @classmethod
    def named(cls, name: "str | Aggregate") -> "Aggregate":
        """ "mean", "max", "sum", or the mean of the top share, as in "top:0.1".

        >>> Aggregate.named("top:0.1")
        Aggregate(share=0.1, total=False)
        """
        if isinstance(name, Aggregate):
            return name
        if name in AGGREGATES:
            return AGGREGATES[name]
        head, _, tail = str(name).partition(":")
        try:
            share = float(tail) if head == "top" else math.nan
        except ValueError:
            share = math.nan
        if not 0 < share <= 1:
            raise ValueError(
                f"there is no aggregate {name!r}; choose from {', '.join(AGGREGATES)}, or the mean of the top share of "
                'the parts, as in "top:0.1" for a tenth'
            )
        return cls(share)


AGGREGATES = {"mean": Aggregate(), "max": Aggregate(0.0), "sum": Aggregate(total=True)}


@dataclass(frozen=True, eq=False)
class Items:
    """Which rows belong to which item, and the aggregate of their scores.

    place    where each row stands if all parts of all items are counted in order; ascending
    count    items
    shape    of the parts of one item, such as (256, 256)
    binary   each part is a label that holds or not: its classes are no and yes
    """

    place: Int[Tensor, " parts"]
    count: int
    shape: tuple[int, ...]
    aggregate: Aggregate = Aggregate()
    binary: bool = False

    @property
    def each(self) -> int:
        """Parts of one item, with the ignored ones."""
        return math.prod(self.shape)

    @cached_property
    def owner(self) -> Int[Tensor, " parts"]:
        """The item of each row."""
        return self.place // self.each

    @cached_property
    def lengths(self) -> Int[Tensor, " items"]:
        """How many parts of each item count."""
        return torch.bincount(self.owner, minlength=self.count)

    def scores(self, values: OfParts, ranks: OfParts | None = None) -> Scores:
        """The aggregate of values of parts; the best parts are those of the largest `ranks`, by default the values."""
        owner = self.owner
        if self.aggregate.share < 1:
            best = self._best(values if ranks is None else ranks)
            values, owner = values[best], owner[best]
        total = values.new_zeros(self.count).index_add_(0, owner, values)
        return total if self.aggregate.total else total / torch.bincount(owner, minlength=self.count)

    def _best(self, ranks: OfParts) -> Int[Tensor, " best"]:
        """The rows that count: ⌈share · parts⌉ of each item, one at least."""
        order = ranks.argsort(descending=True, stable=True)
        order = order[self.owner[order].argsort(stable=True)]
        first = self.lengths.cumsum(0) - self.lengths
        within = torch.arange(len(order), device=order.device) - first[self.owner]
        wanted = (self.aggregate.share * self.lengths - 1e-9).ceil().clamp(min=1)  # 0.1 · 30 is 3, not 3.0000000000004
        return order[within < wanted[self.owner]]

    def shares(self, mean: ByClass) -> Float[Tensor, "items outputs"]:
        """What is predicted of each item: the mean over its parts; of several labels, the probability of each."""
        if self.binary:
            return self.grid(mean)
        total = mean.new_zeros(self.count, mean.shape[1]).index_add_(0, self.owner, mean)
        return total / self.lengths[:, None]

    def grid(self, mean: ByClass) -> Tensor:
        """[items, parts…, classes], or [items, labels] of several labels; ignored parts have 0 for every class."""
        whole = mean.new_zeros(self.count * self.each, mean.shape[1])
        whole[self.place] = mean
        found = whole.view(self.count, *self.shape, -1)
        return found[..., 1] if self.binary else found
