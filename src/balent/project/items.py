"""Items: what there is to label, each with a number, an id and a fingerprint.

    {"item": 0, "id": "a/1.jpg", "fingerprint": "5e8…", "size": 1200, "mtime": 17…, "seen": "2026-…"}    a new item
    {"item": 0, "id": "b/1.jpg", "was": "a/1.jpg", …}                                                  it was renamed
    {"item": 0, "id": "b/1.jpg", "fingerprint": "77c…", …}                                             it was changed
    {"item": 0, "id": "b/1.jpg", "gone": "2026-…"}                                                      it was removed

`items.ndjson` is only appended to. Numbers are given in order of appearance, and never again, so they are positions of
the pool for the life of a project. The fingerprint is the sha256 of the content: by it a renamed item is found again.
Later lines of an item replace what earlier ones said; ids and fingerprints that it had before are remembered. No torch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from balent.project.log import now

Line = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """An item as it is now. A file whose size and time are those of the last look needs no new fingerprint.

    `fingerprint` reads the content once, however often it is called.
    """

    id: str
    fingerprint: Callable[[], str]
    size: int | None = None
    mtime: int | None = None


@dataclass
class Known:
    """An item, and what it was before."""

    number: int
    id: str
    fingerprint: str
    size: int | None = None
    mtime: int | None = None
    gone: bool = False
    ids: set[str] = field(default_factory=set)
    prints: set[str] = field(default_factory=set)


class Items:
    """All items that were ever seen, by number."""

    def __init__(self) -> None:
        self.all: list[Known] = []
        self._by_id: dict[str, int] = {}
        self._named: dict[str, list[int]] = {}  # by any id that an item ever had
        self.version = 0  # how many lines were added

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, number: int) -> Known:
        return self.all[number]

    def add(self, line: Line) -> None:
        """A line of the file."""
        self.version += 1
        number = line["item"]
        if number > len(self.all):
            raise ValueError(f"items.ndjson names item {number} before item {len(self.all)}; restore the file")
        if number == len(self.all):
            self.all.append(Known(number, line["id"], line["fingerprint"]))
        item = self.all[number]
        item.id, item.fingerprint = line["id"], line.get("fingerprint", item.fingerprint)
        item.size, item.mtime, item.gone = line.get("size"), line.get("mtime"), "gone" in line
        item.ids.add(item.id)
        item.prints.add(item.fingerprint)
        self._by_id[item.id] = number
        named = self._named.setdefault(item.id, [])
        if number not in named:
            named.append(number)

    def present(self) -> list[int]:
        """Numbers of the items that the last look found."""
        return [item.number for item in self.all if not item.gone]

    def at(self, id: str) -> Known | None:
        """The item that has this id now."""
        item = self.all[self._by_id[id]] if id in self._by_id else None
        return item if item is not None and item.id == id else None

    def number(self, id: str, print: str | None = None) -> int | None:
        """The item of an id, present or former. Where several had it, that of the fingerprint, else the present one."""
        had = self._named.get(id, [])
        if print is not None:
            had = [n for n in had if any(of.startswith(print) for of in self.all[n].prints)] or had
        current = self.at(id)
        if current is not None and current.number in had:
            return current.number
        return had[-1] if had else None

    def duplicates(self) -> dict[int, int]:
        """Items whose content another present item has too: their number, and that of the first one."""
        first: dict[str, int] = {}
        owners = {n: first.setdefault(self.all[n].fingerprint, n) for n in self.present()}
        return {n: owner for n, owner in owners.items() if n != owner}


@dataclass
class Changes:
    """What a look at the data found, and the lines that say so."""

    lines: list[Line] = field(default_factory=list)
    present: set[int] = field(default_factory=set)
    new: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)  # id: what it was
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def changes(items: Items, found: Iterable[Found]) -> Changes:
    """What is new, renamed, changed and removed.

    Contents decide: an item whose content stands under another id now was renamed, even if its id is in use again.
    """
    here = {thing.id: thing for thing in found}
    result = Changes()
    moved: dict[str, Found] = {}  # ids that are new, or have other content than before
    prints: dict[str, str] = {}
    for id, thing in here.items():
        item = items.at(id)
        if item is not None and _untouched(item, thing):
            result.present.add(item.number)
            continue
        prints[id] = thing.fingerprint()
        if item is not None and item.fingerprint == prints[id]:
            result.present.add(item.number)
            if item.gone or item.mtime != thing.mtime:
                result.lines.append(_line(item.number, thing, prints[id]))
        else:
            moved[id] = thing
    missing = [item for item in items.all if item.number not in result.present]
    _rename(result, missing, moved, prints)
    _replace(result, [item for item in missing if item.number not in result.present], moved, prints)
    _append(result, len(items), moved, prints)
    _remove(result, [item for item in missing if item.number not in result.present and not item.gone])
    return result


def _untouched(item: Known, thing: Found) -> bool:
    return not item.gone and item.mtime is not None and (item.size, item.mtime) == (thing.size, thing.mtime)


def _rename(result: Changes, missing: list[Known], moved: dict[str, Found], prints: Mapping[str, str]) -> None:
    """Items that are not where they were, but are elsewhere."""
    places: dict[str, list[str]] = {}
    for id in moved:
        places.setdefault(prints[id], []).append(id)
    for item in missing:
        if places.get(item.fingerprint):
            id = places[item.fingerprint].pop(0)
            result.present.add(item.number)
            result.renamed[id] = item.id
            result.lines.append(_line(item.number, moved.pop(id), item.fingerprint) | {"was": item.id})


def _replace(result: Changes, missing: list[Known], moved: dict[str, Found], prints: Mapping[str, str]) -> None:
    """Items that are where they were, with other content."""
    for item in missing:
        if item.id in moved:
            result.present.add(item.number)
            result.changed.append(item.id)
            result.lines.append(_line(item.number, moved.pop(item.id), prints[item.id]))


def _append(result: Changes, first: int, moved: dict[str, Found], prints: Mapping[str, str]) -> None:
    when = now()
    for number, (id, thing) in enumerate(moved.items(), first):
        result.present.add(number)
        result.new.append(id)
        result.lines.append(_line(number, thing, prints[id]) | {"seen": when})


def _remove(result: Changes, missing: list[Known]) -> None:
    when = now()
    for item in missing:
        result.removed.append(item.id)
        result.lines.append({"item": item.number, "id": item.id, "fingerprint": item.fingerprint, "gone": when})


def _line(number: int, thing: Found, print: str) -> Line:
    stamp = {} if thing.mtime is None else {"size": thing.size, "mtime": thing.mtime}
    return {"item": number, "id": thing.id, "fingerprint": print, **stamp}
