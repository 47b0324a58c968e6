"""Honest accuracy: random checks, and what they say of the model.

Labels that a strategy chose are not a sample of the data, so accuracy on them says little. A fifth of the items, at
most 2,000, is a reserve: chosen by a hash of (seed, fingerprint), and never picked by a strategy. Every fifth question
is the next item of the reserve, in the order of the hash, and is asked without the model's guess. Its labels are
trained on too: accuracy is counted by cross-fitting, where each is judged by a model that has not seen it.

The interval is Wilson's, and approximate: the folds' models depend on each other, and each has seen fewer labels than
the model that is used, so it is usually a little pessimistic. No torch here.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

SHARE = 0.2  # of items in the reserve
MOST = 2000
FOLDS = 5
FEWEST = 20  # random checks from which on accuracy is shown
PER_CLASS = 10  # random checks of a class from which on its recall is shown
Z95, Z99 = 1.959963984540054, 2.5758293035489004  # two-sided 95 %, 99 %: quantiles of the normal distribution


def draw(seed: int, fingerprint: str) -> float:
    """A number between 0 and 1 that belongs to a content."""
    digest = hashlib.sha256(f"audit {seed} {fingerprint}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def reserve(seed: int, prints: Mapping[int, str]) -> list[int]:
    """The items of the reserve, in random order. Later items can push others out, but bring none of the old ones in."""
    drawn = {number: draw(seed, print) for number, print in prints.items()}
    return sorted((n for n in drawn if drawn[n] < SHARE), key=drawn.__getitem__)[:MOST]


def is_check(question: int, every: int) -> bool:
    """Is the question of this number, counted from 1, a random check?"""
    return every > 0 and question % every == 0


def folds(audited: Iterable[int]) -> list[list[int]]:
    """Labels of random checks in parts of about the same size."""
    some = list(audited)
    return [part for part in (some[i::FOLDS] for i in range(FOLDS)) if part]


@dataclass(frozen=True)
class Interval:
    """How many were right, and between which shares the accuracy lies with 95 % confidence."""

    right: int
    of: int

    @property
    def low(self) -> float:
        return wilson(self.right, self.of)[0]

    @property
    def high(self) -> float:
        return wilson(self.right, self.of)[1]

    def __str__(self) -> str:
        return f"right on {self.right} of {self.of} random items: {100 * self.low:.0f}–{100 * self.high:.0f} %"


@dataclass(frozen=True)
class OfLabels:
    """Random checks of items with several labels.

    whole  items on which every label is right (subset accuracy)
    each   for each label, items on which it is right, whether it holds or not
    """

    whole: Interval
    each: tuple[Interval, ...]

    @classmethod
    def of(cls, guesses: Sequence[Collection[int]], truth: Sequence[Collection[int]], labels: int) -> "OfLabels":
        """From the labels that hold of each checked item: as a model that has not seen it says, and as a person says.

        >>> found = OfLabels.of([{0}, {0, 1}, set()], [{0}, {0}, set()], 2)
        >>> found.whole.right, [interval.right for interval in found.each]
        (2, [3, 2])
        """
        if len(guesses) != len(truth) or not truth:
            raise ValueError(
                f"every checked item needs a guess, but there are {len(truth)} items, {len(guesses)} guesses"
            )
        pairs = [(set(guess), set(true)) for guess, true in zip(guesses, truth, strict=True)]
        each = (sum((label in guess) == (label in true) for guess, true in pairs) for label in range(labels))
        whole = sum(guess == true for guess, true in pairs)
        return cls(Interval(whole, len(pairs)), tuple(Interval(right, len(pairs)) for right in each))


def wilson(right: int, of: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's (1927) interval of a share.

    >>> [round(x, 3) for x in wilson(56, 80)]
    [0.592, 0.789]
    """
    share, spread = right / of, z * z / of
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, centre - half), min(1.0, centre + half)


def more_for(right: int, of: int, half: float = 0.03) -> int:
    """How many more random checks make the interval ±3 points wide, if the accuracy is what it seems."""
    share = min(max(right / of, 1 / of), 1 - 1 / of)
    return max(0, math.ceil(Z95 * Z95 * share * (1 - share) / half**2) - of)


def kappa(pairs: Iterable[tuple[int, int]]) -> float | None:
    """Cohen's (1960) κ of two people: agreement beyond chance. None where it is not defined.

    >>> kappa([(0, 0), (0, 0), (1, 1), (0, 1)])
    0.5
    """
    both = list(pairs)
    if not both:
        return None
    share = sum(a == b for a, b in both) / len(both)
    first, second = zip(*both, strict=True)
    chance = sum(first.count(c) * second.count(c) for c in set(first)) / len(both) ** 2
    return None if chance == 1 else (share - chance) / (1 - chance)
