"""A pool, embedded in one pass: what strategies keep that compare points."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from balent import checks
from balent.geometry.distances import Embedded, Points
from balent.geometry.rows import CHUNK, Rows, Storage
from balent.maths.moments import Moments
from balent.strategies.blocks import blocks, length
from balent.types import Batches, Indices, Pool, Sampled

MEMORY = 4 << 30  # bytes of rows kept in memory; what is more goes to a temporary file
LARGEST = {"float32": 1e18, "float16": 65504.0}  # about where squares overflow; the largest number there is
Factors = Callable[[Moments], Float[Tensor, "pool classes"]]


@contextmanager
def embedded(
    sampled: Sampled,
    pool: Pool | Batches,
    k: int,
    *,
    factors: Factors | None = None,
    memory: int = MEMORY,
    storage: Storage = "float32",
) -> Iterator[Embedded]:
    """Features of all points, and factors of their moments where there are any. What is kept is freed at the end."""
    points = length(pool)
    checks.batch_size(k, points)
    checks.lookup(LARGEST, storage, "storage")
    kept, multiplied, norms = Rows(memory, storage, points), Rows(memory, storage, points), []
    try:
        for batch, positions in blocks(sampled, pool):
            q = None if factors is None else multiplied.add(factors(sampled.moments(batch, positions)))
            h = features(sampled, batch, positions)
            norms.append(Points.of(kept.add(h), q).norms)
            checks.features(h, norms[-1], LARGEST[storage], positions)
        checks.batch_size(k, len(kept))  # a stream tells only now how long it was
        yield Embedded(kept, multiplied if factors else None, torch.cat(norms))
    finally:
        kept.close()
        multiplied.close()


def features(sampled: Any, batch: Any, positions: Indices | None = None) -> Float[Tensor, "batch features"]:
    """The features of a batch. Points that have a position are counted, where an engine counts."""
    if not hasattr(sampled, "features"):
        raise ValueError(
            f"this strategy compares features, but {type(sampled).__name__} has none; give it a method features(batch)"
        )
    found = torch.as_tensor(sampled.features(batch)).flatten(1)
    if positions is not None and hasattr(sampled, "advance"):
        sampled.advance(positions)
    return found.to("cpu", torch.float32)


def of_labelled(sampled: Any, labelled: Any) -> Points:
    """What is labelled already, embedded as its features."""
    size = min(CHUNK, getattr(sampled, "block", CHUNK))
    found = torch.cat([features(sampled, labelled[i : i + size]) for i in range(0, len(labelled), size)])
    points = Points.of(found)
    checks.features(found, points.norms, LARGEST["float32"])
    return points
