"""Folders of images by class. The folder is written beside its place and then takes it.

The name of a class or of an image may not be the name of a file: "/" and "%" and a leading "." are written as %2F, %25
and %2E, so different names stay different and no name leads out of the folder. `labels.csv` says which image and which
class each file is. An earlier export is replaced only if nobody has added files to it; a folder that is not an
export is refused. No torch here.
"""

import contextlib
import csv
import hashlib
import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from balent.data.outputs import unused

LIST = "labels.csv"
HEADER = ["file", "id", "label"]
LONGEST = 200  # bytes of a name; file systems take 255
Image = tuple[str, str, Path]  # class, id, where it is


def write(output: Path, below: str, images: Sequence[Image], files: Mapping[str, str], *, links: bool = False) -> None:
    """Copies (or links) of images below OUTPUT, with a list of them, and some text files."""
    _refuse_others(output, files)
    rows = [[os.path.join(below, name(label), name(id)), id, label] for label, id, _ in images]
    with _beside(output) as partial:
        for (file, _, _), (_, _, path) in zip(rows, images, strict=True):
            _put(path, partial / file, links)
        for file, text in {**files, LIST: _as_csv(rows)}.items():
            (partial / file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        _swap(partial, output)


def name(text: str) -> str:
    """A name as the name of one file: different for different names.

    >>> name("cat"), name("a/1.jpg"), name(".."), name("100%")
    ('cat', 'a%2F1.jpg', '%2E.', '100%25')
    """
    plain = text.replace("%", "%25").replace("/", "%2F").replace("\\", "%5C").replace("\0", "%00")
    plain = f"%2E{plain[1:]}" if plain.startswith(".") else plain
    if len(os.fsencode(plain)) <= LONGEST:
        return plain
    end = f"-{hashlib.sha256(os.fsencode(text)).hexdigest()[:16]}{Path(plain).suffix[:10]}"
    return os.fsdecode(os.fsencode(plain)[: LONGEST - len(os.fsencode(end))]) + end


def _put(path: Path, place: Path, links: bool) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists() or place.is_symlink():  # file systems that do not distinguish A and a
        raise FileExistsError(f"two images would have the name {place.name!r} in {place.parent.name!r}; rename one")
    if links:
        place.symlink_to(path.absolute())
    else:
        shutil.copyfile(path, place)


def _as_csv(rows: Sequence[Sequence[str]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    return file.getvalue()


# ── never over something else ────────────────────────────────────────────────────────────────────────


def _refuse_others(output: Path, files: Mapping[str, str]) -> None:
    """Only a new place, an empty folder or an export as it was written is taken."""
    if not output.exists() and not output.is_symlink():
        return
    if output.is_symlink() or not output.is_dir():
        raise FileExistsError(f"the output must be a folder, but {output} is something else; name another place")
    there = {_listed(path.relative_to(output)) for path in output.rglob("*") if path.is_symlink() or path.is_file()}
    if not there:
        return
    if LIST not in there or not (output / LIST).read_text(encoding="utf-8").startswith(",".join(HEADER)):
        raise FileExistsError(f"{output} is not empty, and not an export; name a new folder")
    with (output / LIST).open(encoding="utf-8", newline="") as file:
        written = {row["file"] for row in csv.DictReader(file)} | {LIST, *files}
    if other := sorted(there - written):
        raise FileExistsError(f"{output} has files that are not of the last export, such as {other[0]}; move them away")


def _listed(path: Path) -> str:
    """The name of a file as the list has it."""
    return path.as_posix().encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def _beside(output: Path) -> Iterator[Path]:
    """A new folder beside the output; removed at the end if it still has this name."""
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = unused(output.absolute().parent, output.name)
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _swap(partial: Path, output: Path) -> None:
    """The new folder takes the place of the old one. After a crash in between, both are there, one hidden."""
    old = unused(output.absolute().parent, output.name)
    if output.exists():
        output.rename(old)
    partial.rename(output)
    shutil.rmtree(old, ignore_errors=True)
