"""Features of a folder of images, into one .npz, without decoded images on disk.

Files are decoded while others are computed, as a project does it: the features are those of `Photos`.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from balent.data.formats import folder
from balent.data.formats.pictures import Tally
from balent.vision import blocks
from balent.vision.blocks import Computed, Work
from balent.vision.fingerprints import IDS, PARTS, PROBES
from balent.vision.photos import Photos

TOGETHER = 128  # files at a time: a second or two of work

Files = dict[str, list[str]]  # names by part


def embed_folder(
    place: Path,
    photos: Photos,
    path: Path,
    *,
    about: dict[str, Any],
    limit: int | None = None,
    skip_bad: bool = False,
    say: Callable[[str], None] = lambda note: None,
) -> Iterator[tuple[int, int]]:
    """Writes the features of a folder of images to an .npz; yields (images done, number of images).

    place     the folder; labels are those of `balent.data.formats.folder`
    photos    computes the features
    path      the .npz to write; a file with the same settings is kept, one with other settings is an error
    about     more settings; they are kept in the file
    limit     the number of files of pool and test set that are used; None uses all
    skip_bad  leave out images that cannot be read; otherwise they are an error, when all images are computed
    say       is called with notes on labels and on images that were left out

    A process that was stopped is continued by the same call.
    """
    listing, known = folder.listed(place)
    chosen = dict(zip(PARTS, (np.flatnonzero(~known.tests)[:limit], np.flatnonzero(known.tests)[:limit]), strict=True))
    files: Files = {part: [listing.files[i] for i in which.tolist()] for part, which in chosen.items()}
    columns = {PARTS[part]: known.y[which] for part, which in chosen.items()}
    said = {**about, **photos.about(), "images": fingerprint_of_files(place, files, columns)}
    columns |= {IDS[part]: np.array(names, str) for part, names in files.items()}
    for note in known.notes:
        say(note)
    sizes = {part: len(names) for part, names in files.items()}
    accept = partial(_accept, path, sum(sizes.values()), skip_bad, say)
    yield from blocks.written(path, Work(said, sizes, partial(_features, place, photos, files), columns, accept))


def _features(place: Path, photos: Photos, files: Files, part: str, start: int) -> Iterator[Computed]:
    for i in range(start, len(files[part]), TOGETHER):
        names = files[part][i : i + TOGETHER]
        rows, reasons = photos([place / name for name in names])
        bad = {name: why for name, why in zip(names, reasons, strict=True) if why is not None}
        yield Computed(rows, len(names), bad)


def _accept(path: Path, total: int, skip_bad: bool, say: Callable[[str], None], bad: dict[str, str]) -> None:
    """Reports the images that are left out, or refuses to leave them out."""
    if len(bad) == total:
        raise ValueError(f"there is no readable image among {total} files, such as {min(bad)} ({bad[min(bad)]})")
    parts = blocks.parts_of(path)
    else_do = f"and remove {parts}; or go on without them (skip_bad=True, --skip-bad), all others are done"
    for note in Tally(total, skip_bad, else_do, bad).notes():
        say(note)


def fingerprint_of_files(place: Path, files: Files, labels: dict[str, np.ndarray]) -> str:
    """Changes when the files do: their names, sizes and labels, and the bytes of a few of them."""
    digest = hashlib.blake2b(digest_size=16)
    for part, names in files.items():
        sizes = [_size(place / name) for name in names]
        said = "\0".join(f"{name} {size}" for name, size in zip(names, sizes, strict=True))
        digest.update(f"{part} {said}".encode("utf-8", "surrogateescape"))
        digest.update(labels[PARTS[part]].tobytes())
        for i in np.unique(np.linspace(0, len(names) - 1, PROBES).astype(int)).tolist() if names else []:
            digest.update((place / names[i]).read_bytes() if sizes[i] is not None else b"")
    return digest.hexdigest()


def _size(path: Path) -> int | None:
    """In bytes; None for a link to nothing, which is reported when it is read."""
    return path.stat().st_size if path.exists() else None
