"""The pool as a strategy sees it: a source of points and the engine that runs over it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from balent import adapt
from balent.acquisition.beside import Together
from balent.data.pool import Narrowed
from balent.types import Engine, Fold, Folded, Indices, Keyed, Reading, Rereadable, Sampled, Source


@dataclass
class View:
    """Points without a label, and those with one. `beside` is a fold that sees the first scan as well."""

    engine: Engine
    source: Source
    labelled: "View | None" = None
    beside: Fold | None = field(default=None, repr=False)

    @property
    def size(self) -> int | None:
        return self.source.size

    @property
    def positions(self) -> Indices:
        """Positions of the points that can be read again; empty for a stream. Never raises: isinstance reads it."""
        return self.source.positions if adapt.rereadable(self.source) else torch.empty(0, dtype=torch.int64)

    def pieces(self) -> Iterator[Indices]:
        """The same positions, some at a time."""
        return adapt.pieces(self.source)

    def keys(self, positions: Indices) -> Indices:
        """What noise is keyed by: the positions, unless the source has keys that move with its points."""
        return self.source.keys(positions) if isinstance(self.source, Keyed) else positions

    def scan(self, sampled: Sampled, fold: Folded) -> Folded:
        """One pass of the engine over all points."""
        if self.beside is None:
            return self.engine.scan(sampled, self.source, fold)
        together, self.beside = Together([fold, self.beside]), None
        return cast(Folded, self.engine.scan(sampled, self.source, together).folds[0])

    def read(self, sampled: Sampled, positions: Indices, what: Reading) -> Tensor:
        """A reading of some points, in the order given."""
        return self.engine.read(sampled, self._again(), positions, what)

    def only(self, positions: Indices) -> "View":
        """A view of some points alone; the labelled ones stay."""
        return View(self.engine, Narrowed(self._again(), positions), self.labelled)

    def _again(self) -> Rereadable:
        if not adapt.rereadable(self.source):
            raise ValueError(
                "this strategy reads points again, but a stream is read only once; "
                "pass an array, a Dataset or a DataLoader of one"
            )
        return self.source
