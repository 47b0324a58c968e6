"""What runs on a worker of a cluster: it opens its span of the pool itself, and returns a fold.

Rows are read where they are used; only folds and readings are sent. Models, sources and folds are fetched once and
kept, until others take their place.
"""

import os
import pickle
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent.acquisition.engines.likeness import Likeness, Refused
from balent.acquisition.engines.local import Local
from balent.acquisition.engines.mapped_pool import MappedPool
from balent.types import Fold, HasState, Indices, Reading, Sampled, Skips

KEPT = 4  # models, sources and folds
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Work:
    """One pass: references to the model, the source, and what is done with them; points per block."""

    sampled: Any
    source: Any
    what: Any
    block: int


@dataclass(frozen=True)
class Done:
    """What became of a job: tensors as arrays, or a fold that has no state; who did it; what could not be read."""

    result: Arrays | Fold
    points: int
    worker: str
    skipped: tuple[Any, ...] = ()


class Worker:
    """One process of a cluster. `path`: where modules are looked for, after its own places."""

    def __init__(self, expected: Likeness, path: Sequence[str] = (), fetch: Callable[[Any], Any] | None = None) -> None:
        sys.path += [place for place in path if place not in sys.path]
        torch.set_num_threads(expected.threads)
        self._fetch, self._held = fetch or _fetched, OrderedDict[Any, Any]()
        self._difference = expected.difference(Likeness.here())
        self._name = f"process {os.getpid()} on {socket.gethostname()}"

    def ping(self) -> str:
        """Answers."""
        return self._name

    def fold(self, work: Work, span: Any) -> Done:
        """The fold of a span."""
        sampled, source = self._given(work)
        fold: Fold = pickle.loads(self._object(work.what))  # a new one for each span
        part, seen = source.part(span), [0]
        known = len(part.skipped) if isinstance(part, Skips) else 0
        engine = Local(block=work.block, count=seen.append)
        fold = engine.scan(sampled, part, fold)
        skipped = tuple(part.skipped[known:]) if isinstance(part, Skips) else ()
        return Done(arrays(fold.state()) if isinstance(fold, HasState) else fold, sum(seen), self._name, skipped)

    def read(self, work: Work, positions: Indices) -> Done:
        """A reading of some points, which are sorted."""
        sampled, source = self._given(work)
        what: Reading = self._object(work.what)
        rows = Local(block=work.block).read(sampled, source, positions, what)
        return Done(arrays({"rows": rows}), len(positions), self._name)

    def _given(self, work: Work) -> tuple[Sampled, Any]:
        if self._difference:
            raise Refused(socket.gethostname(), self._difference)
        return self._object(work.sampled), self._object(work.source)

    def _object(self, reference: Any) -> Any:
        if reference not in self._held:
            found = self._fetch(reference)
            self._held[reference] = found.opened() if isinstance(found, MappedPool) else found
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
        self._held.move_to_end(reference)
        return self._held[reference]


def _fetched(reference: Any) -> Any:
    import ray

    return ray.get(reference)


def arrays(state: dict[str, Tensor]) -> Arrays:
    return {name: np.ascontiguousarray(tensor.detach().cpu().numpy()) for name, tensor in state.items()}


def tensors(state: Arrays) -> dict[str, Tensor]:
    """Copies: arrays that were sent cannot be written to."""
    return {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
