"""Answers in the files of other tools, read as answers of ours: `balent tell` takes them as they are.

    .json       Label Studio's JSON export (not JSON-MIN, which has no ids of ours); Argilla's records
    .jsonl      doccano's lines, whose `label` is a list
    .zip        CVAT's ImageNet archive: CLASS/FILE, or a .txt with numbers of classes and synsets.txt; or doccano's
                archive with a .jsonl per person
    .parquet    Argilla's records as a table, as Hugging Face data sets have them

Files are material, never instructions: nothing is unpacked to disk, nothing is executed, names that lead out of an
archive are refused, and so is an archive that grows beyond measure. Images in an archive are not looked at: their
names say which items they are. No torch here.
"""

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from balent.data.cells import shown
from balent.data.formats.endings import ENDINGS
from balent.data.formats.parquet import arrow
from balent.project import class_folders
from balent.project.exchange import JSON, Reply, read_answers

if TYPE_CHECKING:
    from balent.project.project import Project

ZIP = b"PK\x03\x04"
LARGEST = 512 * 2**20  # bytes of a text in an archive, unpacked, and of a file
MEMBERS = 2_000_000
SYNSETS = "synsets.txt"
NO_LABEL = "no_label"  # the folder of images without one
QUESTION = "label"
Line = dict[str, Any]


def read(path: Path, project: "Project") -> list[Reply]:
    """The answers of a file, whatever tool has written it."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == ZIP and (names := _names(path)) and "[Content_Types].xml" not in names:
        return _archive(path, names, Names(project))
    ending = path.suffix.lower()
    if ending == ".json":
        return _json(path, _parsed(path.name, _bytes(path)), Names(project))
    if ending == ".parquet":
        return _argilla(_rows(path), str(path))
    if ending in JSON and (lines := _doccano_lines(path.name, _bytes(path))):
        return _doccano(lines, Names(project))
    return read_answers(path)


@dataclass
class Names:
    """Ids of items by the names that other tools give them."""

    project: "Project"

    def __post_init__(self) -> None:
        ids = [item.id for item in self.project.items.all]
        self._written = {class_folders.name(id): id for id in ids}
        self._last: dict[str, str | None] = {}
        for id in ids:
            last = id.rpartition("/")[2]
            self._last[last] = None if last in self._last else id

    def id(self, name: str) -> str:
        """As it stands, as our folders by class write it, or by its last part if only one item has that."""
        if self.project.items.number(name) is not None:
            return name
        return self._written.get(name) or self._last.get(name.rpartition("/")[2]) or name


# ── Label Studio and Argilla ─────────────────────────────────────────────────────────────────────────


def _json(path: Path, found: object, names: Names) -> list[Reply]:
    lines = found if isinstance(found, list) else []
    if lines and all(isinstance(line, dict) for line in lines):
        if all("annotations" in line and "data" in line for line in lines):
            return _labelstudio(lines, names)
        if all("fields" in line or f"{QUESTION}.responses" in line for line in lines):
            return _argilla(lines, str(path))
        if all("annotation_id" in line for line in lines):
            raise ValueError(f"{path} is Label Studio's JSON-MIN, which has lost our ids; export JSON instead")
    raise ValueError(
        f"{path} must be a list of tasks of Label Studio (data, annotations) or of records of Argilla (fields, "
        "responses); other answers are CSV or JSONL"
    )


def _labelstudio(tasks: Sequence[Line], names: Names) -> list[Reply]:
    """The last annotation of each person. Line numbers are those of tasks."""
    found = list[Reply]()
    for number, task in enumerate(tasks, 1):
        data = task["data"] if isinstance(task["data"], dict) else {}
        given = [line for line in task["annotations"] or () if isinstance(line, dict)]
        last: dict[str | None, Line] = {}
        for annotation in sorted(given, key=lambda line: str(line.get("updated_at") or "")):
            last[_person(annotation.get("completed_by"))] = annotation
        id = _task_id(number, data, names)
        found += [_annotated(number, id, who, line, data) for who, line in last.items()] or [Reply(number, id)]
    return found


def _task_id(number: int, data: Line, names: Names) -> str:
    if isinstance(id := data.get("id"), str | int) and not isinstance(id, bool):
        return str(id)
    image = data.get("image")
    if not isinstance(image, str):
        raise ValueError(f"task {number} has neither our id nor an image; import tasks that balent has exported")
    return names.id(image.rpartition("?d=")[2].rpartition("://")[2])


def _annotated(number: int, id: str, who: str | None, annotation: Line, data: Line) -> Reply:
    print = data.get("fingerprint")
    about: dict[str, Any] = {"who": who, "fingerprint": print if isinstance(print, str) else None}
    if annotation.get("was_cancelled"):
        return Reply(number, id, skip=True, **about)
    results = [line for line in annotation.get("result") or () if isinstance(line, dict)]
    values = [line.get("value") for line in results if line.get("type") == "choices"]
    chosen = [name for value in values if isinstance(value, dict) for name in value.get("choices") or ()]
    return Reply(number, id, _one(number, chosen), **about)


def _person(given: object) -> str | None:
    """A user, or its number; names are not in the file then."""
    if isinstance(given, dict):
        return str(given.get("email") or f"user {given.get('id')}")
    return None if given is None else f"user {given}"


def _argilla(records: Iterable[Line], source: str) -> list[Reply]:
    """Nested, as `records.json` of a data set on disk, or flat, as a table."""
    found = list[Reply]()
    for number, record in enumerate(records, 1):
        id = record.get("id")
        if not isinstance(id, str | int) or isinstance(id, bool):
            raise ValueError(
                f"{source}, record {number}: it has no id; log records with the ids that balent has exported"
            )
        given = [*_responses(number, record)]
        found += [_response(number, str(id), *line) for line in given] or [Reply(number, str(id))]
    return found


def _responses(number: int, record: Line) -> Iterator[tuple[object, object, object]]:
    """The value, the user and the state of each response to the question `label`."""
    nested = record.get("responses")
    if isinstance(nested, dict):
        if nested and QUESTION not in nested:
            raise ValueError(
                f"record {number} answers {', '.join(map(shown, nested))}, but the question must be {QUESTION!r}"
            )
        for line in nested.get(QUESTION) or ():
            if isinstance(line, dict):
                yield line.get("value"), line.get("user_id"), line.get("status")
        return
    columns = [record.get(f"{QUESTION}.responses{part}") for part in ("", ".users", ".status")]
    values, users, states = (column if isinstance(column, list) else [] for column in columns)
    for i, value in enumerate(values):
        yield value, (users[i] if i < len(users) else None), (states[i] if i < len(states) else None)


def _response(number: int, id: str, value: object, user: object, state: object) -> Reply:
    who = None if user in (None, "", "None") else str(user)
    if state == "discarded":
        return Reply(number, id, who=who, skip=True)
    if state == "draft":
        return Reply(number, id)
    return Reply(number, id, _one(number, value if isinstance(value, list) else [value]), who)


def _rows(path: Path) -> list[Line]:
    _, parquet = arrow()
    try:
        found = parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        raise ValueError(f"{path} cannot be read as parquet: {error}") from None
    if found.nbytes > LARGEST:
        raise ValueError(f"{path} has more than {LARGEST:,} bytes of records; export it in parts")
    rows: list[Line] = found.to_pylist()
    return rows


# ── doccano ──────────────────────────────────────────────────────────────────────────────────────────


def _doccano_lines(name: str, content: bytes) -> list[tuple[int, Line]]:
    """Its lines with their numbers, if it is doccano's: every label is a list. Else none, and others read the file."""
    found = list[tuple[int, Line]]()
    for number, text in enumerate(content.splitlines(), 1):
        if text.strip():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                return []
            if not isinstance(line, dict) or not isinstance(line.get("label"), list):
                return []
            found.append((number, line))
    return found


def _doccano(lines: Iterable[tuple[int, Line]], names: Names, who: str | None = None) -> list[Reply]:
    found = list[Reply]()
    for number, line in lines:
        name = line.get("filename")
        id = names.id(name) if isinstance(name, str) else line.get("id")
        if not isinstance(id, str | int) or isinstance(id, bool):
            raise ValueError(f"line {number} has neither an id nor the name of a file")
        found.append(Reply(number, str(id), _one(number, line["label"]), who))
    return found


# ── archives ─────────────────────────────────────────────────────────────────────────────────────────


def _names(path: Path) -> list[str]:
    """The files in an archive, each within it."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(f"{path} is a damaged zip archive: {error}; export it again") from None
    if len(found) > MEMBERS:
        raise ValueError(f"{path} has {len(found):,} files, but at most {MEMBERS:,} are read")
    for name in found:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\\" in name or ":" in parts[0]:
            raise ValueError(
                f"{path} has a file that leads out of the archive, {shown(name)}; nothing of it was recorded"
            )
    return found


def _archive(path: Path, names: Sequence[str], known: Names) -> list[Reply]:
    with zipfile.ZipFile(path) as archive:
        if people := [name for name in names if name.lower().endswith(JSON)]:
            return _people(path, people, lambda name: _member(path, archive, name), known)
        lists = [name for name in names if name.lower().endswith(".txt")]
        if not lists:
            return _class_folders(path, names, known)
        if SYNSETS not in {PurePosixPath(name).name for name in lists}:
            raise ValueError(f"{path} has lists of images, but no {SYNSETS} with the names of the classes")
        return _image_lists(lists, lambda name: _member(path, archive, name), known)


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """A text in an archive: what it really unpacks to is counted, whatever it claims."""
    try:
        with archive.open(name) as file:
            content = file.read(LARGEST + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise ValueError(f"{path}: {shown(name)} cannot be read: {error}") from None
    if len(content) > LARGEST:
        raise ValueError(f"{path}: {shown(name)} has more than {LARGEST:,} bytes; export it in parts")
    return content


def _people(path: Path, files: Sequence[str], content: Callable[[str], bytes], known: Names) -> list[Reply]:
    """doccano writes a file for each person, named after her."""
    found = list[Reply]()
    for name in files:
        lines = _doccano_lines(name, text := content(name))
        if not lines and text.strip():
            raise ValueError(f"{path}: {shown(name)} is not a file of doccano, whose lines have a list as label")
        found += _doccano(lines, known, PurePosixPath(name).stem)
    return found


def _class_folders(path: Path, names: Sequence[str], known: Names) -> list[Reply]:
    """CLASS/FILE; the rest of the name, folders included, is that of the item."""
    images = [name for name in names if name.lower().endswith(ENDINGS)]
    if not images or any("/" not in name for name in images):
        raise ValueError(f"{path} must have images in a folder per class, or a list of images and {SYNSETS}")
    found = list[Reply]()
    for number, name in enumerate(images, 1):
        label, _, rest = name.partition("/")
        found.append(Reply(number, known.id(rest), None if label == NO_LABEL else label))
    return found


def _image_lists(lists: Sequence[str], content: Callable[[str], bytes], known: Names) -> list[Reply]:
    """Lines of a name and numbers of classes; a name with blanks has quotes around it, before its ending."""
    (synsets,) = (name for name in lists if PurePosixPath(name).name == SYNSETS)
    classes = [line.strip() for line in _text(synsets, content(synsets)).splitlines() if line.strip()]
    found = list[Reply]()
    for name in lists:
        if name != synsets:
            for number, line in enumerate(_text(name, content(name)).splitlines(), 1):
                found += [_listed(number, line, classes, known)] if line.strip() else []
    return found


def _listed(number: int, line: str, classes: Sequence[str], known: Names) -> Reply:
    parts = line.split('"')
    if len(parts) == 3 and not parts[0].strip():
        ending, *given = parts[2].split(" ")
        name = parts[1] + ending
    else:
        name, *given = line.split()
    chosen = [word for word in given if word]
    if not all(word.isascii() and word.isdigit() and int(word) < len(classes) for word in chosen):
        raise ValueError(
            f"line {number}: classes are numbers from 0 to {len(classes) - 1}, but it has {shown(' '.join(chosen))}"
        )
    return Reply(number, known.id(name), _one(number, [classes[int(word)] for word in chosen]))


# ── what all have ────────────────────────────────────────────────────────────────────────────────────


def _one(number: int, labels: Sequence[object]) -> str | None:
    """The one label of an answer; None if it has none."""
    if len(labels) > 1:
        raise ValueError(
            f"line {number} has {len(labels)} labels, but an item has one: {', '.join(map(shown, labels))[:200]}"
        )
    label = labels[0] if labels else None
    if label is not None and not isinstance(label, str):
        raise ValueError(f"line {number}: a label must be the name of a class, but is {shown(label)}")
    return (label or "").strip() or None


def _bytes(path: Path) -> bytes:
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} has more than {LARGEST:,} bytes; export it in parts")
    return path.read_bytes().removeprefix(b"\xef\xbb\xbf")


def _parsed(name: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON that can be read: {error}") from None


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{shown(name)} must be UTF-8: {error}") from None
