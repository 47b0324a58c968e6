"""The pool embedded in one pass, for strategies that compare points."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from balent import adapt, checks
from balent.geometry.distances import Embedded, Points
from balent.geometry.rows import Rows, Storage
from balent.lookup import lookup
from balent.maths.moments import Moments
from balent.types import Batch, Indices, Pool, Sampled

MEMORY = 4 << 30  # bytes of rows kept in memory; more of them go to a temporary file
LARGEST = {"float32": 1e18, "float16": 65504.0}  # about where squares overflow; the largest number there is
Factors = Callable[[Moments], Float[Tensor, "pool classes"]]


class Embedding:
    """A fold: features of all points, and factors of their moments if there are any, in the order of the pool."""

    def __init__(self, factors: Factors | None, memory: int, storage: Storage, expected: int | None) -> None:
        self.factors, self.storage = factors, storage
        self.features, self.multiplied = Rows(memory, storage, expected), Rows(memory, storage, expected)
        self.norms: list[Tensor] = []
        self.positions: list[Tensor] = []

    def add(self, sampled: Sampled, batch: Batch, positions: Indices) -> None:
        if self.factors is not None:
            adapt.check_points(sampled, "this strategy")
        q = None if self.factors is None else self.factors(sampled.moments(batch, positions))
        h = adapt.features(sampled, batch)
        self._keep(h, q, positions)

    def merge(self, other: "Embedding") -> "Embedding":
        """Numbers are appended as they are: nothing is computed again, which could change the last bits."""
        for chunk in other.features.chunks():
            self.features.add(other.features[chunk])
            if self.factors is not None:
                self.multiplied.add(other.multiplied[chunk])
        self.norms += other.norms
        self.positions += other.positions
        return self

    def state(self) -> dict[str, Tensor]:
        """The rows as they are kept."""
        norms, positions = (torch.cat(x) if x else torch.empty(0) for x in (self.norms, self.positions))
        return {
            "features": self.features.kept(),
            "multiplied": self.multiplied.kept(),
            "norms": norms,
            "positions": positions,
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        for rows, name in ((self.features, "features"), (self.multiplied, "multiplied")):
            if len(state[name]):
                rows.add(state[name])
        if len(state["norms"]):
            self.norms, self.positions = [state["norms"]], [state["positions"]]

    def _keep(self, h: Tensor, q: Tensor | None, positions: Indices) -> None:
        kept = None if q is None else self.multiplied.add(q)
        norms = Points.of(self.features.add(h), kept).norms
        checks.features(h, norms, LARGEST[self.storage], positions)
        self.norms.append(norms)
        self.positions.append(positions)

    def embedded(self) -> tuple[Embedded, Indices]:
        """The points, and where in the pool each of them is."""
        rows = Embedded(self.features, self.multiplied if self.factors else None, torch.cat(self.norms))
        return rows, torch.cat(self.positions)

    def close(self) -> None:
        self.features.close()
        self.multiplied.close()


@contextmanager
def embedded(
    sampled: Sampled,
    pool: Pool,
    k: int,
    *,
    factors: Factors | None = None,
    memory: int = MEMORY,
    storage: Storage = "float32",
) -> Iterator[tuple[Embedded, Indices]]:
    """All points, embedded, and their positions. Memory and files are freed at the end.

    sampled  gives the features
    pool     is read once
    k        points that will be picked: a shorter stream is refused
    factors  a vector of each point's moments, multiplied with its features; None: features alone
    memory   bytes of rows in memory; more of them go to a temporary file
    storage  "float32", or "float16" for half the memory
    """
    lookup(LARGEST, storage, "storage")
    fold = Embedding(factors, memory, storage, pool.size)
    try:
        pool.scan(sampled, fold)
        found, positions = fold.embedded()
        checks.batch_size(k, len(found))  # only now is it known how long a stream was
        yield found, positions
    finally:
        fold.close()


def of_labelled(sampled: Sampled, pool: Pool) -> Points | None:
    """The labelled points, embedded as their features; None if there are none."""
    known = pool.labelled
    if known is None or not len(known.positions):
        return None
    found = known.read(sampled, known.positions, adapt.features)
    points = Points.of(found)
    checks.features(found, points.norms, LARGEST["float32"])
    return points
