"""Finished jobs on disk, so that a process that dies goes on where it was.

A pass over a pool has a folder of its own, named after everything that its result depends on: spans, blocks, source,
fold, versions, and what the model gives for the first points. Another model or another pool is another folder. Each
finished job is a file of tensors (safetensors: nothing in it is executed when it is read), and then a line of JSON.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from balent.acquisition.engines.span_worker import Arrays, Done
from balent.data import outputs
from balent.data.pool import Indexed, Subset
from balent.types import Batch, Indices, Source

LINES = "done.jsonl"
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in memory: another one in the next process
PROBED = 256  # points of an array that stand for its content


@dataclass(frozen=True)
class SpanJournal:
    """The finished jobs of one pass."""

    folder: Path

    @classmethod
    def of(cls, place: Path, *facts: object) -> "SpanJournal":
        """The journal of a pass whose result depends on these facts."""
        folder = place / digest(facts)[:20]
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def add(self, number: int, done: Done) -> None:
        """When this returns, the job is on disk. One that left out rows is not kept: it lists them again."""
        from safetensors.numpy import save

        if done.skipped:
            return
        assert isinstance(done.result, dict)  # checked before the pass
        with outputs.whole(self._file(number)) as partial:
            partial.write_bytes(save(done.result, metadata={"kind": "balent"}))
        line = {"job": number, "points": done.points, "bytes": self._file(number).stat().st_size, "by": done.worker}
        with (self.folder / LINES).open("ab", buffering=0) as lines:
            lines.write(f"{json.dumps(line)}\n".encode())

    def finished(self) -> dict[int, int]:
        """Points by the numbers of the jobs that are completely on disk."""
        lines = self.folder / LINES
        found = [_parsed(line) for line in lines.read_bytes().splitlines()] if lines.exists() else []
        return {line["job"]: line["points"] for line in found if line and self._is_whole(line)}

    def load(self, number: int, points: int) -> Done:
        """What a finished job gave."""
        from safetensors.numpy import load

        result: Arrays = load(self._file(number).read_bytes())
        return Done(result, points, "the journal")

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:07d}.safetensors"

    def _is_whole(self, line: Mapping[str, Any]) -> bool:
        file = self._file(line["job"])
        return file.exists() and file.stat().st_size == line["bytes"]


def _parsed(line: bytes) -> dict[str, int] | None:
    """A line; None for one that was torn when its process died."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    numbers = isinstance(found, dict) and all(isinstance(found.get(name), int) for name in ("job", "points", "bytes"))
    return found if numbers else None


def digest(facts: Iterable[object]) -> str:
    """A name for facts that do not change from process to process."""
    found = hashlib.sha256()
    for fact in facts:
        found.update(_bytes(fact))
        found.update(b"\0")
    return found.hexdigest()


def _bytes(fact: object) -> bytes:
    if isinstance(fact, Indexed | Subset):
        return f"{type(fact).__name__} of {len(fact)} points".encode() + _bytes(_probe(fact))
    if isinstance(fact, torch.Tensor):
        return _bytes(fact.detach().cpu().numpy())
    if isinstance(fact, np.ndarray):
        return f"{fact.dtype} {fact.shape}".encode() + np.ascontiguousarray(fact).tobytes()
    if isinstance(fact, Mapping):
        return b"".join(_bytes(name) + _bytes(value) for name, value in fact.items())
    if isinstance(fact, list | tuple):
        return b"".join(_bytes(value) for value in fact)
    return ADDRESS.sub("", repr(fact)).encode("utf-8", "backslashreplace")


def _probe(source: Indexed | Subset) -> Sequence[Batch]:
    """Some points of an array or a Dataset, which may have changed since; files are known by their times."""
    if not len(source):
        return []
    at = source.positions[torch.linspace(0, len(source) - 1, min(PROBED, len(source)), dtype=torch.float64).long()]
    return [source.at(at), at]


@dataclass(frozen=True)
class Beginning:
    """The first block of a source."""

    source: Source

    @property
    def size(self) -> None:
        return None

    def blocks(self, points: int) -> Iterator[tuple[Batch, Indices]]:
        for block in self.source.blocks(points):
            yield block
            return


def folder(place: str | os.PathLike[str]) -> Path:
    """The folder of all journals."""
    found = Path(place)
    if found.exists() and not found.is_dir():
        raise NotADirectoryError(f"a journal is a folder, but {found} is a file; name another place")
    return found
