"""Features of images in shards: a file of features for each shard, made by one process or on a cluster.

A night's scoring then reads features only. Images go through the backbone one by one, so features do not depend on
spans, blocks, workers or the number of threads. Workers send features to the process that calls them, and it writes.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import torch

from balent import adapt
from balent.acquisition.engines import opened
from balent.acquisition.passed import Passed
from balent.acquisition.progress import counting
from balent.acquisition.shard_files import FINISHED, ShardFiles, lines
from balent.data.filled import filled
from balent.data.formats.parquet import arrow
from balent.data.outputs import fresh, unused
from balent.data.shards import Shards, Span
from balent.maths.moments import Moments
from balent.types import Batch, Engine, Indices, Probabilities, Traits
from balent.vision.blocks import same
from balent.vision.photos import Photos

SPAN = 1024  # images: minutes of a worker, and a few megabytes of features to send
GROUP = 1024  # rows of features in a row group: single rows are read again without decoding many
COLUMN = "features"


def embed_shards(
    shards: Shards,
    photos: Photos,
    folder: Path,
    *,
    engine: str | Engine = "local",
    progress: bool | Callable[[int, int | None], None] = False,
) -> None:
    """Writes a file of features for each shard: .npy, or with a key .parquet with the key beside the features.

    shards    images; the size that they are read with must be that of the backbone
    photos    computes the features
    folder    where the files are written; those that are complete, with the same settings, are kept
    engine    "local", or a `balent.RayEngine` with small spans (span_rows=1024): images take long
    progress  True for a progress bar, or a function of the images done and the number of images
    """
    _check(shards, photos)
    suffix, made = (".npy", _npy) if shards.wanted.key is None else (".parquet", _parquet)
    table = partial(made, shards, photos.width)
    about = {**photos.about(), "column": shards.wanted.column, "key": shards.wanted.key}
    for line in lines(folder / FINISHED):
        same(folder, json.loads(line), about)
    with ShardFiles(folder, shards, table, about, suffix, gaps=shards.skip_bad) as files:
        left = files.unfinished()
        shown = counting(progress, left.size) if progress else nullcontext()
        with shown as count, opened(engine, count=count) as running:
            running.scan(BackboneFeatures(photos), left, Passed(adapt.features, files.write, torch.float32))


class BackboneFeatures:
    """A backbone in the place of posterior samples: it has features, and gives no draws."""

    traits = Traits(plan="features only", answers=False)

    def __init__(self, photos: Photos) -> None:
        self.photos = photos

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Probabilities:
        raise ValueError("a backbone has features only, so it cannot score points; train a model on its features")

    def moments(self, batch: Batch, positions: Indices | None = None) -> Moments:
        return Moments.of(self(batch, positions))

    def features(self, batch: Batch) -> np.ndarray:
        """A row per image."""
        side = self.photos.side
        if not isinstance(batch, np.ndarray) or batch.dtype != np.uint8 or batch.shape[1:] != (3, side, side):
            found = f"{batch.dtype} of shape {list(batch.shape[1:])}" if isinstance(batch, np.ndarray) else type(batch)
            raise ValueError(
                f"features are made of images, bytes of shape [3, {side}, {side}], but points of these shards are "
                f"{found}; name the column of images (--column)"
            )
        return self.photos.of_pixels(batch)


def _check(shards: Shards, photos: Photos) -> None:
    if shards.wanted.size != photos.side:
        raise ValueError(
            f"{photos.network.name} takes images of {photos.side} pixels, but shards are read with size="
            f"{shards.wanted.size}; use Shards.of(…, size={photos.side})"
        )
    if shards.skip_bad and shards.wanted.key is None:
        raise ValueError(
            "with skip_bad=True (--skip-bad) rows of features are not rows of their shard, so each needs its key; "
            'name the column: key=… (--key); "path" of image files, "__key__" of .tar'
        )


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def _npy(shards: Shards, width: int, path: Path, number: int) -> AbstractContextManager[np.ndarray]:
    """A table to fill, which is the file."""
    return filled(path, (shards.shards[number].rows, width), np.dtype(np.float32))


@contextmanager
def _parquet(shards: Shards, width: int, path: Path, number: int) -> Iterator[np.ndarray]:
    """A table to fill, whose rows are written beside their keys when it is full; not those that were left out."""
    with fresh(unused(path.parent, "features"), mode=0o600) as rough, _npy(shards, width, rough, number) as table:
        yield table
        keys = np.array(shards.part(Span(number, 0, len(table))).names(), object)
        _write(path, str(shards.wanted.key), keys, table)


def _write(path: Path, key: str, keys: np.ndarray, table: np.ndarray) -> None:
    _, parquet = arrow()
    import pyarrow

    schema = pyarrow.schema({key: pyarrow.string(), COLUMN: pyarrow.list_(pyarrow.float32())})
    with parquet.ParquetWriter(path, schema) as file:
        for start in range(0, len(table), GROUP):
            part = table[start : start + GROUP]
            kept = ~np.isnan(part[:, 0])
            rows = pyarrow.FixedSizeListArray.from_arrays(part[kept].reshape(-1), table.shape[1])
            columns = [pyarrow.array(keys[start : start + GROUP][kept]), rows.cast(schema.types[1])]
            file.write_table(pyarrow.table(columns, schema))
