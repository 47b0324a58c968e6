"""Formats of shards: the table by ending, and what a shard is opened with. One file for each format."""

from collections.abc import Callable, Mapping

from balent.data import storage
from balent.data.shard_formats import image_files
from balent.data.shard_formats.arrow_shard import ArrowShard
from balent.data.shard_formats.image_files import ImageFiles
from balent.data.shard_formats.npy_shard import NpyShard
from balent.data.shard_formats.parquet_shard import ParquetShard
from balent.data.shard_formats.reader import Reader, Wanted
from balent.data.shard_formats.tar_shard import TarShard

FORMATS: Mapping[str, Callable[[str, Wanted], Reader]] = {
    ".npy": NpyShard,
    ".parquet": ParquetShard,
    ".tar": TarShard,
    ".arrow": ArrowShard,
}


def ending(path: str) -> str | None:
    """The ending of a shard, in lower case; None for a folder or a pattern of images."""
    return next((name for name in FORMATS if path.lower().endswith(name)), None)


def opened(path: str, wanted: Wanted) -> Reader:
    """A shard, opened."""
    name = ending(path)
    return ImageFiles(path, wanted) if name is None else FORMATS[name](path, wanted)


def about(path: str) -> storage.About:
    """Size and stamp of a shard."""
    return image_files.about(path) if ending(path) is None else storage.about(path)
