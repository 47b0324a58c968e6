"""Posterior samples of items with parts: moments per part, a block of items at a time.

The outputs of all draws become moments in one pass, and are forgotten then. Draws that would not fit in memory
together are taken some at a time, and their moments merged.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from balent.batches import size, take
from balent.maths.moments import Moments
from balent.maths.parts import Aggregate, Items
from balent.predictors.tasks import OfParts
from balent.types import Batch, HasOutputs, Indices, Probabilities, Traits

MEMORY = 1 << 27  # bytes of the outputs of all draws; more of them are taken some draws at a time
TOGETHER = 1 << 16  # parts whose outputs are laid out for the kernel at a time; one item at least
PADDED = "attention_mask"  # what Hugging Face calls the mask of a batch with padding
Counts = Callable[[Batch], Tensor]  # True where a part counts: [items, parts…]
Mask = str | Counts | Literal[False] | None


@dataclass(frozen=True)
class PartMoments:
    """n fixed functions of items with parts.

    inner      gives the outputs of all draws
    task       where an output has its parts and its classes
    aggregate  from scores of parts to the score of their item
    mask       which parts count: a name in a batch that is a dict, or a function of the batch; None or False: all
    """

    inner: HasOutputs
    task: OfParts
    aggregate: Aggregate
    mask: Mask = None
    _per_item: dict[Any, int] = field(default_factory=dict, compare=False, repr=False)  # bytes, by shapes of inputs

    @property
    def traits(self) -> Traits:
        return replace(self.inner.traits, parts=True)

    @property
    def plan(self) -> str:
        """How draws are computed, in words."""
        return self.inner.traits.plan

    def part(self, start: int, stop: int) -> "PartMoments":
        """Some of the draws."""
        return replace(self, inner=self.inner.part(start, stop))

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        raise ValueError(
            "these items have many parts, so there are no draws [items, draws, classes]: a strategy that compares "
            "draws (badge, batch_bald, core_mse) cannot be used; use auto, herding, or a measure such as 'balentacq'"
        )

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        """The moments of every part that counts, item by item."""
        [m] = self.groups(batch, positions, 1)
        return m

    @torch.inference_mode()
    def groups(self, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        """The moments of groups of draws: for standard errors."""
        draws, step = self._draws, self._together(batch)
        if step >= draws or count > 1:
            return self._moments(self.inner, batch, positions, min(count, draws))
        some = (self.inner.part(i, min(i + step, draws)) for i in range(0, draws, step))
        return [reduce(add, (self._moments(part, batch, positions, 1)[0] for part in some))]

    @torch.inference_mode()
    def features(self, batch: Batch) -> Float[Tensor, "pool features"]:
        """What the model's layer of features sees of an item, averaged over its places."""
        return self.inner.pooled(batch, self._mask(batch))

    @property
    def _draws(self) -> int:
        return self.inner.traits.n or 1

    def _together(self, batch: Batch) -> int:
        """Draws whose outputs for this batch fit in memory, at least one; a draw of one item shows how large it is."""
        named = batch if isinstance(batch, Mapping) else {"": batch}
        shapes = tuple((name, tuple(x.shape[1:])) for name, x in named.items())
        if shapes not in self._per_item and self._draws > 1:
            one = self.inner.part(0, 1).outputs(take(batch, slice(0, 1)), torch.zeros(1, dtype=torch.int64))
            self._per_item[shapes] = one.nbytes
        return max(1, MEMORY // (self._per_item.get(shapes, 1) * size(batch)))

    def _moments(self, inner: HasOutputs, batch: Batch, positions: Indices | None, count: int) -> list[Moments]:
        z = self.task.rows(inner.outputs(batch, positions))
        _check_logits(z, self.task)
        shape = tuple(z.shape[2:-1])
        counts = self._counts(batch, len(z), shape, positions)
        place = torch.arange(len(z) * math.prod(shape)) if counts is None else counts.flatten().nonzero()[:, 0]
        items = Items(place.to(z.device), len(z), shape, self.aggregate, self.task.binary)
        some = torch.arange(len(z)).split(max(1, TOGETHER // items.each))
        found = [_of_items(z[at], None if counts is None else counts[at], count, _at(positions, at)) for at in some]
        return [replace(Moments.cat(groups), items=items) for groups in zip(*found, strict=True)]

    def _mask(self, batch: Batch, positions: Indices | None = None) -> Tensor | None:
        """True where a part counts, which one of every item does; None if all parts count."""
        mask = self._given(batch)
        hidden = None if mask is None else (~mask.flatten(1).any(1)).nonzero()
        if hidden is not None and len(hidden):
            i = int(hidden[0])
            where = f"{i} of a batch" if positions is None else str(int(positions[i]))
            raise ValueError(f"the mask hides every part of point {where}; leave that point out, or show a part of it")
        return mask

    def _given(self, batch: Batch) -> Tensor | None:
        """The mask as it was named or is computed."""
        if isinstance(self.mask, str):
            if not isinstance(batch, Mapping) or self.mask not in batch:
                names = ", ".join(batch) if isinstance(batch, Mapping) else "no names: it is one array"
                raise ValueError(f"mask={self.mask!r} must be a name in the batch, but that has {names}")
            return torch.as_tensor(batch[self.mask]) != 0
        if self.mask is None and isinstance(batch, Mapping) and PADDED in batch and not batch[PADDED].all():
            raise ValueError(
                f"items have different lengths ({PADDED} has zeros), but no mask was named; pass mask={PADDED!r} to "
                "leave padding out, or mask=False to score it as well"
            )
        return torch.as_tensor(self.mask(batch)) != 0 if callable(self.mask) else None

    def _counts(
        self, batch: Batch, items: int, shape: tuple[int, ...], positions: Indices | None
    ) -> Bool[Tensor, "items parts"] | None:
        """True where a part counts, a row for each item."""
        mask = self._mask(batch, positions)
        if mask is None:
            return None
        if tuple(mask.shape) != (items, *shape):
            raise ValueError(
                f"a mask must have one value per part, shape {(items, *shape)}, but has {tuple(mask.shape)}"
            )
        return mask.flatten(1)


def _of_items(z: Tensor, counts: Tensor | None, count: int, positions: Indices) -> list[Moments]:
    """Moments of the parts of some items, of logits [items, draws, parts…, classes]; positions belong to items."""
    rows = z.flatten(2, -2).transpose(1, 2)
    each = positions[:, None].expand(rows.shape[:2])
    rows, each = (rows.flatten(0, 1), each.flatten()) if counts is None else (rows[counts], each[counts])
    return Moments.groups(rows.contiguous(), count, logits=True, positions=each)


def _at(positions: Indices | None, rows: Indices) -> Indices:
    return rows if positions is None else positions[rows]


def _check_logits(z: Tensor, task: OfParts) -> None:
    """Outputs that are distributions already, in the first draw of the first item."""
    first = z[0, 0]
    several = not task.binary and first.shape[-1] > 1
    if several and bool((first >= 0).all()) and bool(((first.sum(-1) - 1).abs() < 1e-4).all()):
        raise ValueError(
            "the model must give logits, but its outputs sum to 1 over classes, as probabilities do; "
            "take its softmax off"
        )
