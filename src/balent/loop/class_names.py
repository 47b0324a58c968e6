"""Names of classes. The number of a class is its place in the order in which classes were made."""

from collections import Counter
from collections.abc import Sequence
from typing import Any


def checked(given: Any) -> list[str]:
    """The names as a list: texts, no two equal; none if there are none."""
    if given is None:
        return []
    if isinstance(given, str):
        raise TypeError(f"classes must be a list of names, but is the text {given!r}; write classes=[{given!r}, …]")
    names = list(given)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"a class needs a name that can be read, but one is {name!r}")
    _check_distinct(names)
    return names


def new(known: Sequence[str], given: Sequence[str] | None) -> list[str]:
    """The names that are given beyond the known ones. Those of a journal win: fewer names are completed by them."""
    names = checked(given)
    if any(a != b for a, b in zip(known, names, strict=False)):
        raise ValueError(
            f"the classes so far are {', '.join(known)}, in this order, but {', '.join(names)} were given; "
            "leave classes out, or give the first ones as they are and new ones after them"
        )
    _check_distinct([*known, *names[len(known) :]])
    return names[len(known) :]


def check_width(width: int | None, classes: int) -> None:
    """Refuses a model that has not one output per class; one that does not tell is trusted."""
    if classes and width is not None and width != classes:
        raise ValueError(
            f"the model must have one output per class, but it has {width} outputs and there are {classes} classes; "
            f"make a model with {classes} outputs, or give as many names"
        )


def _check_distinct(names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"names of classes must differ, but {repeated[0]!r} is given more than once")
