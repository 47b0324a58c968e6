"""Labels for other tools: files, and folders of images by class.

    csv, jsonl      id, label, who, when, probability, guess, fingerprint; jsonl also has the content
    labelstudio     tasks with annotations and predictions, as Label Studio imports them
    doccano         a line per text (or image) with its labels
    argilla         records, as `records.json` of a data set of Argilla 2 on disk
    cvat            an archive that CVAT imports as ImageNet 1.0: default.txt with an image and the number of its class
                    per line, and synsets.txt with the classes; images are those of the task there
    folders         CLASS/FILE, as torchvision's ImageFolder reads it
    imagenet        train/CLASS/FILE, and classes.txt with a class per line, in the order of their numbers

`guess` and `probability` are what the model said when the item was asked: before it knew the label. Items that people
disagree on and items that are not among the data any more are left out, and this is said. Equal items have the label
of any of them. The same labels give the same export, byte for byte. No torch here.
"""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from balent.data.outputs import whole
from balent.project.exchange import CONTENT, as_csv, as_json
from balent.project.state import DIGITS

if TYPE_CHECKING:
    from balent.project.project import Project
    from balent.project.state import Answer

COLUMNS = ("id", "label", "who", "when", "probability", "guess", "fingerprint")


@dataclass(frozen=True)
class Labelled:
    """An item as exports show it. Without a label only if all items are exported."""

    id: str
    label: str | None
    who: str | None
    when: str | None
    probability: float | None
    guess: str | None
    fingerprint: str


def export(
    project: "Project", format: str, output: Path, *, everything: bool = False, links: bool = False
) -> list[Labelled]:
    """Writes labels for another tool, completely or not at all; returns what was written.

    format      csv, jsonl, labelstudio, doccano, argilla, cvat, folders or imagenet
    output      a file; for folders and imagenet a folder, which must be new, empty, or an earlier export
    everything  unlabelled items too (files only)
    links       links to the images instead of copies (folders and imagenet)
    """
    if format not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, but is {format!r}")
    if format == "csv":
        project.look()
    else:
        project.refresh()  # contents are read
    if format in FOLDERS:
        return _folder(project, format, output, everything, links)
    if links:
        raise ValueError(f"links are for {' and '.join(FOLDERS)}, but the format is {format!r}")
    found = labelled(project, everything)
    content = FILES[format](project, found)
    with whole(output) as partial:
        partial.write_bytes(content)
    return found


def place(project: "Project", format: str) -> Path:
    """Where an export goes if nobody says it: exports/ in the project's folder."""
    if format not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, but is {format!r}")
    folder = project.path / "exports"
    folder.mkdir(exist_ok=True)
    return folder / NAMES.get(format, format)


def labelled(project: "Project", everything: bool = False) -> list[Labelled]:
    """Items with their labels, in the order of their numbers."""
    given = answers(project)
    present = project.items.present()
    return [_labelled(project, n, given.get(n)) for n in present if everything or n in given]


def answers(project: "Project") -> dict[int, "Answer"]:
    """The answer that counts for each present item; equal items share the last one."""
    state, items = project.state, project.items
    given = {number: state.last[number] for number in state.labels()}
    if project.settings.duplicates == "keep":
        return given
    of = {items[n].fingerprint: answer for n, answer in sorted(given.items(), key=lambda pair: pair[1].when)}
    shared = {n: of[items[n].fingerprint] for n in items.present() if items[n].fingerprint in of}
    split = state.disagreements()
    return {n: given.get(n, answer) for n, answer in shared.items() if n not in split}


def _labelled(project: "Project", number: int, answer: "Answer | None") -> Labelled:
    asked = project.state.asked.get(number)
    return Labelled(
        project.items[number].id,
        None if answer is None else project.state.classes.name(answer.label),
        None if answer is None else answer.who,
        None if answer is None else answer.when,
        None if asked is None else asked.probability,
        None if asked is None else asked.guess,
        project.items[number].fingerprint[:DIGITS],
    )


def left_out(project: "Project") -> Iterator[str]:
    """Sentences about labels that an export does not have."""
    gone = sum(project.items[n].gone for n in project.state.labels())
    if gone:
        yield f"{gone} labelled items are not among the data any more: they are left out"
    if split := project.state.disagreements():
        yield f"people disagree on {len(split)} items: they are left out until somebody decides (balent tell --resolve)"


# ── files ────────────────────────────────────────────────────────────────────────────────────────────


def _csv(project: "Project", found: list[Labelled]) -> bytes:
    return as_csv([asdict(item) for item in found], COLUMNS)


def _jsonl(project: "Project", found: list[Labelled]) -> bytes:
    return as_json([{**{name: getattr(item, name) for name in COLUMNS}, **_content(project, item)} for item in found])


def _content(project: "Project", item: Labelled) -> dict[str, Any]:
    """What a person sees of an item; rows of numbers are not shown."""
    name = CONTENT.get(project.settings.kind)
    value = project.kind.content(item.id) if name else None
    return {name: str(value) if isinstance(value, Path) else value} if name else {}


def _doccano(project: "Project", found: list[Labelled]) -> bytes:
    """Text classification, or image classification."""
    if project.settings.kind not in ("text", "images"):
        raise ValueError(f"doccano has texts and images, but this project has {project.settings.kind}; take jsonl")

    def line(item: Labelled) -> dict[str, Any]:
        shown = {"filename": item.id} if project.settings.kind == "images" else _content(project, item)
        return {"id": item.id, **shown, "label": [item.label] if item.label is not None else []}

    return as_json([line(item) for item in found])


def _labelstudio(project: "Project", found: list[Labelled]) -> bytes:
    """Choices named `label` about an object named `item`."""
    return _indented([_task(project, item) for item in found])


def _task(project: "Project", item: Labelled) -> dict[str, Any]:
    content = _content(project, item)
    if "image" in content:
        content = {"image": local_file(project.settings.place(project.path), item.id)}
    about = {"who": item.who, "when": item.when} if item.label is not None else {}
    guess = {"model_version": "balent", "score": item.probability, "result": choices(item.guess)}
    return {
        "data": {"id": item.id, **content, **about},
        "annotations": [{"result": choices(item.label)}] if item.label is not None else [],
        "predictions": [guess] if item.guess is not None else [],
    }


def local_file(data: Path, id: str) -> str:
    """An image as Label Studio serves files of its own machine: below the folder that the data lie in."""
    return f"/data/local-files/?d={quote(f'{data.name}/{id}', errors='surrogateescape')}"


def choices(label: str | None) -> list[dict[str, Any]]:
    """A result of Label Studio: one choice, or none."""
    if label is None:
        return []
    return [{"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [label]}}]


def _indented(records: list[dict[str, Any]]) -> bytes:
    """One list of objects. Half characters, which names of files can have, are escaped."""
    text = json.dumps(records, ensure_ascii=False, indent=1, default=str) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _argilla(project: "Project", found: list[Labelled]) -> bytes:
    """Labels are suggestions to the question `label`: a response needs a user that the server there knows."""
    if project.settings.kind == "features":
        raise ValueError("Argilla shows texts, images and rows, but this project has features; take jsonl")
    return _indented([_record(project, item) for item in found])


def _record(project: "Project", item: Labelled) -> dict[str, Any]:
    about = {"who": item.who, "when": item.when, "guess": item.guess}
    score = None if item.label is not None else item.probability
    label = item.guess if item.label is None else item.label
    agent = item.who if item.label is not None and item.who else "balent"
    return {
        "id": item.id,
        "fields": _content(project, item),
        "metadata": {name: value for name, value in about.items() if value is not None},
        "suggestions": {"label": {"value": label, "score": score, "agent": agent}} if label is not None else {},
        "responses": {},
        "vectors": {},
    }


def _cvat(project: "Project", found: list[Labelled]) -> bytes:
    """As datumaro reads `imagenet_txt`: a name with blanks has quotes around it, before its ending."""
    if project.settings.kind != "images":
        raise ValueError(f"cvat is for images, but this project has {project.settings.kind}; take csv or jsonl")
    numbers = {name: number for number, name in enumerate(project.state.classes.names())}
    lines = [f"{_quoted(item.id)} {'' if item.label is None else numbers[item.label]}".rstrip() for item in found]
    files = {"default.txt": lines, "synsets.txt": [*numbers]}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            text = "".join(f"{line}\n" for line in content)
            archive.writestr(
                zipfile.ZipInfo(name, EPOCH), text.encode("utf-8", "backslashreplace"), zipfile.ZIP_DEFLATED
            )
    return out.getvalue()


def _quoted(id: str) -> str:
    if '"' in id or not id.replace(" ", "").isprintable():
        raise ValueError(f"CVAT's lists have no way to write the name {id!r}; rename the file, or take folders")
    stem, ending = os.path.splitext(id)
    return f'"{stem}"{ending}' if len(id.split()) > 1 or id != id.strip() else id


EPOCH = (1980, 1, 1, 0, 0, 0)  # of files in an archive: the same labels give the same bytes
NAMES = {
    "csv": "labels.csv",
    "jsonl": "labels.jsonl",
    "labelstudio": "labelstudio.json",
    "doccano": "doccano.jsonl",
    "argilla": "records.json",
    "cvat": "cvat.zip",
}
FILES = {
    "csv": _csv,
    "jsonl": _jsonl,
    "labelstudio": _labelstudio,
    "doccano": _doccano,
    "argilla": _argilla,
    "cvat": _cvat,
}

# ── folders ──────────────────────────────────────────────────────────────────────────────────────────

FOLDERS = {"folders": "", "imagenet": "train"}  # the folder that classes lie in
FORMATS = (*FILES, *FOLDERS)


def _folder(project: "Project", format: str, output: Path, everything: bool, links: bool) -> list[Labelled]:
    from balent.project import class_folders

    if project.settings.kind != "images":
        raise ValueError(f"{format} are for images, but this project has {project.settings.kind}; take csv or jsonl")
    if everything:
        raise ValueError(f"{format} have labelled items only; all items can be exported to csv or jsonl")
    found = labelled(project)
    names = list(project.state.classes.names())
    images = [(item.label or "", item.id, project.kind.content(item.id)) for item in found]
    files = {"classes.txt": "".join(f"{name}\n" for name in names)} if format == "imagenet" else {}
    class_folders.write(output, FOLDERS[format], images, files, links=links)
    return found
