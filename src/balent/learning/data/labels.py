"""Labels as people write them, as numbers: class names or whole numbers, and nothing where nobody has said yet.

Classes are the different labels of the pool, numbers in the order of their values and names in that of
the alphabet. A test set has no class of its own: nothing could be learnt about it.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from balent.learning.data.contents import UNLABELLED

HELD_OUT = 5  # one in so many tests
TRAIN, TEST, VALIDATION = ("train", "training", "pool"), ("test", "testing"), ("val", "valid", "validation")
PARTS = TRAIN + TEST + VALIDATION  # names of folders and words in tables; validation tests where there is no test part

Label = str | int | float | None
Where = Callable[[int], str]  # where the i-th label stands, for people


def as_words(labels: Iterable[Label], where: Where) -> list[str | None]:
    """Each label as a word; None where it is empty. What is neither a name nor a whole number is refused.

    >>> as_words(["cat", " dog ", ""], str), as_words([1.0, 2, None], str)
    (['cat', 'dog', None], ['1', '2', None])
    """
    words = [_word(label, i, where) for i, label in enumerate(labels)]
    numbers = [i for i, word in enumerate(words) if word is not None and _is_number(word)]
    if not numbers:
        return words
    for i, word in enumerate(words):
        if word is not None and not _is_number(word):
            first = numbers[0]
            raise ValueError(
                f"labels must be whole numbers or class names, not both, but {where(i)} has {word!r} and "
                f"{where(first)} has {words[first]!r}"
            )
        if word is not None and not (float(word).is_integer() and float(word) >= 0):
            raise ValueError(
                f"labels must be whole numbers 0, 1, … or class names, but {where(i)} has {word!r}; leave it empty "
                "where nobody has said yet"
            )
    return [None if word is None else str(int(float(word))) for word in words]


def _word(label: Label, i: int, where: Where) -> str | None:
    if label is None or label != label:  # NaN, as tables write nothing
        return None
    if isinstance(label, bool) or not isinstance(label, str | int | float | np.integer | np.floating):
        raise ValueError(f"labels must be whole numbers or class names, but {where(i)} has {label!r}")
    return str(label).strip() or None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Settled:
    """What labels come to: the number of each point, which points test, the classes, and what to say of it."""

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
    """Labels as numbers. Where nobody says which points test, hashes of their keys do."""
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
    return tuple(sorted(found, key=int) if all(word.isdecimal() for word in found) else sorted(found))


def _check_tests(words: Sequence[str | None], tests: np.ndarray, learnt: tuple[str, ...], where: Where) -> None:
    """Every point of a test set has a label, and one that occurs in the pool."""
    classes = set(learnt)
    for i in np.flatnonzero(tests).tolist():
        if words[i] is None:
            raise ValueError(f"a test set needs labels, but {where(i)} has none; move it to the training part")
        if words[i] not in classes:
            shown = ", ".join(learnt[:10]) + (", …" if len(learnt) > 10 else "")
            raise ValueError(
                f"{where(i)} is of class {words[i]!r} in the test set, which does not occur in the training part; "
                f"classes there are {shown or 'none'}"
            )


def parts(words: Sequence[str], where: Where) -> np.ndarray:
    """Which points test, from a column that says train or test (or validation, for the same)."""
    said = [word.strip().lower() for word in words]
    for i, word in enumerate(said):
        if word not in PARTS:
            raise ValueError(f"a split is train or test, but {where(i)} has {words[i]!r}")
    has_test = any(word in TEST for word in said)
    for i, word in enumerate(said):
        if word in VALIDATION and has_test:
            raise ValueError(
                f"a split is train or test, but {where(i)} has {words[i]!r} beside test; leave those rows out"
            )
    return np.array([word not in TRAIN for word in said], bool)


def held_out(words: Sequence[str | None], keys: Sequence[str]) -> tuple[np.ndarray, str]:
    """One in five of the labelled points of each class tests: those whose keys have the smallest hashes. And a note."""
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
