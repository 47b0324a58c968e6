"""Damaged files for every reader of `learning/data`: an error that names the file, or data that fit together.

    python -m torture.readers 1000      (from tests/) a table of 1,000 damaged files per reader

Every reader works in a process of its own, with a cap on memory and time. A file that takes more than MEMORY or longer
than SECONDS counts as a traceback; so does any error that is not ValueError, TypeError or OSError, or does not name the
file. Damage is random but fixed: try i of a reader is the same for the same seed.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import resource
import struct
import subprocess
import sys
import tarfile
import tempfile
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from random import Random
from threading import Thread
from typing import Any

import numpy as np
from helpers.formats import (
    STEMS,
    cifar10_binary,
    cifar10_python,
    idx,
    mat,
    mat_array,
    picture,
    pixels,
    svhn,
    tinyimagenet,
)

MEMORY = 1 << 30  # bytes beyond what the process has when it starts to read
SECONDS = 60.0  # per file; the first waits for imports on a busy machine
COLUMNS = ("tried", "clear error", "right", "traceback", "silent")
EXTREMES = [bytes(8), b"\xff" * 8, b"\xff\xff\xff\x7f" * 2, b"\x7f" + b"\xff" * 7, b"\x80".ljust(8, b"\0")]

Files = dict[str, bytes]


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


def flipped(content: bytes, rng: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncated(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content))]


def lengthened(content: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.choice([1, 4, 100])) + content[at:]


def shortened(content: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.choice([1, 4, 100]) :]


def edited(content: bytes, rng: Random) -> bytes:
    """Other numbers near the beginning or the end, where formats keep their sizes; extreme ones, most often."""
    size = rng.choice([1, 2, 4, 8])
    at = rng.randrange(min(len(content), 256))
    at = at if rng.random() < 0.7 else len(content) - 1 - at
    new = rng.choice([*EXTREMES, rng.randbytes(8)])[:size]
    return content[:at] + new + content[at + size :]


def swapped(content: bytes, rng: Random) -> bytes:
    a, b, c = sorted(rng.randrange(len(content) + 1) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def repeated(content: bytes, rng: Random) -> bytes:
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:b] + content[a:]


KINDS = (flipped, truncated, lengthened, shortened, edited, edited, swapped, repeated)


def damaged(content: bytes, rng: Random) -> bytes:
    """The content with one damage or several; never the content itself."""
    changed = content
    while changed == content:
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            changed = rng.choice(KINDS)(changed or b"\0", rng)
    return changed


# ── valid files ──────────────────────────────────────────────────────────────────────────────────


def mnist() -> Files:
    sizes = {"train-images-idx3": (12, 6, 5), "train-labels-idx1": (12,), "t10k-images-idx3": (6, 6, 5)}
    arrays = {stem: pixels(*sizes.get(stem, (6,))) for stem in STEMS}
    return {f"{stem}-ubyte": idx(array % 10 if array.ndim == 1 else array) for stem, array in arrays.items()}


def below(folder: str, files: Files) -> Files:
    return {f"{folder}/{name}": content for name, content in files.items()}


def tar(folder: str, files: Files) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def tiny_zip(method: int) -> Files:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in tinyimagenet(2, 2, 2)[0].items():
            archive.writestr(f"tiny-imagenet-200/{name}", content)
    return {"tiny-imagenet-200.zip": file.getvalue()}


def photos(kind: str, ending: str) -> Files:
    names = [f"{name}/{i}.{ending}" for name in ("cat", "dog") for i in range(3)]
    return {f"photos/{name}": picture((9, 8, 3), seed=i, kind=kind) for i, name in enumerate(names)}


def rows() -> dict[str, list]:
    labels = ["a", "b", None, "b"] * 5
    return {"one": [i / 4 for i in range(20)], "two": list(range(20)), "label": labels, "split": ["train"] * 20}


def table() -> Files:
    file = io.StringIO()
    csv.writer(file).writerows([rows(), *zip(*rows().values(), strict=True)])
    return {"t.csv": file.getvalue().encode()}


def parquet() -> Files:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.table(rows()), file)
    return {"t.parquet": file.getvalue()}


def arrays(save: Callable[..., None]) -> Files:
    file, x, y = io.BytesIO(), np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3), np.arange(8) % 3
    save(file, x_train=x, y_train=y - 1, x_test=x, y_test=y, ids_train=np.array([*"abcdefgh"]))
    return {"f.npz": file.getvalue()}


# ── readers ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Reader:
    """Valid files, what `datasets.load` is given to read them, and which of them to damage, perhaps before packing."""

    files: Callable[[], Files]
    name: str  # of a published set; of a file or folder if it begins with ./
    damage: str = ""  # names that end so
    pack: Callable[[Files], Files] = dict
    exact: bool = False  # a format with checksums: what is accepted must be what was there before the damage

    def write(self, folder: Path, files: Files) -> Files:
        packed = self.pack(files)
        for name, content in packed.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return packed

    def load(self, folder: Path) -> Any:
        from balent.data import sources as datasets

        own = self.name.startswith("./")
        return datasets.load(str(folder / self.name) if own else self.name, folder, say=lambda note: None)


def gzipped(files: Files) -> Files:
    return {f"{name}.gz": gzip.compress(content) for name, content in files.items()}


def zipped(files: Files) -> Files:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return {"f.npz": file.getvalue()}


def unzipped(file: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def compressed(files: Files) -> Files:
    """The arrays of MATLAB files, each compressed with a checksum that is right."""
    return {f"{part}_32x32.mat": mat(files[f"{part} X"], files[f"{part} y"], packed=True) for part in ("train", "test")}


def elements() -> Files:
    sizes = {"train": 3, "test": 2}
    x = {f"{part} X": mat_array("X", pixels(32, 32, 3, n)) for part, n in sizes.items()}
    return x | {f"{part} y": mat_array("y", np.ones((n, 1), np.uint8)) for part, n in sizes.items()}


def sealed(files: Files) -> Files:
    """PNG files whose chunks have checksums that are right again."""
    return {name: sealed_png(content) for name, content in files.items()}


def sealed_png(content: bytes) -> bytes:
    parts, at = [content[:8]], 8
    while at + 12 <= len(content):
        end = at + 8 + struct.unpack(">I", content[at : at + 4])[0]
        if end + 4 > len(content):
            break
        parts += [content[at:end], struct.pack(">I", zlib.crc32(content[at + 4 : end]))]
        at = end + 4
    return b"".join([*parts, content[at:]])


LABELS = b"file,label\ncat/0.png,cat\ncat/1.png,cat\ndog/0.png,dog\n"
READERS = {
    "idx": Reader(mnist, "mnist"),
    "idx.gz": Reader(lambda: gzipped(mnist()), "mnist", exact=True),
    "idx in .gz": Reader(mnist, "mnist", pack=gzipped),
    "CIFAR pickles": Reader(lambda: below("cifar-10-batches-py", cifar10_python(1)[0]), "cifar10"),
    "CIFAR records": Reader(lambda: below("cifar-10-batches-bin", cifar10_binary(1)[0]), "cifar10"),
    "CIFAR .tar.gz": Reader(
        lambda: gzipped({"cifar-10-python.tar": tar("cifar-10-batches-py", cifar10_python(1)[0])}),
        "cifar10",
        exact=True,
    ),
    "tar in .tar.gz": Reader(
        lambda: {"cifar-10-binary.tar": tar("cifar-10-batches-bin", cifar10_binary(1)[0])}, "cifar10", pack=gzipped
    ),
    "mat": Reader(lambda: {"train_32x32.mat": svhn(3), "test_32x32.mat": svhn(2)}, "svhn"),
    "mat, compressed": Reader(
        lambda: {"train_32x32.mat": svhn(3, True), "test_32x32.mat": svhn(2, True)}, "svhn", exact=True
    ),
    "array in mat": Reader(elements, "svhn", pack=compressed),
    "TinyImageNet": Reader(lambda: below("tiny-imagenet-200", tinyimagenet(2, 2, 2)[0]), "tinyimagenet"),
    "zip": Reader(lambda: tiny_zip(zipfile.ZIP_STORED), "tinyimagenet", exact=True),
    "zip, compressed": Reader(lambda: tiny_zip(zipfile.ZIP_DEFLATED), "tinyimagenet", exact=True),
    "folder of PNG": Reader(lambda: photos("PNG", "png"), "./photos"),
    "chunk in PNG": Reader(lambda: photos("PNG", "png"), "./photos", pack=sealed),
    "folder of JPEG": Reader(lambda: photos("JPEG", "jpg"), "./photos"),
    "labels.csv": Reader(lambda: {**photos("PNG", "png"), "photos/labels.csv": LABELS}, "./photos", "labels.csv"),
    "csv": Reader(table, "./t.csv"),
    "parquet": Reader(parquet, "./t.parquet"),
    "npz": Reader(lambda: arrays(np.savez), "./f.npz", exact=True),
    "npy in npz": Reader(lambda: unzipped(arrays(np.savez)["f.npz"]), "./f.npz", pack=zipped),
    "npz, compressed": Reader(lambda: arrays(np.savez_compressed), "./f.npz", exact=True),
}


# ── one damaged file ─────────────────────────────────────────────────────────────────────────────


def attempt(reader: Reader, files: Files, rng: Random, folder: Path, right: str) -> tuple[str, str]:
    """What came of one damaged file, in a column of the table, and a word on it. `right` is what `whole` gives."""
    chosen = rng.choice(sorted(name for name in files if name.endswith(reader.damage)))
    intact = reader.pack(files)
    written = reader.write(folder, {**files, chosen: damaged(files[chosen], rng)})
    names = [Path(name).name for name in written if written[name] != intact[name]]
    try:
        data = reader.load(folder)
        wrong = unsound(data) or ("other data" if reader.exact and fingerprint(data) != right else "")
        return ("silent", f"{wrong} in {folder}") if wrong else ("right", "")
    except (ValueError, TypeError, OSError) as error:
        named = all(name in str(error) for name in names)
        return ("clear error", "") if named else ("traceback", f"does not name {names}: {traceback.format_exc()}")
    except Exception:
        return "traceback", traceback.format_exc()


def unsound(data) -> str:
    """What does not fit together in data that were accepted; nothing, if all does."""
    for x, y, ids in ((data.x_train, data.y_train, data.ids_train), (data.x_test, data.y_test, data.ids_test)):
        if len(x) != len(y) or (ids is not None and len(ids) != len(y)):
            return f"{len(x)} points, {len(y)} labels"
        if len(y) and not -1 <= int(y.min()) <= int(y.max()) < data.classes:
            return f"labels {y.min()}..{y.max()} of {data.classes} classes"
        if not bool(x[: len(x)].isfinite().all()) or x[:1].shape[1:] != data.x_train[:1].shape[1:]:
            return "points that are not finite, or of two shapes"
    return ""


def work(name: str, start: int, tries: int, seed: int) -> None:
    """In a process of its own: a line of JSON for each try."""
    reader = READERS[name]
    files = reader.files()
    right = whole(reader, files)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    print(json.dumps(["ready", ""]), flush=True)
    for i in range(start, tries):
        with place() as folder:
            outcome = attempt(reader, files, Random(f"{seed} {name} {i}"), folder, right)
        print(json.dumps(outcome), flush=True)


@contextmanager
def place() -> Iterator[Path]:
    """A folder for data, with a cache of its own beside it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BALENT_CACHE"] = f"{folder}/cache"
        yield Path(folder) / "data"


def whole(reader: Reader, files: Files) -> str:
    """A fingerprint of what undamaged files hold; whatever is imported to read them is there from then on."""
    with place() as folder:
        reader.write(folder, files)
        data = reader.load(folder)
        assert not unsound(data)
        return fingerprint(data)


def fingerprint(data) -> str:
    arrays = (part[:].numpy() for part in (data.x_train, data.y_train, data.x_test, data.y_test))
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


# ── all of them ──────────────────────────────────────────────────────────────────────────────────


def outcomes(name: str, tries: int, seed: int) -> Iterator[tuple[str, str]]:
    """Of every try. A process that dies or takes too long is one traceback, and another goes on behind it."""
    done = 0
    while done < tries:
        process, lines = started(name, done, tries, seed)
        while line := next_of(lines):
            outcome, word = json.loads(line)
            if outcome != "ready":
                done += 1
                yield outcome, word
        process.kill()
        process.wait()
        if done < tries:
            done += 1
            yield "traceback", f"the process ended ({process.returncode}), or took longer than {SECONDS} s"


def started(name: str, start: int, tries: int, seed: int) -> "tuple[subprocess.Popen, Queue[str]]":
    """A process, and its lines as they come, with an empty one at the end."""
    here = Path(__file__).parents[1]
    frugal = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}  # what is reserved for later counts too
    env = {**os.environ, **frugal, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "torture.readers", "--work", name, str(start), str(tries), str(seed)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=here, env=env, text=True)
    lines = Queue[str]()
    Thread(target=forward, args=(process, lines), daemon=True).start()
    return process, lines


def forward(process: subprocess.Popen, lines: "Queue[str]") -> None:
    with process.stdout as output:
        for line in output:
            lines.put(line)
    lines.put("")


def next_of(lines: "Queue[str]") -> str:
    """The next line; nothing at the end, or after too long a time."""
    try:
        return lines.get(timeout=SECONDS)
    except Empty:
        return ""


def counted(name: str, tries: int, seed: int, tell: Callable[[str], None]) -> Counter:
    counts = Counter(dict.fromkeys(COLUMNS, 0), tried=tries)
    for i, (outcome, word) in enumerate(outcomes(name, tries, seed)):
        counts[outcome] += 1
        if outcome in ("traceback", "silent"):
            tell(f"{name}, try {i}: {outcome}: {word}")
    return counts


def run(tries: int, seed: int, tell: Callable[[str], None] = lambda line: None) -> dict[str, Counter]:
    """Counts by reader: tried, clear error, right, traceback, silent. `tell` gets what should not be."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
        counts = workers.map(lambda name: counted(name, tries, seed, tell), READERS)
        return dict(zip(READERS, counts, strict=True))


def main(words: list[str]) -> None:
    if words[:1] == ["--work"]:
        work(words[1], *map(int, words[2:]))
        return
    found = run(int(words[0]) if words else 1000, int(words[1]) if len(words) > 1 else 0, print)
    print(f"{'reader':18}", *(f"{column:>10}" for column in COLUMNS))
    for name, counts in found.items():
        print(f"{name:18}", *(f"{counts[column]:10,}" for column in COLUMNS))


if __name__ == "__main__":
    main(sys.argv[1:])
