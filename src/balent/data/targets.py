"""Labels in files as class numbers: they are class names or whole numbers, or empty if not known.

Classes are the different labels of the pool, numbers in the order of their values and names in that of
the alphabet. A test set cannot have a class that the pool lacks: nothing could be learnt about it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from balent.data.cells import shown
from balent.data.formats import limits
from balent.data.formats.contents import UNLABELLED

HELD_OUT = 5  # one point in five goes to the test set
TRAIN, TEST, VALIDATION = ("train", "training", "pool"), ("test", "testing"), ("val", "valid", "validation")
PARTS = TRAIN + TEST + VALIDATION  # names of folders and words in tables; validation tests where there is no test part

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)

Label = str | int | float | np.integer | np.floating | None
Where = Callable[[int], str]  # where the i-th label is, for error messages


def as_words(labels: Iterable[Label], where: Where) -> list[str | None]:
    """Each label as a word; None where it is empty. What is neither a name nor a whole number is refused.

    >>> as_words(["cat", " dog ", ""], str), as_words([1.0, 2, None], str)
    (['cat', 'dog', None], ['1', '2', None])
    """
    words = [_word(label, i, where) for i, label in enumerate(labels)]
    numbers = [i for i, word in enumerate(words) if word is not None and NUMBER.fullmatch(word)]
    return _whole_numbers(words, numbers[0], where) if numbers else words


def _whole_numbers(words: list[str | None], first: int, where: Where) -> list[str | None]:
    """Each number written one way, so that 1, 1.0 and 01 are one class."""
    found: list[str | None] = []
    for i, word in enumerate(words):
        if word is not None and not NUMBER.fullmatch(word):
            raise ValueError(
                f"labels must be whole numbers or class names, not both, but {where(i)} has {shown(word)} and "
                f"{where(first)} has {shown(words[first])}"
            )
        found.append(None if word is None else _whole(word))
        if word is not None and found[-1] is None:
            raise ValueError(
                f"labels must be whole numbers 0, 1, … of up to {limits.DIGITS} digits or class names, but {where(i)} "
                f"has {shown(word)}; leave it empty where the label is not known"
            )
    return found


def _whole(word: str) -> str | None:
    """A number that is whole and not negative, else None. Exactly: as floats, numbers from 2⁵³ on are merged."""
    try:
        number = Decimal(word)
    except InvalidOperation:  # an exponent of twenty digits
        return None
    if not number.is_finite() or number.adjusted() >= limits.DIGITS or number < 0:
        return None
    return str(int(number)) if number == number.to_integral_value() else None


def _word(label: Label, i: int, where: Where) -> str | None:
    if label is None or label != label:  # NaN, as tables write nothing
        return None
    if isinstance(label, bool) or not isinstance(label, str | int | float | np.integer | np.floating):
        raise ValueError(f"labels must be whole numbers or class names, but {where(i)} has {shown(label)}")
    if isinstance(label, float | np.floating) and np.isfinite(label) and abs(float(label)) >= _exact(label):
        raise ValueError(
            f"{where(i)} has the label {label} as a floating-point number, and numbers of that size are rounded; save "
            "labels as whole numbers or text"
        )
    return str(label).strip() or None


def _exact(label: float | np.floating) -> int:
    """Below this number, each whole number has a floating-point number of its own: 2⁵³ for 64 bits."""
    return 2 ** (int(np.finfo(type(label)).nmant) + 1)


@dataclass(frozen=True)
class Settled:
    """Labels as numbers: the number of each point, which points are test points, the classes, and notes."""

    y: np.ndarray
    tests: np.ndarray
    names: tuple[str, ...]
    notes: list[str]


def settled(
    words: Sequence[str | None],
    tests: np.ndarray | None,
    keys: Sequence[str],
    where: Where,
    names: tuple[str, ...] = (),
) -> Settled:
    """Labels as numbers. If the test points are not given, they are chosen by hashes of their keys."""
    notes = []
    if tests is None:
        tests, note = held_out(words, keys)
        notes.append(note)
    learnt = class_names(word for word, test in zip(words, tests, strict=True) if not test)
    _check_tests(words, tests, learnt, where)
    names = names or learnt
    waiting = sum(word is None for word in words)
    notes += [f"{waiting} of {len(words)} points have no label"] if waiting else []
    at = {name: i for i, name in enumerate(names)}
    y = np.array([UNLABELLED if word is None else at[word] for word in words], np.int64)
    return Settled(y, tests, names, notes)


def class_names(words: Iterable[str | None]) -> tuple[str, ...]:
    """The different labels, in order."""
    found = {word for word in words if word is not None}
    numbers = all(word.isascii() and word.isdecimal() for word in found)
    return tuple(sorted(found, key=lambda word: (int(word), word)) if numbers else sorted(found))


def _check_tests(words: Sequence[str | None], tests: np.ndarray, learnt: tuple[str, ...], where: Where) -> None:
    """Every point of a test set has a label, and one that occurs in the pool."""
    classes = set(learnt)
    for i in np.flatnonzero(tests).tolist():
        if words[i] is None:
            raise ValueError(f"a test set needs labels, but {where(i)} has none; move it to the training part")
        if words[i] not in classes:
            there = ", ".join(learnt[:10]) + (", …" if len(learnt) > 10 else "")
            raise ValueError(
                f"{where(i)} is of class {shown(words[i])} in the test set, which does not occur in the training part; "
                f"classes there are {there or 'none'}"
            )


def parts(words: Sequence[str], where: Where) -> np.ndarray:
    """Which points are test points, from a column with train or test (or validation)."""
    said = [word.strip().lower() for word in words]
    for i, word in enumerate(said):
        if word not in PARTS:
            raise ValueError(f"a split is train or test, but {where(i)} has {shown(words[i])}")
    has_test = any(word in TEST for word in said)
    for i, word in enumerate(said):
        if word in VALIDATION and has_test:
            raise ValueError(
                f"a split is train or test, but {where(i)} has {shown(words[i])} beside test; leave those rows out"
            )
    return np.array([word not in TRAIN for word in said], bool)


def held_out(words: Sequence[str | None], keys: Sequence[str]) -> tuple[np.ndarray, str]:
    """Test points: one in five labelled points of each class, by the smallest hashes of their keys. And a note."""
    of_class: dict[str, list[tuple[bytes, int]]] = {}
    for i, (word, key) in enumerate(zip(words, keys, strict=True)):
        if word is not None:
            digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
            of_class.setdefault(word, []).append((digest, i))
    tests = np.zeros(len(words), bool)
    for members in of_class.values():
        tests[[i for _, i in sorted(members)[: len(members) // HELD_OUT]]] = True
    return tests, (
        f"there is no test part: one in {HELD_OUT} labelled points of each class is held out ({int(tests.sum())} of "
        f"{len(words)}), always the same ones"
    )
