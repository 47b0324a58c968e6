"""Which files are the shards of a pool: a file, a folder, a pattern or several of them, here or in object storage."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from balent.data import storage
from balent.data.formats.endings import ENDINGS
from balent.data.shard_formats import FORMATS, ending

Given = str | os.PathLike[str]
HUB = ("dataset_info.json", "dataset_dict.json")  # in folders that `save_to_disk` of Hugging Face made
KINDS = f"{', '.join(FORMATS)} or images"


def paths(given: Given | Sequence[Given]) -> list[str]:
    """The paths of all shards. Images are one shard: their folder, or the pattern."""
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    found = [path for words in several for path in _of(os.fspath(words))]
    if not found:
        raise ValueError("a pool must have at least one shard, but no path was given")
    return found


def names_shards(words: str) -> bool:
    """Are these words of a command line shards?  Else they name one array, or a function."""
    if storage.is_remote(words) or os.path.isdir(words):
        return True
    if os.path.exists(words):
        return ending(words) not in (None, ".npy")
    return storage.is_pattern(words)


def short(paths: Sequence[str]) -> list[str]:
    """The path of each shard below the folder that all of them share."""
    folders = [path.split("/")[:-1] for path in paths]
    shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False)))
    return ["/".join(path.split("/")[shared:]) for path in paths]


def _of(words: str) -> list[str]:
    if not storage.is_remote(words) and not storage.is_pattern(words):
        words = os.path.normpath(words)
    if storage.is_pattern(words) and not os.path.exists(words):
        return _sorted_out(words, storage.matching(words))
    if storage.is_folder(words):
        return _folder(words.rstrip("/"))
    if ending(words) is None:
        raise ValueError(f"a shard must end in {KINDS}, but {words} does not" + _hint(words))
    if not storage.is_remote(words) and not os.path.exists(words):
        raise FileNotFoundError(f"there is no file {words}")
    return [words]


def _hint(words: str) -> str:
    return "; there is no such folder" if storage.is_remote(words) or not os.path.exists(words) else ""


def _folder(folder: str) -> list[str]:
    found = storage.below(folder)
    inside = {path[len(folder) + 1 :] for path in found}
    if "dataset_dict.json" in inside:
        parts = sorted({name.partition("/")[0] for name in inside if "/" in name})
        raise ValueError(f"{folder} holds a data set in parts; name one of them: {', '.join(parts)}")
    if "state.json" in inside and "dataset_info.json" in inside:
        return _hub(folder)
    return _sorted_out(f"{folder}/", found)


def _hub(folder: str) -> list[str]:
    """The files of a data set that `save_to_disk` wrote, which lists them."""
    state = json.loads(storage.contents(f"{folder}/state.json"))
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise ValueError(f"{folder} holds chosen rows of other data; save it anew after dataset.flatten_indices()")
    return [f"{folder}/{file['filename']}" for file in state["_data_files"]]


def _sorted_out(where: str, found: Sequence[str]) -> list[str]:
    """The shards among these files, all of one kind; images are one shard together."""
    shards = [path for path in found if ending(path) is not None and not _aside(path)]
    pictures = sum(path.lower().endswith(ENDINGS) for path in found)
    kinds = Counter(ending(path) for path in shards) + Counter({"images": pictures})
    if len(kinds) > 1:
        counts = ", ".join(f"{count:,} of {kind}" for kind, count in sorted(kinds.items(), key=str))
        raise ValueError(f"shards must be of one kind, but {where} has {counts}; name them by a pattern, as in *.npy")
    if not kinds:
        raise FileNotFoundError(f"{where} has no shards; they end in {KINDS}")
    return [where] if pictures else shards


def _aside(path: str) -> bool:
    """Files such as _metadata, which others write beside shards."""
    return path.rpartition("/")[2].startswith(("_", "."))
