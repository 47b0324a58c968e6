"""What a model and a pool of the user's own show, with labelled points if there are some."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from balent.acquisition import loading
from balent.acquisition.mean_probabilities import mean_probabilities
from balent.apps.doctor.finding import Missing
from balent.apps.doctor.looked import looked_at
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.tallies import Audit, Equal, HeldOut, LabelSet
from balent.batches import size, take
from balent.data import arrays
from balent.data.pool import Indexed, as_source
from balent.types import Batch, Features, Sampled, Source

LOOKED = 20_000  # points of an array that are compared


class OfModel:
    """Evidence from posterior samples and a pool.

    labelled    points that the model was not trained on, and their classes: (x, y)
    """

    points = "points"
    doubtful = "they are those to which the model gives the lowest probability"

    def __init__(self, sampled: Sampled, pool: Any, strategy: str, labelled: tuple[Batch, Any] | None = None) -> None:
        self._sampled, self._pool, self.strategy = sampled, as_source(pool), strategy
        self._labelled = None if labelled is None else (labelled[0], class_numbers(labelled[1], size(labelled[0])))

    @property
    def size(self) -> int | None:
        return self._pool.size

    def source(self) -> Source:
        return self._pool

    def sampled(self) -> Sampled:
        return self._sampled

    def labels(self) -> LabelSet:
        _, y = self._given
        return LabelSet(y, tuple(map(str, range(int(y.max()) + 1))), np.zeros(len(y), dtype=bool))

    def labelled(self, patient: Patient) -> Features:
        return patient.as_vectors(self._given[0])

    def held_out(self, sampled: Sampled) -> HeldOut:
        """The model was not trained on these points, so its probabilities are held out."""
        x, y = self._given
        p = mean_probabilities(sampled, x).double().numpy()
        if int(y.max()) >= p.shape[1]:
            raise ValueError(f"the model has {p.shape[1]} classes, but a label is {int(y.max())}; classes count from 0")
        return HeldOut(p, y, np.zeros(len(y), dtype=bool))

    def equal(self, patient: Patient) -> Equal:
        """By the content of points, in memory those of an array, else those that are looked at anyway."""
        in_memory = isinstance(self._pool, Indexed) and isinstance(self._pool.source, Tensor | np.ndarray)
        blocks = looked_at(self._pool, LOOKED) if in_memory else iter(patient.sample.blocks)
        counts = Counter(print for batch, _ in blocks for print in prints(batch))
        looked = sum(counts.values())
        return Equal(looked, looked - len(counts), sum(c * (c - 1) // 2 for c in counts.values()), once=False)

    def audit(self, answers: bool) -> Audit:
        raise Missing("random checks belong to a project; draw labelled points at random to know the accuracy")

    @property
    def _given(self) -> tuple[Batch, np.ndarray]:
        if self._labelled is None or not len(self._labelled[1]):
            raise Missing("no labelled points were given: --labelled FILE.npz")
        return self._labelled


def opened(name: str) -> tuple[Batch, Any]:
    """Labelled points: an .npz with arrays x and y, or what `FILE.py:FACTORY` makes, a pair (x, y)."""
    if Path(name).suffix == ".npz":
        return arrays.npz(Path(name), "x"), arrays.npz(Path(name), "y")
    made = loading.factory(name)
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(f"{name} must make a pair (x, y), but made {type(made).__name__}")
    return made


def class_numbers(y: Any, points: int) -> np.ndarray:
    """Labels as whole numbers from 0."""
    found = np.asarray(y)
    if found.shape != (points,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise ValueError(
            f"labels must be class numbers from 0, one for each of {points} points, but are {found.dtype} of shape "
            f"{found.shape}"
        )
    return found.astype(np.int64)


def prints(batch: Batch) -> Iterator[bytes]:
    """A digest of the content of each point."""
    for row in range(size(batch)):
        yield hashlib.blake2b(_content(take(batch, row)), digest_size=16).digest()


def _content(point: Any) -> bytes:
    if isinstance(point, Mapping):
        return b"".join(_content(point[name]) for name in sorted(point))
    if isinstance(point, Tensor | np.ndarray):
        return np.ascontiguousarray(point).tobytes()
    return repr(point).encode("utf-8", "surrogatepass")
