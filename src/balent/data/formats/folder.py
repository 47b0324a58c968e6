"""A folder of images: a folder for each class, or a labels.csv beside them; some may have no label yet.

    photos/train/cat/1.jpg   photos/test/dog/7.png     classes are folders; test/ may be left out, train/ too
    photos/1.jpg  photos/labels.csv                    columns file, label and perhaps split (train or test)

Images in no class folder, in one called `unlabelled`, or without a label in the table are the pool's unlabelled points.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from balent.data import targets as labels
from balent.data.cache import Decoded, cached
from balent.data.formats import pictures
from balent.data.formats.contents import Data
from balent.data.formats.endings import ENDINGS
from balent.data.formats.files import below
from balent.data.formats.image_file import Picture
from balent.data.targets import Settled

TABLE = "labels.csv"
NOBODY = ("unlabelled", "unlabeled")
FILE, LABEL, SPLIT = ("file", "filename", "image", "path"), ("label", "class", "target"), ("split", "part", "set")


@dataclass(frozen=True)
class Listing:
    """Images of a folder in the order of their names, their labels, and which are test images (None: not stated)."""

    folder: Path
    files: list[str]
    words: list[str | None]
    tests: np.ndarray | None
    notes: list[str] = field(default_factory=list)

    def where(self, i: int) -> str:
        return f"{self.folder / self.files[i]}"


def folder(place: Path, size: int | None = None, skip_bad: bool = False) -> Data:
    """Images of one size: their own, or `size` × `size` pixels around the centre. All others are converted."""
    files = _files(place)
    stamped = [*files, TABLE] if (place / TABLE).exists() else files
    decode = partial(_decoded_files, place, files, size, skip_bad)
    return cached(place.resolve().name, place, stamped, decode, (size, skip_bad))


def listed(place: Path) -> tuple[Listing, Settled]:
    """The images of a folder with their labels; none of them is opened."""
    return _labelled(_listing(place, _files(place)))


def _files(place: Path) -> list[str]:
    files = sorted(name for name in below(place) if name.lower().endswith(ENDINGS))
    if not files:
        raise ValueError(f"{place} has no images; they end in {', '.join(ENDINGS)}")
    return files


def _listing(place: Path, files: list[str]) -> Listing:
    return from_table(place, files) if (place / TABLE).exists() else from_folders(place, files)


def _decoded_files(place: Path, files: list[str], size: int | None, skip_bad: bool) -> Decoded:
    return decoded(_listing(place, files), size, skip_bad)


def from_folders(place: Path, files: list[str]) -> Listing:
    """Labels are the folders that images lie in, below train/ and test/ if there are such."""
    tops = {top.lower() for top, slash, _ in (name.partition("/") for name in files) if slash}
    if not tops & set(labels.PARTS):
        return Listing(place, files, [_word(name) for name in files], None)
    others = tops - {*labels.PARTS, *NOBODY}
    if others:
        raise ValueError(
            f"{place} has images in {min(others)!r} beside {min(tops & set(labels.PARTS))!r}; put them below that, or "
            f"into {NOBODY[0]!r}"
        )
    has_test = bool(tops & set(labels.TEST))
    kept = [name for name in files if not (has_test and _top(name) in labels.VALIDATION)]
    notes = [f"left out, since there is a test part: {len(files) - len(kept)} images of the validation part"]
    words = [_word(name.partition("/")[2] if _top(name) in labels.PARTS else name) for name in kept]
    tests = np.array([_top(name) in labels.TEST + labels.VALIDATION for name in kept], bool)
    return Listing(place, kept, words, tests if tests.any() else None, notes if len(kept) < len(files) else [])


def _top(name: str) -> str:
    top, slash, _ = name.partition("/")
    return top.lower() if slash else ""


def _word(name: str) -> str | None:
    """The class folder of an image, if it lies in one."""
    top, slash, _ = name.partition("/")
    return top if slash and top.lower() not in NOBODY else None


def from_table(place: Path, files: list[str]) -> Listing:
    """Labels from labels.csv; images that it does not name have none."""
    path = place / TABLE
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        try:
            columns = [_column(path, rows.fieldnames or (), names) for names in (FILE, LABEL)]
            split = next((name for name in rows.fieldnames or () if name.strip().lower() in SPLIT), None)
            found = [(rows.line_num, row) for row in rows]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as CSV: {error}") from None
    position = {name: i for i, name in enumerate(files)}
    words = labels.as_words([row[columns[1]] for _, row in found], lambda i: f"{path}, line {found[i][0]},")
    of: dict[int, tuple[str | None, str]] = {}
    for (line, row), word in zip(found, words, strict=True):
        name = Path(row[columns[0]] or "").as_posix()
        if name not in position:
            raise ValueError(f"{path}, line {line}, names {name!r}, but there is no such image in {place}")
        if position[name] in of:
            raise ValueError(f"{path}, line {line}, names {name!r} a second time; give each image one label")
        of[position[name]] = (word, (row[split] or "") if split else "train")
    said = [of.get(i, (None, "train")) for i in range(len(files))]
    tests = labels.parts([part for _, part in said], lambda i: f"{path} at {files[i]}") if split else None
    return Listing(place, files, [word for word, _ in said], tests)


def _column(path: Path, came: Sequence[str], names: tuple[str, ...]) -> str:
    for name in came:
        if name.strip().lower() in names:
            return name
    raise ValueError(f"{path} must have a column {' or '.join(names)}, but has {', '.join(came) or 'none'}")


def decoded(listing: Listing, size: int | None, skip_bad: bool) -> Decoded:
    _, known = _labelled(listing)
    found = [Picture(name, partial(_opened, listing.folder / name)) for name in listing.files]
    return pictures.decoded(found, known, size, skip_bad)


def _labelled(listing: Listing) -> tuple[Listing, Settled]:
    known = labels.settled(listing.words, listing.tests, listing.files, listing.where)
    return listing, replace(known, notes=listing.notes + known.notes)


def _opened(path: Path) -> io.BufferedIOBase:
    return path.open("rb")
