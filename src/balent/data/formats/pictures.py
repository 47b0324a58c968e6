"""Image files as arrays of bytes: decoded by Pillow, turned upright, converted and cropped, side by side.

Files that cannot be read are all listed. What was done to the others is counted and reported.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from balent.data.cache import Block, Decoded, Part
from balent.data.formats.image_file import GREY, Picture, head, opened, pillow, plain
from balent.data.targets import Settled

TOGETHER = 256  # files read before their images are handed on
LARGEST = 224  # pixels per side if no size is given: what backbones take
LISTED = 20  # unreadable files named in a note; an error names them all

Shape = tuple[int, int, int]  # channels, height, width


@dataclass
class Tally:
    """Counts: files that could not be read, and why; what was done to how many images."""

    total: int
    skip_bad: bool = False
    else_do: str = "or go on without them (skip_bad=True)"
    bad: dict[str, str] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)

    def check(self) -> None:
        if self.bad and not self.skip_bad:
            raise ValueError(f"{self._listed(len(self.bad))}. Repair or remove them, {self.else_do}")

    def notes(self) -> list[str]:
        """The notes after all files are read. Unreadable files are an error, unless they may be skipped."""
        self.check()
        left = [f"left out: {self._listed(LISTED)}"] if self.bad else []
        return left + [f"{what}: {count} of {self.total} images" for what, count in sorted(self.done.items())]

    def _listed(self, most: int) -> str:
        shown = [f"{name} ({why})" for name, why in sorted(self.bad.items())[:most]]
        more = [f"and {len(self.bad) - most} more"] if len(self.bad) > most else []
        return f"{len(self.bad)} of {self.total} images cannot be read: {'; '.join(shown + more)}"


def decoded(found: Sequence[Picture], known: Settled, size: int | None, skip_bad: bool) -> Decoded:
    """Images of one shape with their labels; they are decoded when they are read."""
    tally = Tally(len(found), skip_bad)
    shape = survey(found, size, tally)

    def chosen(which: np.ndarray) -> Part:
        some = [found[i] for i in np.flatnonzero(which).tolist()]
        return part(some, [picture.name for picture in some], known.y[which], shape, tally)

    train, test = chosen(~known.tests), chosen(known.tests)
    return Decoded(train, test, known.names, lambda: [*known.notes, *tally.notes()])


def survey(pictures: Sequence[Picture], size: int | None, tally: Tally) -> Shape:
    """The one shape that all images get: their own if they have one, else squares; grey if all are."""
    heads = [head for head in _side_by_side(head, pictures, tally) if head is not None]
    if not heads:
        tally.check()
        raise ValueError(f"there is no readable image among {len(pictures)} files")
    channels = 1 if all(mode in GREY for mode, _ in heads) else 3
    sizes = {upright for _, upright in heads}
    width, height = heads[0][1]
    if size is None and len(sizes) == 1 and max(width, height) <= LARGEST:
        return channels, height, width
    side = size or min(LARGEST, int(np.median([min(wh) for _, wh in heads])))
    return channels, side, side


def part(pictures: Sequence[Picture], ids: Sequence[str], labels: np.ndarray, shape: Shape, tally: Tally) -> Part:
    """Pictures that keep their labels and ids when some of them cannot be read."""
    kept: list[str] = []
    return Part(len(pictures), shape, blocks(pictures, ids, labels, shape, tally, kept), ids=kept)


def blocks(
    pictures: Sequence[Picture], ids: Sequence[str], labels: np.ndarray, shape: Shape, tally: Tally, said: list[str]
) -> Iterator[Block]:
    """Images and labels, a block at a time, without those that cannot be read; `said` gets the ids of the others."""
    for start in range(0, len(pictures), TOGETHER):
        some = pictures[start : start + TOGETHER]
        found = _side_by_side(lambda picture: _decoded(picture, shape), some, tally)
        kept = [i for i, image in enumerate(found) if image is not None]
        for i in kept:
            tally.done.update(found[i][1])
        said += [ids[start + i] for i in kept]
        if kept:
            yield np.stack([found[i][0] for i in kept]), labels[start : start + TOGETHER][kept]


def _side_by_side(work: Callable[[Picture], Any], pictures: Sequence[Picture], tally: Tally) -> list[Any]:
    """The work on each picture, None where it failed; Pillow lets go of the interpreter while it decodes."""
    pillow()

    def attempt(picture: Picture) -> Any:
        try:
            return work(picture)
        except Exception as error:  # a damaged image can raise anything; all of them are listed in the end
            tally.bad[picture.name] = f"{type(error).__name__}: {error}".replace("\n", " ")[:100]
            return None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as workers:
        return list(workers.map(attempt, pictures))


def _decoded(picture: Picture, shape: Shape) -> tuple[np.ndarray, list[str]]:
    from PIL import ImageOps

    done: list[str] = []
    channels, height, width = shape
    with opened(picture) as file:
        file.draft("L" if channels == 1 else "RGB", (2 * width, 2 * height))  # JPEG: no more pixels than are of use
        image = plain(ImageOps.exif_transpose(file), channels, done)
        if image.size != (width, height):
            done.append(f"resized, and cropped around the centre, to {width} × {height}")
            image = ImageOps.fit(image, (width, height), pillow().Resampling.BILINEAR)
        pixels = np.asarray(image, np.uint8)
    return (pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)), done
