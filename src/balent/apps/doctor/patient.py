"""What is examined: some points of a pool, the model's draws on them, and labels.

Everything is worked out once, when the first check asks for it. A project and a model with its pool differ in where the
facts come from: `Evidence`. Nothing is written.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch

from balent import adapt
from balent.apps.doctor.finding import Incomparable, Missing, Silent
from balent.apps.doctor.looked import SAMPLE, Blocks, Sample, looked_at
from balent.apps.doctor.tallies import Audit, Equal, HeldOut, LabelSet
from balent.batches import take
from balent.maths.moments import Moments
from balent.types import Batch, Features, Sampled, Source

ANSWERED = 1024  # points on which the model is evaluated


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
            reason = "these points are not vectors, and no model has features of them"
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
