"""What is known of labelled points, of equal points, and of random checks."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


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
