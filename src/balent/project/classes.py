"""Classes: names with numbers. Numbers follow the order of creation and are never given again. No torch here."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 200  # characters of a name
KEYS = "1234567890qwertyiopadghjklxcvbm"  # that label on the page
TAKEN = "usfnz?/"  # these do something else there: undo, skip, flag, new class, zoom, help, find


class Classes:
    """Names may change and classes may be merged; a number means the same class for the life of a project."""

    def __init__(self) -> None:
        self._names: list[str] = []  # by number
        self._into: dict[int, int] = {}  # merged ones: where they went
        self.former: set[str] = set()  # names that classes had before

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def __len__(self) -> int:
        return len(self._names) - len(self._into)

    def names(self) -> dict[str, int]:
        """The classes there are, in the order of their numbers."""
        return {name: number for number, name in enumerate(self._names) if number not in self._into}

    def name(self, number: int) -> str:
        """Of a class, or of the class that it was merged into."""
        return self._names[self.of(number)]

    def of(self, number: int) -> int:
        """The number that a class has now."""
        while number in self._into:
            number = self._into[number]
        return number

    def number(self, name: str) -> int:
        """Of a name; the error names similar ones."""
        known = self.names()
        if name not in known:
            near = get_close_matches(name, known, 3) or list(known)
            listed = f"known are {', '.join(map(repr, near[:10]))}" if known else "there are none yet"
            raise ValueError(f"the class {name!r} is not known; {listed}; add it with balent classes PROJECT --add")
        return known[name]

    def add(self, name: str) -> None:
        if name in self.names():
            raise ValueError(f"the class {name!r} exists already")
        self._names.append(checked(name))
        self.former.discard(name)

    def rename(self, old: str, new: str) -> None:
        number = self.number(old)
        if new in self.names():
            raise ValueError(f"the class {new!r} exists already; to join both, merge {old!r} into it")
        self._names[number] = checked(new)
        self.former = (self.former | {old}) - {new}

    def merge(self, one: str, into: str) -> None:
        """Labels of one class are labels of the other from now on."""
        if one == into:
            raise ValueError(f"a class cannot be merged into itself: {one!r}")
        self._into[self.number(one)] = self.number(into)
        self.former.add(one)


def checked(name: object) -> str:
    """A name: one line of text, not empty, without blanks around it."""
    if not isinstance(name, str) or not name.strip() or name != name.strip() or len(name) > LONGEST:
        raise ValueError(f"a class name must be text of 1 to {LONGEST} characters, but one is {name!r}")
    if any(ord(character) < 32 or ord(character) == 127 for character in name) or not is_text(name):
        raise ValueError(f"a class name must be one line of text, but one is {name!r}")
    return name


def is_text(value: str) -> bool:
    """Without half characters, which neither TOML nor UTF-8 can hold."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def listed(names: Iterable[object]) -> list[str]:
    """Names as they are given: each once."""
    found = [checked(name) for name in names]
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise ValueError(f"class names must differ, but {twice[0]!r} is given twice")
    return found


def keys(names: Iterable[str]) -> dict[str, str]:
    """A key for each class: its own name if that is a key, else the next free one; none when all are taken.

    >>> keys(["cat", "s", "x", "1"])
    {'cat': '2', 's': '3', 'x': 'x', '1': '1'}
    """
    given = list(names)
    found: dict[str, str] = {}
    for name in sorted(given, key=lambda name: not _is_key(name)):
        found[name] = key_for(name, found.values())
    return {name: found[name] for name in given}


def key_for(name: str, used: Iterable[str]) -> str:
    """The key of one more class."""
    taken = set(used)
    own = [name.lower()] if _is_key(name) else []
    return next((key for key in [*own, *KEYS] if key not in taken), "")


def _is_key(name: str) -> bool:
    return len(name) == 1 and name.lower() in KEYS


def checked_key(key: str) -> None:
    """Raises if a key cannot label."""
    if key and (len(key) != 1 or not key.isprintable() or key.isspace() or key.lower() in TAKEN):
        raise ValueError(f"a key is one character, and not one of {' '.join(TAKEN)}, but {key!r} is given")
