"""An engine that does what a cluster does: spans in any order, folds that are sent, merged in the order of the pool."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from balent.acquisition.engines.local import Local
from balent.data.pool import Narrowed
from balent.types import Folded, Indices, Reading, Rereadable, Sampled, Source


@dataclass(frozen=True)
class Cut:
    """Spans of `points` points, the last one first. `sent` makes of a fold what arrives elsewhere."""

    points: int
    sent: Callable[[Any], Any] = deepcopy

    def scan(self, sampled: Sampled, source: Source, fold: Folded) -> Folded:
        """Each span into an empty fold of its own."""
        assert isinstance(source, Rereadable)
        spans = source.positions.split(self.points)
        empty = [self.sent(fold) for _ in spans]
        done = [
            Local().scan(sampled, Narrowed(source, span), own) for span, own in zip(reversed(spans), empty, strict=True)
        ]
        for other in reversed(done):
            fold = fold.merge(self.sent(other))
        return fold

    def read(self, sampled: Sampled, source: Rereadable, positions: Indices, what: Reading) -> Tensor:
        """The same reading, part by part."""
        parts = positions.split(self.points)
        return torch.cat([Local().read(sampled, source, part, self.sent(what)) for part in parts])
