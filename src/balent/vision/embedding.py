"""Features of images, computed once: a backbone over the pool and the test set, into one .npz.

A process may be killed at any moment. Features are kept in blocks, each on disk before the journal names it, and
batches begin at the same images whatever was done before: a run that goes on ends with the same file, byte for byte, as
one that was never stopped (on the same machine with as many threads: how convolutions round depends on both).
"""

import contextlib
import hashlib
import io
import itertools
import json
import math
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from balent.acquisition.engines.local import ahead
from balent.data import arrays
from balent.data.sources import Data
from balent.loop import journal
from balent.loop.journal import Record
from balent.loop.learner import agree
from balent.predictors.inputs import channels_last, fitting
from balent.predictors.training import placed

PARTS = {"x_train": "y_train", "x_test": "y_test"}
IDS = {"x_train": "ids_train", "x_test": "ids_test"}
SECONDS = 10.0  # of work that a kill may cost
ROWS = 4096  # of features kept in memory until they are written
PIXELS = 250_000  # of a batch on a CPU
PROBES = 64  # images that are compared to recognise the data

Features = Float[np.ndarray, "images width"]


def embed(
    data: Data, backbone: nn.Module, path: Path, *, about: dict[str, Any], batch_size: int = 64, device: str = "cpu"
) -> Iterator[tuple[int, int]]:
    """Writes the features of all images to an .npz; yields (images done, number of images).

    data        images and labels
    backbone    a module from images [batch, 3, height, width] to features [batch, width]
    path        the .npz to write; a file with the same settings is kept, one with other settings is an error
    about       settings that decide the features; they are kept in the file
    batch_size  images at a time
    device      where the backbone runs

    A process that was stopped is continued by the same call.
    """
    _check(data, batch_size)
    said = {**about, "batch_size": batch_size, "device": device.partition(":")[0]}
    said |= {"images": fingerprint(data), "weights": fingerprint_of(backbone)}
    total = sum(len(getattr(data, part)) for part in PARTS)
    parts = path.with_name(path.name + ".parts")
    if path.exists():
        _agree(path, said)
        yield total, total
    else:
        backbone = placed(backbone, device).eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        with opened(parts, said) as blocks:
            yield blocks.rows(), total
            for part in PARTS:
                for features in _features(getattr(data, part), backbone, blocks.rows(part), batch_size, part):
                    blocks.add(part, features)
                    yield blocks.rows(), total
                blocks.flush(part)
            _assemble(path, blocks, data, said)
    shutil.rmtree(parts, ignore_errors=True)


def together(image_size: int, device: str = "cpu") -> int:
    """How many images to take at a time: a power of two, of 250,000 pixels or less on a CPU.

    EfficientNet-Lite0 is more than twice as fast with 4 images of 224 × 224 as with 64 (benchmarks/bench_embed.py):
    maps that are larger than 32 MB come from the system, page by page, at every layer.
    """
    return 2 ** int(math.log2(max(1, PIXELS // image_size**2))) if device == "cpu" else 256


def _features(images: Any, backbone: nn.Module, start: int, batch_size: int, part: str) -> Iterator[Features]:
    """Batch by batch from an image on; the next batch is read while this one is computed."""
    for first, batch in ahead((i, images[i : i + batch_size]) for i in range(start, len(images), batch_size)):
        with torch.inference_mode():
            features = backbone(channels_last(fitting(backbone, batch))).float().cpu()
        if features.ndim != 2:
            raise ValueError(f"a backbone must give [batch, width], but this one gave {tuple(features.shape)}")
        bad = (~features.isfinite().all(1)).nonzero()
        if len(bad):
            raise ValueError(
                f"features must be finite, but those of image {first + int(bad[0])} of {part} are not; look for NaN "
                "in this image, and in the weights of the backbone"
            )
        yield features.numpy()


# ── what is done ─────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def opened(directory: Path, said: dict[str, Any]) -> Iterator["Blocks"]:
    """The blocks of a directory, which is ours alone; they were begun for the same features."""
    with journal.locked(directory):
        blocks = Blocks(directory)
        journal.repair(blocks.journal)
        lines = journal.read(blocks.journal)
        if lines:
            agree(directory, lines[0]["about"], said)
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
    waiting: list[np.ndarray] = field(default_factory=list)
    since: float = field(default_factory=monotonic)

    @property
    def journal(self) -> Path:
        return self.directory / "journal.ndjson"

    def rows(self, part: str | None = None) -> int:
        """Images whose features are computed: of a part, or of all."""
        kept = sum(line["rows"] for name, lines in self.done.items() for line in lines if part in (None, name))
        return kept + sum(map(len, self.waiting))

    def add(self, part: str, features: Features) -> None:
        self.waiting.append(features)
        if monotonic() - self.since > SECONDS or sum(map(len, self.waiting)) >= ROWS:
            self.flush(part)

    def flush(self, part: str) -> None:
        """Writes the rows in memory to disk, then to the journal."""
        if self.waiting:
            block = np.concatenate(self.waiting)
            self.waiting = []
            name = f"{part}-{self.rows(part):09d}.npy"
            journal.write(self.directory / name, _npy(block))
            line = {"part": part, "file": name, "rows": len(block), "crc32": zlib.crc32(block.tobytes())}
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


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


# ── the file at the end ──────────────────────────────────────────────────────────────────────────


def _assemble(path: Path, blocks: Blocks, data: Data, said: dict[str, Any]) -> None:
    """All of it or nothing, a block in memory at a time. It has no dates: equal features, equal bytes."""
    with (
        journal.in_words(path),
        journal.whole(path) as partial,
        zipfile.ZipFile(partial, "w", allowZip64=True) as archive,
    ):
        for part, labels in PARTS.items():
            _write(archive, part, blocks.read(part), len(getattr(data, part)))
            _write(archive, labels, [getattr(data, labels).numpy()], len(getattr(data, labels)))
            ids = getattr(data, IDS[part])
            if ids is not None:
                _write(archive, IDS[part], [ids], len(ids))
        _write(archive, "about", [np.array(json.dumps(said))])


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
    before = None
    with contextlib.suppress(ValueError, KeyError, OSError):
        before = json.loads(str(arrays.npz(path, "about")))
    if before is None:
        raise FileExistsError(f"{path} exists already, and is not a file of features; name another file, or remove it")
    same(path, before, said)


def same(path: Path, before: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuses an existing file that was made with other settings."""
    for name, value in wanted.items():
        if before.get(name) != value:
            raise FileExistsError(
                f"{path} exists already, with {name} = {before.get(name)!r}, but {name} = {value!r} was given; "
                "name another file, or remove this one"
            )


def first(data: Data, images: int | None) -> Data:
    """The first images of the pool and of the test set."""
    if images is None:
        return data
    if images < 1:
        raise ValueError(f"the number of images must be 1 or more, but is {images}")
    names = (*PARTS, *PARTS.values(), *(name for name in IDS.values() if getattr(data, name) is not None))
    return replace(data, **{name: getattr(data, name)[:images] for name in names})


# ── what features depend on ──────────────────────────────────────────────────────────────────────


def fingerprint(data: Data) -> str:
    """Changes when the data do: labels, ids and numbers of images, and a few of the images."""
    digest = hashlib.blake2b(digest_size=16)
    for part, labels in PARTS.items():
        images, y = getattr(data, part), getattr(data, labels)
        digest.update(f"{part} {len(images)}".encode())
        digest.update(y.numpy().tobytes())
        if getattr(data, IDS[part]) is not None:
            digest.update("\0".join(getattr(data, IDS[part])).encode("utf-8", "surrogatepass"))
        for i in np.linspace(0, len(images) - 1, PROBES).astype(int).tolist() if len(images) else []:
            digest.update(images[i : i + 1].numpy().tobytes())
    return digest.hexdigest()


def fingerprint_of(model: nn.Module) -> str:
    """Changes when a weight does."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _check(data: Data, batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size must be positive, but is {batch_size}")
    if len(data.x_train) == 0:
        raise ValueError("x_train must have images, but is empty")
    for part in PARTS:
        images = getattr(data, part)
        shape = tuple(images[:1].shape)
        if len(shape) != 4 or shape[1] not in (1, 3):
            raise ValueError(
                f"a backbone takes images [images, 1 or 3 channels, height, width], but {part} is "
                f"{(len(images), *shape[1:])}"
            )
