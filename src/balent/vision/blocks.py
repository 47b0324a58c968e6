"""Features on their way to one .npz: kept in blocks that survive a kill, put together at the end.

A block is on disk before the journal names it. Whoever computes begins again after the last block that is named, so a
run that goes on ends with the same file, byte for byte, as one that was never stopped. Images that cannot be read
have no row; the journal names them.
"""

import contextlib
import io
import itertools
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from jaxtyping import Float

from balent.data import arrays
from balent.loop import journal
from balent.loop.journal import Record
from balent.loop.learner import agree
from balent.vision import onnx
from balent.vision.fingerprints import IDS, PARTS

SECONDS = 10.0  # of work that a kill may cost
JOURNAL = "journal.ndjson"
ROWS = 4096  # of features kept in memory until they are written

Features = Float[np.ndarray, "images width"]


@dataclass(frozen=True)
class Computed:
    """Features of the next images: `seen` of them, without those that are bad, whose names have a reason."""

    rows: Features
    seen: int
    bad: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What a file of features is made of.

    said      settings that decide the features; they are kept in the file
    sizes     the number of images of each part
    features  from an image of a part on
    columns   labels, and ids where there are any, of all images
    accept    is called with the images that cannot be read, and why, before the file is written; it may raise
    """

    said: dict[str, Any]
    sizes: dict[str, int]
    features: Callable[[str, int], Iterator[Computed]]
    columns: dict[str, np.ndarray]
    accept: Callable[[dict[str, str]], None] = lambda bad: None


def written(path: Path, work: Work) -> Iterator[tuple[int, int]]:
    """Writes the file; yields (images done, number of images). A complete file with the same settings is kept."""
    total, parts = sum(work.sizes.values()), parts_of(path)
    if path.exists():
        _agree(path, work.said)
        yield total, total
    else:
        with opened(parts, work.said) as blocks:
            yield blocks.seen(), total
            for part in PARTS:
                for found in work.features(part, blocks.seen(part)):
                    blocks.add(part, found)
                    yield blocks.seen(), total
                blocks.flush(part)
            work.accept(blocks.bad())
            _assemble(path, blocks, work)
    shutil.rmtree(parts, ignore_errors=True)


def parts_of(path: Path) -> Path:
    return path.with_name(path.name + ".parts")


def begun_with(path: Path) -> str | None:
    """The backend that features of this file were begun with; None if none were. Before 0.2 it was torch."""
    lines = journal.read(parts_of(path) / JOURNAL)
    said = _about(path) if path.exists() else lines[0]["about"] if lines else None
    return None if said is None else said.get("backend", onnx.TORCH)


def backend_for(path: Path, wanted: str, device: str = "cpu") -> str:
    """The backend of this file: the one it was begun with if `wanted` is auto. A complete file needs none installed."""
    pinned = begun_with(path) if wanted == onnx.AUTO else None
    return pinned if pinned and path.exists() else onnx.backend(pinned or wanted, device)


# ── what is done ─────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def opened(directory: Path, said: dict[str, Any]) -> Iterator["Blocks"]:
    """The blocks of a directory, which is ours alone; they were begun for the same features."""
    with journal.locked(directory):
        blocks = Blocks(directory)
        journal.repair(blocks.journal)
        lines = journal.read(blocks.journal)
        if lines:
            agree(directory, {"backend": onnx.TORCH, **lines[0]["about"]}, said)
        else:
            journal.append(blocks.journal, {"format": journal.FORMAT, "about": said})
        for line in lines[1:]:
            blocks.done[line["part"]].append(line)
        yield blocks


@dataclass
class Blocks:
    """Blocks of features in a directory. Those that its journal names are complete."""

    directory: Path
    done: dict[str, list[Record]] = field(default_factory=lambda: {part: [] for part in PARTS})
    waiting: list[Computed] = field(default_factory=list)
    since: float = field(default_factory=monotonic)

    @property
    def journal(self) -> Path:
        return self.directory / JOURNAL

    def seen(self, part: str | None = None) -> int:
        """Images that are done: of a part, or of all."""
        lines = (line for name, lines in self.done.items() for line in lines if part in (None, name))
        return sum(line["seen" if "seen" in line else "rows"] for line in lines) + sum(x.seen for x in self.waiting)

    def bad(self) -> dict[str, str]:
        """Images that could not be read, and why."""
        return {name: why for lines in self.done.values() for line in lines for name, why in line.get("bad", ())}

    def add(self, part: str, found: Computed) -> None:
        self.waiting.append(found)
        if monotonic() - self.since > SECONDS or sum(found.seen for found in self.waiting) >= ROWS:
            self.flush(part)

    def flush(self, part: str) -> None:
        """Writes the rows in memory to disk, then to the journal."""
        if self.waiting:
            new, self.waiting = self.waiting, []
            block = np.concatenate([found.rows for found in new])
            name = f"{part}-{self.seen(part):09d}.npy"
            journal.write(self.directory / name, _npy(block))
            line = {"part": part, "file": name, "rows": len(block), "crc32": zlib.crc32(block.tobytes())}
            line |= _left_out(new)
            journal.append(self.journal, line)
            self.done[part].append(line)
        self.since = monotonic()

    def read(self, part: str) -> Iterator[Features]:
        """The blocks of a part in order, their checksums verified; one empty block if there are no images."""
        if not self.done[part]:
            yield next(self.read("x_train"))[:0]
        for line in self.done[part]:
            path = self.directory / line["file"]
            try:
                block = arrays.npy(path)
                intact = zlib.crc32(block.tobytes()) == line["crc32"]
            except (OSError, ValueError):
                intact = False
            if not intact:
                raise ValueError(f"{path} is damaged or missing; remove {self.directory} and run again")
            yield block


def _left_out(new: list[Computed]) -> Record:
    """What a line says beyond its rows, if there are fewer of them than images."""
    bad = [[name, why] for found in new for name, why in found.bad.items()]
    return {"seen": sum(found.seen for found in new), "bad": bad} if bad else {}


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


# ── the file at the end ──────────────────────────────────────────────────────────────────────────


def _assemble(path: Path, blocks: Blocks, work: Work) -> None:
    """All of it or nothing, a block in memory at a time. It has no dates: equal features, equal bytes."""
    bad = blocks.bad()
    with (
        journal.in_words(path),
        journal.whole(path) as partial,
        zipfile.ZipFile(partial, "w", allowZip64=True) as archive,
    ):
        for part, labels in PARTS.items():
            ids = work.columns.get(IDS[part])
            kept = slice(None) if ids is None else np.array([name not in bad for name in ids.tolist()], bool)
            y = work.columns[labels][kept]
            _write(archive, part, blocks.read(part), len(y))
            _write(archive, labels, [y], len(y))
            if ids is not None:
                _write(archive, IDS[part], [ids[kept]], len(y))
        _write(archive, "about", [np.array(json.dumps(work.said))])


def _write(archive: zipfile.ZipFile, name: str, blocks: Iterable[np.ndarray], rows: int | None = None) -> None:
    blocks = iter(blocks)
    first = next(blocks)
    shape = first.shape if rows is None else (rows, *first.shape[1:])
    head = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False, "shape": shape}
    with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, head)
        for block in itertools.chain([first], blocks):
            file.write(block.tobytes())


def _agree(path: Path, said: dict[str, Any]) -> None:
    """Refuses an existing file with other settings."""
    before = _about(path)
    if before is None:
        raise FileExistsError(f"{path} exists already, and is not a file of features; name another file, or remove it")
    same(path, {"backend": onnx.TORCH, **before}, said)


def _about(path: Path) -> dict[str, Any] | None:
    """The settings of a file of features; None if it is something else."""
    with contextlib.suppress(ValueError, KeyError, OSError):
        return json.loads(str(arrays.npz(path, "about")))
    return None


def same(path: Path, before: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuses an existing file that was made with other settings."""
    for name, value in wanted.items():
        if before.get(name) != value:
            raise FileExistsError(
                f"{path} exists already, with {name} = {before.get(name)!r}, but {name} = {value!r} was given; "
                "name another file, or remove this one"
            )
