"""What is examined: some points of a pool, the model's draws on them, and labels.

All checks look at the same points: all of a small pool, else SAMPLE of them, chosen by a hash of their number, so that
the cost does not grow with the pool and a second call finds the same. A project and a model with its pool differ in
where these come from: `Evidence`. Nothing is written.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from balent import adapt
from balent.apps.doctor.finding import Incomparable, Missing, Silent
from balent.batches import size, take
from balent.kernels.hashing import mixed
from balent.maths.moments import Moments
from balent.types import Batch, Features, Indices, Rereadable, Sampled, Source

SAMPLE = 4096  # points at most
BYTES = 1 << 28  # of them, at most
ANSWERED = 1024  # of them, on which the model is evaluated
KEY = 0x646F63746F72  # "doctor": the choice of points must not change
BLOCK = 256

Blocks = list[tuple[Batch, Tensor]]  # points and their positions


@dataclass(frozen=True)
class Sample:
    """Points that were looked at, in blocks, and how long it took to read them."""

    blocks: Blocks
    seconds: float
    whole: bool  # they are all points of the pool

    def __len__(self) -> int:
        return sum(len(positions) for _, positions in self.blocks)

    @property
    def bytes(self) -> int:
        """Of one point, on average."""
        return sum(nbytes(batch) for batch, _ in self.blocks) // max(1, len(self))


@dataclass(frozen=True)
class LabelSet:
    """Class numbers of labelled points, the names of all classes, and which labels are of random points."""

    y: Int[np.ndarray, " labels"]
    names: tuple[str, ...]
    random: Bool[np.ndarray, " labels"]

    @property
    def counts(self) -> Int[np.ndarray, " classes"]:
        return np.bincount(self.y, minlength=len(self.names))


@dataclass(frozen=True)
class HeldOut:
    """Probabilities of labelled points by a model that has not seen their labels."""

    p: Float[np.ndarray, "labels classes"]
    y: Int[np.ndarray, " labels"]
    random: Bool[np.ndarray, " labels"]


@dataclass(frozen=True)
class Equal:
    """Points with equal content.

    looked      points that were compared
    redundant   those among them whose content came before
    pairs       pairs of equal points
    once        equal points are labelled once anyway
    """

    looked: int
    redundant: int
    pairs: int
    once: bool


@dataclass(frozen=True)
class Audit:
    """Random checks of a project: answered, right among them (None: no model), and how many there can be at most.

    every   one in this many questions is a check; 0: none
    """

    answered: int
    right: int | None
    most: int
    every: int


@runtime_checkable
class Evidence(Protocol):
    """Where the facts come from. Each function may raise `Missing`."""

    @property
    def points(self) -> str: ...  # what one calls them: "items", "points"
    @property
    def size(self) -> int | None: ...
    @property
    def strategy(self) -> str: ...
    @property
    def doubtful(self) -> str: ...  # where doubtful labels are listed
    def source(self) -> Source: ...
    def sampled(self) -> Sampled: ...
    def labels(self) -> LabelSet: ...
    def labelled(self, patient: "Patient") -> Features: ...  # their vectors
    def held_out(self, sampled: Sampled) -> HeldOut: ...
    def equal(self, patient: "Patient") -> Equal: ...
    def audit(self, answers: bool) -> Audit: ...  # whether there is a model that answers


class Patient:
    """A project, or a model and its pool.

    evidence    where the facts come from
    seed        of all that is random in checks
    k           labels per round that are planned
    goal        labels in all that are planned
    """

    def __init__(self, evidence: Evidence, *, seed: int = 0, k: int = 20, goal: int = 500) -> None:
        self.evidence, self.seed, self.k, self.goal = evidence, seed, k, goal

    @cached_property
    def sample(self) -> Sample:
        """The points that are looked at."""
        began = time.perf_counter()
        source = self.evidence.source()
        found = list(looked_at(source, SAMPLE))
        if not found:
            raise Missing("there are no points")
        looked = sum(len(positions) for _, positions in found)
        return Sample(found, time.perf_counter() - began, looked == source.size)

    @cached_property
    def answered(self) -> Blocks:
        """The first of them, as the model takes them."""
        left, found = ANSWERED, Blocks()
        for batch, positions in self.sample.blocks:
            if left > 0:
                found.append((take(batch, slice(0, left)), positions[:left]))
                left -= len(positions)
        return found

    @cached_property
    def sampled(self) -> Sampled:
        """Posterior samples, if the model answers on two points."""
        batch, positions = self.sample.blocks[0]
        with _answering():
            sampled = self.evidence.sampled()
            adapt.tried(sampled).moments(take(batch, slice(0, 2)), positions[:2])
        return sampled

    @cached_property
    def moments(self) -> Moments:
        """Of the model's draws on the first points."""
        sampled = self.sampled
        with _answering():
            return Moments.cat([sampled.moments(batch, positions) for batch, positions in self.answered])

    @cached_property
    def labels(self) -> LabelSet:
        return self.evidence.labels()

    @cached_property
    def held_out(self) -> HeldOut:
        """If the model answers."""
        return self.evidence.held_out(self.sampled)

    @cached_property
    def equal(self) -> Equal:
        return self.evidence.equal(self)

    @cached_property
    def audit(self) -> Audit:
        return self.evidence.audit(adapt.trained(self.comparing))

    @cached_property
    def vectors(self) -> Features:
        """The points as vectors, as strategies compare them."""
        return torch.cat([self.as_vectors(batch) for batch, _ in self.sample.blocks])

    def as_vectors(self, batch: Batch) -> Features:
        """Some points as vectors."""
        try:
            return adapt.vectors(self.comparing, batch)
        except ValueError as error:
            reason = "these points are not vectors, and there is no model that has features of them"
            raise Incomparable(reason) from error

    @cached_property
    def comparing(self) -> Sampled:
        """What has features; before there is a model that answers, points stand for themselves."""
        try:
            return self.sampled
        except Missing:
            return adapt.Untrained()


@contextmanager
def _answering() -> Iterator[None]:
    """Errors of a model that cannot answer, ours and torch's, are a finding. Others keep their traceback."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        raise Silent(str(error)) from error


def looked_at(source: Source, most: int) -> Iterator[tuple[Batch, Indices]]:
    """Blocks of at most `most` points: chosen by a hash of their number, or the first ones of a stream."""
    left = BYTES
    for batch, positions in _chosen(source, most) if adapt.rereadable(source) else _first(source, most):
        yield batch, positions
        left -= nbytes(batch)
        if left <= 0:
            return


def _chosen(source: Rereadable, most: int) -> Iterator[tuple[Batch, Indices]]:
    for part in _some(source, most).split(BLOCK):
        if len(part):
            yield source.at(part), part


def _some(source: Rereadable, most: int) -> Indices:
    """Positions, in the order of the pool."""
    points = source.size or 0
    ranks = torch.arange(points) if points <= most else (mixed(KEY, torch.arange(most)) % points).unique()
    found, before = [torch.empty(0, dtype=torch.int64)], 0
    for piece in adapt.pieces(source):
        here = ranks[(ranks >= before) & (ranks < before + len(piece))]
        found.append(piece[here - before])
        before += len(piece)
    return torch.cat(found)


def _first(source: Source, most: int) -> Iterator[tuple[Batch, Indices]]:
    for batch, positions in source.blocks(BLOCK):
        yield take(batch, slice(0, most)), positions[:most]
        most -= len(positions)
        if most <= 0:
            return


def nbytes(batch: Batch) -> int:
    """How large a batch is; of other things than numbers, a guess of 100 bytes each."""
    columns = [*batch.values()] if isinstance(batch, dict) else [batch]
    return sum(int(c.nbytes) if isinstance(c, Tensor | np.ndarray) else 100 * size(c) for c in columns)
