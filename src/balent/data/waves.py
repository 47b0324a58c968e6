"""Features of table rows on which a linear head sees curves: the columns, and random waves of them.

    φ(z) = [½ z / r,  cos(W z) / √n,  sin(W z) / √n]        z: the columns of a row, r: their median length

W has n random rows ~ N(0, 1/s²): s is the median distance of two rows for one half of them, and half of that for the
other. Products φ(z)·φ(z') are then Gaussian kernels of |z − z'| (random Fourier features: Rahimi & Recht, 2007).
Columns alone would leave the head, which sees directions only, nothing but the sign of a table of one number. No torch
here.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from balent.data.columns import Columns
from balent.data.table_rows import Value

WAVES = 256
NEARER = 0.5  # the distance of the second half, as a share of that of the first
WEIGHT = 0.5  # of the columns beside the waves
SAMPLE = 1000  # rows that distances are measured between
SEED = 0


class Waves:
    """The columns of table rows and waves of them, for rows that are dicts of cells by column name."""

    def __init__(self) -> None:
        self.columns = Columns()
        self._length = 1.0
        self._waves = np.empty((0, WAVES))

    def fit(self, contents: Sequence[Mapping[str, Value]]) -> None:
        """Learns the columns, and how far rows are from each other."""
        self.columns.fit(contents)
        z = _some(self.columns(contents)[0]).astype(np.float64)
        self._length = _median(np.linalg.norm(z, axis=1))
        apart = _median(_distances(z))
        random = np.random.default_rng(SEED).standard_normal((z.shape[1], WAVES))
        self._waves = random / (apart * np.where(np.arange(WAVES) % 2, NEARER, 1.0))

    @property
    def width(self) -> int:
        """Features of a row."""
        return self.columns.width + 2 * WAVES

    def notes(self) -> list[str]:
        """What a user should know of the columns."""
        return self.columns.notes()

    def __call__(self, contents: Sequence[Mapping[str, Value]]) -> tuple[np.ndarray, list[str | None]]:
        """float32 rows of the good contents, in order; and for each content None, or why it has no row."""
        z, reasons = self.columns(contents)
        phase = np.einsum("rc,cw->rw", z, self._waves)  # not a BLAS product: a row's bits depend on that row alone
        waves = np.concatenate([np.cos(phase), np.sin(phase)], 1) / np.sqrt(WAVES)
        return np.concatenate([WEIGHT / self._length * z, waves], 1).astype(np.float32), reasons

    def about(self) -> dict[str, Any]:
        """The settings that decide about features."""
        return self.columns.about() | {"waves": WAVES, "nearer": NEARER, "weight": WEIGHT}

    def state(self) -> dict[str, np.ndarray]:
        """What was learnt, as arrays for .npz."""
        return self.columns.state() | {"waves": self._waves, "length": np.array(self._length)}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.columns.load_state(state)
        self._waves, self._length = state["waves"], float(state["length"])


def _some(z: np.ndarray) -> np.ndarray:
    """At most `SAMPLE` rows, the same ones in whatever order they are given."""
    order = np.argsort([zlib.crc32(row.tobytes()) for row in z], kind="stable")
    return z[order[:SAMPLE]]


def _distances(z: np.ndarray) -> np.ndarray:
    """Of all pairs of rows, from products: differences of 1,000 rows would take gigabytes."""
    squares = (z * z).sum(1)
    return np.sqrt(np.clip(squares[:, None] + squares - 2 * z @ z.T, 0, None))


def _median(lengths: np.ndarray) -> float:
    """Of those that are not 0, but for rounding."""
    positive = lengths[lengths > 1e-6 * lengths.max(initial=0)]
    return float(np.median(positive)) if len(positive) else 1.0
