"""A labelling project: a folder that knows the items, what people said of them, and what a model makes of it.

The page, the command line, files for other tools and Python all use this class. `items.ndjson` says which items there
are, `journal.ndjson` what happened; both are only appended to, and several processes may work side by side. Features,
model, predictions and exports can be made again from these.
"""

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balent.loop.journal import write
from balent.project import questions, settings
from balent.project.classes import checked, checked_key, is_text, key_for, keys, listed
from balent.project.items import Changes, Found, Items, changes
from balent.project.kinds import ARRAY, Kind, array_of, check_fits, holds_features, kind_of
from balent.project.log import Log, held, new_key, now
from balent.project.questions import Item
from balent.project.settings import Look, Settings, absolute
from balent.project.state import DIGITS, FORMAT, Event, State, check_said

if TYPE_CHECKING:
    from balent.project.features import Features
    from balent.project.predictions import Prediction, Ready
    from balent.project.standing import Standing

Say = Callable[[str], None]
Progress = Callable[[int, int], None]
SKIPPED = "skipped.json"


class Project:
    """A project in its folder.  Project("photos.balent"), or Project.create("photos.balent", "photos/", classes=[…])

    path        the project's folder
    data        where the data are now, if they have moved
    say         a function that is called with messages for the user; by default they are warnings
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        data: str | os.PathLike[str] | None = None,
        say: Say = warnings.warn,
    ) -> None:
        self.path, self.say = Path(path), say
        self.settings = settings.read(self.path)
        if data is not None:
            self.settings = self.settings.moved(self.path, Path(data))
            kind_of(self.settings, self.path)
            settings.save(self.path, self.settings)
        self._stamp = (self.path / settings.NAME).stat().st_mtime_ns
        self.items = Items()
        self.state = State(self.items)
        self._journal = Log(self.path / "journal.ndjson", self.path / "lock")
        self._listing = Log(self.path / "items.ndjson", self.path / "items.lock")
        self.look()
        self._add_classes([look.name for look in self.settings.classes])

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        data: str | os.PathLike[str],
        *,
        classes: Sequence[str] = (),
        kind: str | None = None,
        text: str = "",
        id: str = "",
        target: str = "",
        ids: str | os.PathLike[str] | None = None,
        say: Say = warnings.warn,
        progress: Progress | None = None,
        **others: Any,
    ) -> "Project":
        """Makes a project beside the data, and looks for its items. The data are only read.

        path        the project's folder, which must not exist yet
        data        a folder of images, a CSV, JSONL or parquet file, an .npy of features, or shards of features:
                    a folder or a pattern of .npy, .parquet, .tar or .arrow, or s3://…
        classes     names; more can be added at any time
        kind        images, text, table or features; None: by what the data are
        text        the column with the texts
        id          the column with the ids; else ids are made of the contents
        target      a column with labels that are known already
        ids         a file with an id per row: of features that are the data, or of an .npy that `features` names
        say         a function that is called with messages for the user
        progress    a function of the items that were looked at, and their number
        others      more settings: strategy, seed, audit, features, model, … (see Settings)
        """
        place, folder = Path(data), Path(path)
        if (folder / settings.NAME).exists():
            raise FileExistsError(f"{folder} is a project already; open it with Project({str(folder)!r})")
        looks = tuple(Look(name, key) for name, key in keys(listed(classes)).items())
        found = Settings(
            kind or _kind(os.fspath(data), text), "", text=text, id=id, target=target, classes=looks, **others
        )
        found = found.moved(folder, data)
        if ids is not None:
            found = replace(found, ids=os.path.relpath(Path(ids).absolute(), place.absolute().parent))
        if found.model and ".py:" in found.model:
            found = replace(found, model=os.path.relpath(Path(found.model).absolute(), folder.absolute()))
        if found.features.endswith(ARRAY):
            found = replace(found, features=os.path.relpath(Path(found.features).absolute(), place.absolute().parent))
        found = replace(found, features=absolute(found.features), strategy=absolute(found.strategy))
        check_fits(found)
        data_kind = kind_of(found, folder)  # refuses what cannot be read, before anything is written
        items = _listed(data_kind, place, found)
        array_of(found, folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings.save(folder, found)
        project = cls(folder, say=say)
        project.kind = data_kind
        project._take(items, progress)
        return project

    # ── items ───────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def kind(self) -> Kind:
        """The data."""
        return kind_of(self.settings, self.path)

    def change(self, **values: Any) -> None:
        """Changes settings, such as audit, overlap and goal, in project.toml."""
        self._save(lambda found: replace(found, **values))

    def look(self) -> None:
        """Reads what other processes have written since the last look."""
        stamp = (self.path / settings.NAME).stat().st_mtime_ns
        if stamp != self._stamp:
            self.settings, self._stamp = settings.read(self.path), stamp
        self._add(self._journal.news())

    def refresh(self, *, progress: Progress | None = None) -> Changes:
        """Looks for items that are new, renamed, changed or removed. Labels stay with their contents."""
        self.__dict__.pop("kind", None)
        if self.settings.features.endswith(ARRAY):
            self.__dict__.pop("features", None)  # another array may be there by now
        return self._take(_listed(self.kind, self.settings.place(self.path), self.settings), progress)

    def _take(self, found: list[Found], progress: Progress | None) -> Changes:
        """Writes what is new in a listing of the data. Contents are read before the lock is taken: others go on."""
        self.look()
        changes(self.items, _counted(found, progress))
        result = Changes()

        def lines(news: list[Event]) -> list[Event]:
            nonlocal result
            for line in news:
                self.items.add(line)
            result = changes(self.items, found)
            return result.lines

        self._listing.append(lines)
        for line in result.lines:
            self.items.add(line)
        self._import_targets()
        self._note_skipped()
        return result

    def _note_skipped(self) -> None:
        """Keeps what is not an item, and why, for those who do not look at the data."""
        path, reasons = self.path / SKIPPED, json.dumps(self.kind.skipped).encode()
        if (path.read_bytes() if path.exists() else b"{}") != reasons:
            write(path, reasons)

    def id_number(self, id: str) -> int:
        """The number of an item, by an id that it has or had."""
        number = self.items.number(id)
        if number is None:
            raise KeyError(f"the item {id!r} is not known")
        return number

    # ── events ──────────────────────────────────────────────────────────────────────────────────────

    def tell(
        self,
        labels: Mapping[str, str | int | None],
        who: str | None = None,
        *,
        seconds: float | None = None,
        key: str | None = None,
        resolve: bool = False,
        imported: bool = False,
    ) -> int:
        """Records labels by id; they are on disk when this returns. Returns how many are new.

        labels      class names by id (or class numbers); None is unanswered. A later label replaces an earlier one
        who         who gave them
        seconds     how long it took
        key         the event's own id: an event that is known already is not recorded again
        resolve     decides items that people disagree on
        imported    labels that were there before: they never count as answers to random checks

        If one id or class is unknown, nothing is recorded.
        """
        if not isinstance(labels, Mapping):
            raise TypeError(f"labels must be a mapping, as in {{'a.jpg': 'cat'}}, but are {type(labels).__name__}")
        given = {id: label for id, label in labels.items() if label is not None}

        def event() -> Event | None:
            names: dict[str, str] = {}
            for id, label in given.items():
                name = self._class(label)
                if names.setdefault(self._known(id), name) != name:
                    raise ValueError(f"{id!r} was given two labels, by two of its ids; nothing was recorded")
            new = {id: name for id, name in names.items() if resolve or not self._said(id, name, who)}
            extra = {"resolve": True} if resolve else {}
            extra |= {"imported": True} if imported else {}
            return self.event("label", [*new], who, labels=[*new.values()], seconds=seconds, **extra) if new else None

        return self.happen(event, key)

    def skip(self, ids: Iterable[str], who: str | None = None, *, note: str = "", key: str | None = None) -> int:
        """Marks items that cannot be labelled. They are not asked again; a label given later still counts."""
        known = _several(ids)
        return self.happen(lambda: self.event("skip", [self._known(id) for id in known], who, note=note), key)

    def flag(self, ids: Iterable[str], who: str | None = None, *, note: str = "", key: str | None = None) -> int:
        """Marks items for a second look."""
        known = _several(ids)
        return self.happen(lambda: self.event("flag", [self._known(id) for id in known], who, note=note), key)

    def retract(self, ids: Iterable[str], who: str | None = None, *, key: str | None = None) -> int:
        """Takes labels, skips and flags back. Items that were asked are pending again."""
        known = _several(ids)

        def event() -> Event:
            for id in known:
                number = self.id_number(self._known(id))
                if not {number} & {*self.state.last, *self.state.skipped, *self.state.flagged}:
                    raise ValueError(f"{id!r} has no label, skip or flag that could be taken back")
            return self.event("retract", [self._known(id) for id in known], who)

        return self.happen(event, key)

    def add_class(self, name: str, *, key: str = "", note: str = "") -> None:
        """A new class: the model gets a new output."""

        def event() -> Event:
            self._check_look(name, key, note)
            return self.event("class", [], None, labels=[self._unused(name)])

        self.happen(event)
        self.describe_class(name, key=key or self.free_key(name), note=note)

    def rename_class(self, old: str, new: str) -> None:
        """Gives a class another name."""

        def event() -> Event:
            self.state.classes.number(old)
            return self.event("rename", [], None, labels=[old, self._unused(new)])

        self.happen(event)
        self._change_looks(lambda looks: [replace(look, name=new) if look.name == old else look for look in looks])

    def merge_classes(self, one: str, into: str) -> None:
        """Makes the labels of one class labels of another."""

        def event() -> Event:
            if self.state.classes.number(one) == self.state.classes.number(into):
                raise ValueError(f"a class cannot be merged into itself: {one!r}")
            return self.event("merge", [], None, labels=[one, into])

        self.happen(event)
        self._change_looks(lambda looks: [look for look in looks if look.name != one])

    def describe_class(self, name: str, *, key: str | None = None, note: str | None = None) -> None:
        """Sets the key of a class and the note on what belongs to it."""
        self.state.classes.number(name)

        def change(looks: Sequence[Look]) -> list[Look]:
            self._check_look(name, key or "", note or "")
            before = next((look for look in looks if look.name == name), Look(name))
            after = replace(before, **{k: v for k, v in (("key", key), ("note", note)) if v is not None})
            return [after if look is before else look for look in [*looks, *([] if before in looks else [before])]]

        self._change_looks(change)

    # ── asking ──────────────────────────────────────────────────────────────────────────────────────

    def ask(self, k: int = 20, *, wait: bool = True, progress: Progress | None = None) -> list[Item]:
        """The k items to label next; they are pending then.

        k           how many
        wait        computes features that are missing first; else random checks are asked until they are there
        progress    a function of the features that are computed, and their number
        """
        from balent.project import asking

        self.refresh()
        if wait:
            self.compute_features(progress=progress)
        return asking.ask(self, k)

    def question(self, number: int) -> Item:
        """The last question about an item."""
        known = self.items[number]
        return questions.item(self.state.asked[number], known, self.settings.kind, self.kind.content(known.id))

    def pending(self) -> list[Item]:
        """Items that were asked and are neither labelled nor skipped, in the order they were asked."""
        return [self.question(number) for number in self.state.pending if not self.items[number].gone]

    # ── results ─────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def features(self) -> "Features":
        """Rows of numbers by fingerprint."""
        from balent.project.features import Features, maker

        return Features(self.path / "features", maker(self.settings, self.path / "features"))

    def compute_features(self, *, progress: Progress | None = None) -> None:
        """Computes the features that are missing; a process that was stopped is continued by the same call."""
        for note in self.features.compute(self.contents(), progress=progress):
            self.say(note)

    def unreadable(self) -> dict[str, str]:
        """Items without features, and why."""
        bad = self.features.bad if self.features.known() else {}
        known = (self.items[number] for number in self.items.present())
        return {item.id: bad[item.fingerprint] for item in known if item.fingerprint in bad}

    def left_out(self) -> dict[str, str]:
        """What the last look found beside items, and why: links, files that may not be read."""
        path = self.path / SKIPPED
        return json.loads(path.read_bytes()) if path.exists() else {}

    def contents(self) -> dict[str, Callable[[], Any]]:
        """How the content of each fingerprint is read: what features are made of."""
        known = [self.items[number] for number in self.items.present()]
        if (array := array_of(self.settings, self.path)) is not None:
            rows = {self.items.number(id): partial(array.content, id) for id in array.ids}
            return {item.fingerprint: rows.get(item.number, _nothing) for item in known}
        return {item.fingerprint: partial(self.kind.content, item.id) for item in known}

    def predict(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        data: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> list["Prediction"]:
        """Predictions of all items, or of other data of the same kind; written to a CSV file.

        output      the CSV; by default predictions.csv in the project's folder (for other data: none)
        data        other data: a folder, a file
        progress    a function of the features that are computed, and their number
        """
        from balent.project import predictions

        return predictions.predict(self, output, data, progress)

    def load_predictor(self) -> "Ready":
        """The trained model for use elsewhere: a function of contents (paths of images, texts, rows)."""
        from balent.project import predictions

        return predictions.ready(self)

    def status(self, *, progress: Progress | None = None) -> "Standing":
        """Counts, classes, people, accuracy with an interval, and advice.

        progress    a function of the models that are trained to count the accuracy, and their number
        """
        from balent.project import standing

        return standing.Standing(standing.status(self, progress))

    def export(
        self,
        format: str,
        output: str | os.PathLike[str] | None = None,
        *,
        everything: bool = False,
        links: bool = False,
    ) -> Path:
        """Writes labels for other tools; returns where they are.

        format      csv, jsonl, labelstudio, doccano, argilla, cvat, folders or imagenet
        output      a file; for folders and imagenet a folder. By default in exports/ in the project's folder
        everything  unlabelled items too (files only)
        links       links to images instead of copies (folders and imagenet)
        """
        from balent.project import exports

        place = exports.place(self, format) if output is None else Path(output)
        exports.export(self, format, place, everything=everything, links=links)
        return place

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────

    def happen(self, make: Callable[[], Event | None], key: str | None = None) -> int:
        """Writes the event that `make` gives of the newest state, then applies it; returns how many items it names."""

        def events() -> list[Event]:
            event = make() if key is None or key not in self.state.keys else None
            return [] if event is None else [event | ({} if key is None else {"key": key})]

        return self.happen_together(events)

    def happen_together(self, make: Callable[[], list[Event]]) -> int:
        """Several events in one append. A crash can keep the first of them only; `make` is to leave out what is known,
        so that the same call does the rest."""
        made: list[Event] = []

        def lines(news: list[Event]) -> list[Event]:
            self._add(news)
            made.extend(make())
            return made

        self._journal.append(lines)
        for event in made:
            self.state.add(event)
        return sum(max(1, len(event["ids"])) for event in made)

    def event(self, name: str, ids: Sequence[str], who: str | None, **fields: Any) -> Event:
        """An event about items."""
        check_said(who, fields.get("seconds"), fields.get("note"))
        prints = [self.items[self.id_number(id)].fingerprint[:DIGITS] for id in ids]
        about = {"format": FORMAT, "event": name, "key": new_key(), "ids": list(ids), "prints": prints, "labels": []}
        said = {key: value for key, value in fields.items() if value not in (None, "")}
        return {**about, **said, "who": who, "when": now(), "seconds": fields.get("seconds")}

    def _add(self, events: list[Event]) -> None:
        """Items first: an event may name one that another process has just found."""
        for line in self._listing.news():
            self.items.add(line)
        for event in events:
            self.state.add(event)

    def _known(self, id: str) -> str:
        """The present id of an item."""
        if not isinstance(id, str):
            raise TypeError(f"the id of an item is text, but one is {id!r}; nothing was recorded")
        number = self.items.number(id)
        if number is None:
            near = get_close_matches(id, (item.id for item in self.items.all[:5000]), 1)
            raise ValueError(
                f"the item {id!r} is not known"
                + (f"; did you mean {near[0]!r}?" if near else "")
                + "; nothing was recorded"
            )
        return self.items[number].id

    def _class(self, label: str | int) -> str:
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise TypeError(f"a label must be the name of a class, but one is {label!r}; nothing was recorded")
        if isinstance(label, str):
            self.state.classes.number(label)
            return label
        numbers = {number: name for name, number in self.state.classes.names().items()}
        if label not in numbers:
            raise ValueError(f"class numbers are {sorted(numbers)}, but one is {label}; nothing was recorded")
        return numbers[label]

    def _said(self, id: str, name: str, who: str | None) -> bool:
        """Has this person labelled the item so already, and nobody else since?"""
        last = self.state.last.get(self.id_number(id))
        return last is not None and (self.state.classes.name(last.label), last.who) == (name, who)

    def _unused(self, name: str) -> str:
        if checked(name) in self.state.classes:
            raise ValueError(f"the class {name!r} exists already")
        return name

    def free_key(self, name: str) -> str:
        """A key for a class that has none yet; none if all are taken."""
        return key_for(name, (look.key for look in self.settings.classes))

    def _check_look(self, name: str, key: str, note: str) -> None:
        """Raises if a class cannot have this key or this note."""
        checked_key(key)
        if not is_text(note):
            raise ValueError(f"a note must be text, but {note!r} has half a character")
        other = [
            look.name for look in settings.read(self.path).classes if key and look.key == key and look.name != name
        ]
        if other:
            raise ValueError(f"the key {key!r} belongs to another class, {other[0]!r}")

    def _add_classes(self, names: Iterable[str]) -> None:
        """Names that stand in the settings only. A former name is left from a rename that was interrupted."""
        for name in names:
            if name not in self.state.classes and name not in self.state.classes.former:
                self.happen(lambda: self.event("class", [], None, labels=[name]))  # noqa: B023 - called at once

    def _change_looks(self, change: Callable[[Sequence[Look]], Iterable[Look]]) -> None:
        """Changes keys and notes of classes."""
        self._save(lambda found: replace(found, classes=tuple(change(found.classes))))

    def _save(self, change: Callable[[Settings], Settings]) -> None:
        """Changes the settings as they are now; another process may have changed them."""
        with held(self.path / "lock"):
            self.settings = change(settings.read(self.path))
            settings.save(self.path, self.settings)

    def _import_targets(self) -> None:
        """Labels that the data have: a target column, folders named after classes. What people said is not touched."""
        targets = self.kind.targets()
        if self.settings.kind == "images":
            targets = {id: name for id, name in targets.items() if name in self.state.classes}
        new = self._untouched(targets)
        for name in dict.fromkeys(new.values()):
            if name not in self.state.classes:
                self.add_class(name)

        def event() -> Event | None:
            new = self._untouched(targets)
            return self.event("label", [*new], None, labels=[*new.values()], imported=True) if new else None

        self.happen(event)

    def _untouched(self, targets: Mapping[str, str]) -> dict[str, str]:
        """Those of items to which nothing has happened yet."""
        return {id: name for id, name in targets.items() if self.id_number(id) not in self.state.history}


def _kind(words: str, text: str) -> str:
    """What the data are, by what they look like."""
    place = Path(words)
    if holds_features(words):
        return "features"
    if place.is_dir():
        return "images"
    if place.suffix == ".npy":
        return "features"
    return "text" if text else "table"


def _several(ids: Iterable[str]) -> list[str]:
    """One text would be taken for many ids of one character."""
    if isinstance(ids, str):
        raise TypeError(f"ids must be several, as in [{ids!r}], but are one text; nothing was recorded")
    return list(ids)


def _nothing() -> None:
    """The row of an item that an array has no row of."""


def _listed(kind: Kind, place: Path, found: Settings) -> list[Found]:
    """The items of data, at least one."""
    items = [*kind.found()]
    if not items and found.kind == "images":
        raise ValueError(f"{place} has no images; name a folder with files that end in .jpg, .png, .tif, .webp, …")
    if not items:
        raise ValueError(f"{place} has no rows; each item is a row")
    return items


def _counted(found: list[Found], progress: Progress | None) -> Iterable[Found]:
    for done, thing in enumerate(found, 1):
        yield thing
        if progress is not None:
            progress(done, len(found))
