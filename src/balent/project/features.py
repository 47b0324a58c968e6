"""Features of items, computed once: rows of numbers by fingerprint, in blocks on disk.

A maker turns contents into rows: a backbone for images, TF-IDF for texts, columns of a table. Rows belong to contents,
not to files: a renamed item has its row already, a changed one gets a new row, and duplicates share one. A block is
on disk before the index names it, and blocks begin at the same contents whatever was done before, so that what a kill
interrupts ends the same, bit for bit.
"""

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from balent.data import arrays
from balent.loop import journal
from balent.project.kinds import Given, array_of
from balent.project.log import Log, held
from balent.project.settings import Settings

BLOCK = 256  # contents of a block
Numbers = Float[np.ndarray, "items width"]


@runtime_checkable
class Maker(Protocol):
    """Turns contents into features."""

    def fit(self, contents: Sequence[Any]) -> None: ...  # learns what features are made with, e.g. a vocabulary
    def __call__(self, contents: Sequence[Any]) -> tuple[Numbers, list[str | None]]: ...  # rows, why some have none
    def about(self) -> dict[str, Any]: ...  # all that decides the features, but for `state`
    def state(self) -> dict[str, np.ndarray]: ...
    def load_state(self, state: dict[str, np.ndarray]) -> None: ...


@runtime_checkable
class HasNotes(Protocol):
    """A maker that has something to tell, once it is fitted."""

    def notes(self) -> list[str]: ...


@runtime_checkable
class HasWords(Protocol):
    """A maker of texts that knows what each word adds: (start, end, share of weights · row), the largest first."""

    def words(self, content: str, weights: np.ndarray) -> list[tuple[int, int, float]]: ...


def maker(settings: Settings, directory: Path) -> Maker:
    """What computes the features of a project; where some are computed, the rest is computed in the same way."""
    if (array := array_of(settings, directory.parent)) is not None:
        return AsTheyAre(array)
    if settings.kind == "images":
        from balent.vision.photos import Photos

        return Photos(settings.features or "efficientnet-lite0", backend=_backend(directory))
    if settings.kind == "text":
        return _of_texts(settings.features)
    if settings.kind == "table":
        from balent.data.waves import Waves

        return Waves()
    return AsTheyAre()


def _backend(directory: Path) -> str:
    """That of the features that are there, else any: features of different backends differ in the fifth digit."""
    for file in sorted(directory.glob("*/maker.npz")):
        if backend := json.loads(str(arrays.npz(file, "about"))).get("backend"):
            return str(backend)
    return "auto"


def _of_texts(name: str) -> Maker:
    if name in ("", "tfidf"):
        from balent.text.tfidf import Tfidf

        return Tfidf()
    from balent.text.sentences import Sentences

    return Sentences(name)


class AsTheyAre:
    """Contents that are rows of numbers already. None stands for an item that the array has no row of."""

    def __init__(self, array: Given | None = None) -> None:
        self.array = array

    def fit(self, contents: Sequence[Any]) -> None:
        pass

    def __call__(self, contents: Sequence[Any]) -> tuple[Numbers, list[str | None]]:
        found = [None if row is None else np.asarray(row, dtype=np.float32) for row in contents]
        reasons = [self._reason(row) for row in found]
        good = [row for row, reason in zip(found, reasons, strict=True) if row is not None and reason is None]
        return np.stack(good) if good else np.empty((0, 0), np.float32), reasons

    def _reason(self, row: np.ndarray | None) -> str | None:
        if row is None:
            return f"it has no row in {self.array.path.name}" if self.array else "it has no row"
        return None if np.isfinite(row).all() else "its numbers are not finite"

    def about(self) -> dict[str, Any]:
        """Another array has other features: they are taken anew."""
        if self.array is None:
            return {"maker": "given"}
        stat = self.array.path.stat()
        return {"maker": "given", "array": self.array.path.name, "size": stat.st_size, "mtime": stat.st_mtime_ns}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        pass


class Features:
    """The rows of a project, by fingerprint; and the contents that have none, with the reason."""

    def __init__(self, directory: Path, maker: Maker) -> None:
        about = json.dumps(maker.about(), sort_keys=True)
        self.directory = directory / hashlib.sha256(about.encode()).hexdigest()[:12]
        self.maker, self._about = maker, about
        self.bad: dict[str, str] = {}
        self._at: dict[str, tuple[str, int]] = {}  # fingerprint: file, row
        self._sums: dict[str, int] = {}
        self._index = Log(self.directory / "index.ndjson", self.directory / "index.lock")
        self._blocks: dict[str, Numbers] = {}
        self._ready = False

    def known(self) -> bool:
        """Have any been looked at? All of them may be bad."""
        self._look()
        return bool(self._at or self.bad)

    def missing(self, prints: Sequence[str]) -> list[str]:
        """Those without a row and without a reason, each once, in this order."""
        self._look()
        return [print for print in dict.fromkeys(prints) if print not in self._at and print not in self.bad]

    def rows(self, prints: Sequence[str]) -> Numbers:
        """The rows of these fingerprints. Blocks are mapped, not read, so only this result is held."""
        self._look()
        wanted: dict[str, list[tuple[int, int]]] = {}
        for i, print in enumerate(prints):
            file, row = self._at[print]
            wanted.setdefault(file, []).append((i, row))
        blocks = {file: self._block(file) for file in wanted}
        out = np.empty((len(prints), next(iter(blocks.values())).shape[1] if blocks else 0), dtype=np.float32)
        for file, pairs in wanted.items():
            at, rows = zip(*pairs, strict=True)
            out[list(at)] = blocks[file][list(rows)]
        return out

    def compute(
        self, contents: Mapping[str, Callable[[], Any]], *, progress: Callable[[int, int], None] | None = None
    ) -> list[str]:
        """Computes what is missing; returns what the user should know of how, the first time.

        One process at a time; another one waits, and then finds it done.
        """
        if not self.missing([*contents]):
            return []
        self.directory.mkdir(parents=True, exist_ok=True)
        with held(self.directory / "lock", patience=float("inf")):
            missing = self.missing([*contents])
            if progress is not None:
                progress(0, len(missing))  # a rate needs a beginning
            notes = self._prepare(missing, contents)
            for done, part in _parts(missing):
                self._add(part, *self.maker([contents[print]() for print in part]))
                if progress is not None:
                    progress(done + len(part), len(missing))
        return notes

    def prepared(self) -> Maker:
        """The maker, as it was when the first features were computed."""
        state = self.directory / "maker.npz"
        if not self._ready and state.exists():
            self.maker.load_state(arrays.several(state, arrays.names(state)))
            self._ready = True
        return self.maker

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────

    def _prepare(self, missing: list[str], contents: Mapping[str, Callable[[], Any]]) -> list[str]:
        """Fits the maker once, on what there is; what comes later is computed in the same way."""
        path = self.directory / "maker.npz"
        new = not path.exists() and bool(missing)
        if new:
            self.maker.fit(Lazy([contents[print] for print in missing]))
            file = io.BytesIO()
            np.savez(file, allow_pickle=False, **{"about": np.array(self._about), **self.maker.state()})
            journal.write(path, file.getvalue())
            self._ready = True
        self.prepared()
        return self.maker.notes() if new and isinstance(self.maker, HasNotes) else []

    def _add(self, prints: list[str], rows: Numbers, reasons: list[str | None]) -> None:
        good = [print for print, reason in zip(prints, reasons, strict=True) if reason is None]
        bad = {print: reason for print, reason in zip(prints, reasons, strict=True) if reason is not None}
        name = f"{prints[0][:24]}.npy"
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(rows, dtype=np.float32), allow_pickle=False)
        journal.write(self.directory / name, file.getvalue())
        line = {"format": 1, "file": name, "prints": good, "bad": bad, "crc32": zlib.crc32(file.getvalue())}

        def lines(news: list[dict[str, Any]]) -> list[dict[str, Any]]:
            self._take(news)
            return [line]

        self._index.append(lines)
        self._take([line])

    def _look(self) -> None:
        """Reads what the index has gained."""
        self._take(self._index.news())

    def _take(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self._at.update((print, (line["file"], row)) for row, print in enumerate(line["prints"]))
            self.bad.update(line["bad"])
            self._sums[line["file"]] = line["crc32"]

    def _block(self, file: str) -> Numbers:
        """A block, mapped; its checksum is verified once."""
        if file not in self._blocks:
            path = self.directory / file
            if not path.exists() or zlib.crc32(path.read_bytes()) != self._sums[file]:
                raise ValueError(f"{path} is damaged or missing; remove {self.directory}: it is computed again")
            self._blocks[file] = arrays.npy(path)
        return self._blocks[file]


class Lazy(Sequence[Any]):
    """Contents that are read when they are looked at."""

    def __init__(self, contents: list[Callable[[], Any]]) -> None:
        self._contents = contents

    def __len__(self) -> int:
        return len(self._contents)

    def __getitem__(self, at: Any) -> Any:
        return Lazy(self._contents[at]) if isinstance(at, slice) else self._contents[at]()


def _parts(prints: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Blocks, and how many contents come before each."""
    for start in range(0, len(prints), BLOCK):
        yield start, prints[start : start + BLOCK]
