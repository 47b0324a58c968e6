"""TinyImageNet (Stanford CS231n, 2015): 200 classes of 500 images, 64 × 64 pixels; zipped or unpacked.

Its test labels were never published, so the 10,000 validation images are the test set, as usual. Classes are in
the order of their WordNet ids, and named by them.
"""

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from balent.data.cache import Decoded, Part, cached
from balent.data.cells import shown
from balent.data.formats import limits
from balent.data.formats.contents import Data
from balent.data.formats.files import Known, Source, below
from balent.data.formats.image_file import Picture
from balent.data.formats.pictures import Tally, part

SOURCE = Source(
    "tinyimagenet",
    "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    ("tinyimagenet", "tiny-imagenet", "TinyImageNet"),
)
ARCHIVE, FOLDER = "tiny-imagenet-200.zip", "tiny-imagenet-200"
KNOWN = Known("90528d7ca1a48142e341f4ef8d21d0de", 248_100_043)
SHAPE = (3, 64, 64)
ANNOTATIONS = "val/val_annotations.txt"
FILES = re.compile(
    r"train/[^/]+/([^/]+_boxes\.txt|images/[^/]+\.JPEG)|val/(val_annotations\.txt|images/[^/]+\.JPEG)"
    r"|test/images/[^/]+\.JPEG|wnids\.txt|words\.txt"
)


@dataclass(frozen=True)
class Tree:
    """The files of the set, by their paths below tiny-imagenet-200, in an archive or a folder."""

    where: Path
    files: list[str]  # sorted
    read: Callable[[str], bytes]

    def picture(self, name: str) -> Picture:
        return Picture(f"{self.where}/{name}", lambda: io.BytesIO(self.read(name)))


def tinyimagenet(folder: Path) -> Data:
    """From the folder if it is there, else from the archive."""
    found = SOURCE.find(folder, [FOLDER])
    if found is not None and found.is_dir():
        names = sorted(name for name in below(found) if name.startswith(("train/", "val/")))
        tree = Tree(found, names, lambda name: (found / name).read_bytes())
        return cached("tinyimagenet", found, names, lambda: decoded(tree, []))
    packed = SOURCE.find(folder, [ARCHIVE])
    if packed is None:
        raise SOURCE.missing(folder, [ARCHIVE])
    return cached("tinyimagenet", folder, [packed], lambda: _from_archive(packed))


def _from_archive(path: Path) -> Decoded:
    try:
        archive = zipfile.ZipFile(path)
        paths = _paths(archive.namelist())
        names = sorted(name for name in paths if name.startswith(("train/", "val/")))
        limits.check(sum(archive.getinfo(paths[name]).file_size for name in names), path.stat().st_size)
    except Exception as error:  # zipfile raises a dozen kinds over a damaged archive
        if isinstance(error, MemoryError) or getattr(error, "filename", None):  # no memory, no permission
            raise
        raise SOURCE.damaged(path, error, KNOWN) from None
    return decoded(Tree(path, names, lambda name: archive.read(paths[name])), SOURCE.checked(path, KNOWN))


def _paths(names: list[str]) -> dict[str, str]:
    """Files of an archive by their paths below its folder. An unknown name is an error: the file may be damaged."""
    files = [name for name in names if not name.endswith("/") and not PurePosixPath(name).name.startswith(".")]
    paths = {PurePosixPath(*PurePosixPath(name).parts[1:]).as_posix(): name for name in files}
    strange = [name for name in paths if not FILES.fullmatch(name)]
    if strange:
        raise ValueError(f"it has a file {shown(strange[0])}, which the set does not have")
    return paths


def decoded(tree: Tree, notes: list[str]) -> Decoded:
    train = [name for name in tree.files if name.startswith("train/") and name.endswith(".JPEG")]
    wnids = [name.split("/")[1] for name in train]
    names = tuple(sorted(set(wnids)))
    val, truth = _annotated(tree, names)
    number = {name: i for i, name in enumerate(names)}
    tally = Tally(len(train) + len(val), else_do=f"or get the set again from {SOURCE.address}")
    pool = _part(tree, train, [number[wnid] for wnid in wnids], tally)
    test = _part(tree, val, [number[wnid] for wnid in truth], tally)

    def said() -> list[str]:
        tally.check()  # grey images are in the published set, so they are not reported
        return notes

    return Decoded(pool, test, names, said)


def _part(tree: Tree, files: list[str], labels: list[int], tally: Tally) -> Part:
    return part([tree.picture(name) for name in files], files, np.array(labels, np.int64), SHAPE, tally)


def _annotated(tree: Tree, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Validation images and their classes."""
    files = set(tree.files)
    if ANNOTATIONS not in files:
        raise SOURCE.damaged(tree.where, f"it has no {ANNOTATIONS}")
    try:
        lines = tree.read(ANNOTATIONS).decode("ascii", "replace").splitlines()
    except Exception as error:  # as above
        raise SOURCE.damaged(tree.where, f"{ANNOTATIONS} cannot be read: {type(error).__name__}: {error}") from None
    rows = [line.split("\t") for line in lines if line]
    for number, row in enumerate(rows, 1):
        if len(row) < 2 or f"val/images/{row[0]}" not in files:
            raise SOURCE.damaged(
                tree.where, f"line {number} of {ANNOTATIONS} names no image of val/images: {shown(row[0])}"
            )
        if row[1] not in names:
            why = f"class {shown(row[1])} of {row[0]} does not occur in train (line {number} of {ANNOTATIONS})"
            raise SOURCE.damaged(tree.where, why)
    return [f"val/images/{row[0]}" for row in rows], [row[1] for row in rows]
