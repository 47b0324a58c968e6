"""Damaged files of probabilities and pools: each is a clear error, or is read; never a traceback.

    python -m torture.pools 1000      (from tests/) prints the table

An .npz has checksums: one that is read must hold the numbers that were saved, else it counts as silent. The other
formats have none, so that a changed digit of a number is a number.

Damage is what disks, networks and people do to files: bits that flip, bytes that change, ends that are missing, parts
that are there twice, parts of another file; and numbers in headers that lie. Readers are called as the commands do, and
what was read is looked at, since a mapped file is read only then.
"""

import io
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from balent.acquisition import loading, ranking
from balent.data import probabilities as reading
from balent.data.cells import write as write_csv

CLEAR = (ValueError, TypeError, OSError)  # what the command line puts into words
NUMBERS = (b"0", b"9", b"-1", b"999999999999", b"1e9", b"True", b"()", b"'", b"\x1b", b"=")
Rng = np.random.Generator
Reader = Callable[[Path], bytes]


def run(tries: int, seed: int) -> dict[str, Counter]:
    """For each command and format: how many damaged files were tried, and what came of them."""
    with tempfile.TemporaryDirectory() as place:
        return {
            f"{command} {name}": _tally(reader, Path(place) / f"damaged{Path(name).suffix}", whole, tries, seed)
            for command, reader in (("score", _score), ("acquire", _acquire))
            for name, whole in _files(command)
        }


def _tally(reader: Reader, path: Path, whole: bytes, tries: int, seed: int) -> Counter:
    path.write_bytes(whole)
    truth = reader(path)
    counts = Counter(dict.fromkeys(("tried", "clear error", "right", "traceback", "silent"), 0))
    for i in range(tries):
        path.write_bytes(_damaged(whole, np.random.default_rng([seed, zlib.crc32(path.suffix.encode()), i])))
        counts["tried"] += 1
        counts[_outcome(reader, path, truth)] += 1
    return counts


def _outcome(reader: Reader, path: Path, truth: bytes) -> str:
    try:
        found = reader(path)
    except CLEAR as error:
        if len(str(error).split()) > 3:
            return "clear error"
        return _reported("traceback", path, error)
    except Exception as error:
        return _reported("traceback", path, error)
    return "right" if path.suffix != ".npz" or found == truth else _reported("silent", path, "other numbers")


def _reported(outcome: str, path: Path, why: object) -> str:
    print(f"{outcome} of {path.suffix}: {type(why).__name__}: {why}", file=sys.stderr)
    return outcome


def _score(path: Path) -> bytes:
    """What `balent score` would write."""
    job = ranking.Job(reading.read(path), ("bald",), False, False, 0)
    return repr(list(job.every_point(lambda _: None))).encode()


def _acquire(path: Path) -> bytes:
    """The numbers that `balent acquire` would score."""
    return np.asarray(loading.pool(str(path), None)).tobytes()


def _files(command: str) -> Iterator[tuple[str, bytes]]:
    """Small valid files of every format that the command reads."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), (6, 4))
    for name, save in (("x.npy", np.save), ("x.npz", np.savez), ("packed.npz", np.savez_compressed)):
        file = io.BytesIO()
        save(file, p)
        yield name, file.getvalue()
    if command == "score":
        yield from _long(p)


def _long(p: np.ndarray) -> Iterator[tuple[str, bytes]]:
    rows = [(f"p{i}.png", k, c, float(p[i, k, c])) for i, k, c in np.ndindex(p.shape)]
    columns = dict(zip(reading.COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    with tempfile.TemporaryDirectory() as place:
        write_csv(Path(place) / "x.csv", list(reading.COLUMNS), rows)
        parquet.write_table(pa.table(columns), Path(place) / "x.parquet")
        for name in ("x.csv", "x.parquet"):
            yield name, (Path(place) / name).read_bytes()


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


def _damaged(whole: bytes, rng: Rng) -> bytes:
    kind = DAMAGE[rng.integers(len(DAMAGE))]
    return kind(whole, rng)


def _at(whole: bytes, rng: Rng) -> int:
    """Somewhere; half of the time near the beginning or the end, where headers and directories are."""
    near = int(rng.integers(min(len(whole), 160)))
    return [int(rng.integers(len(whole))), near, len(whole) - 1 - near][rng.integers(3)]


def _flip(whole: bytes, rng: Rng) -> bytes:
    data = bytearray(whole)
    for _ in range(rng.integers(1, 9)):
        data[_at(whole, rng)] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _overwrite(whole: bytes, rng: Rng) -> bytes:
    at = _at(whole, rng)
    new = rng.bytes(int(rng.integers(1, 64)))
    return whole[:at] + new + whole[at + len(new) :]


def _cut(whole: bytes, rng: Rng) -> bytes:
    return whole[: int(rng.integers(len(whole)))]


def _hole(whole: bytes, rng: Rng) -> bytes:
    at = _at(whole, rng)
    return whole[:at] + whole[at + int(rng.integers(1, 64)) :]


def _twice(whole: bytes, rng: Rng) -> bytes:
    start, stop = sorted((_at(whole, rng), _at(whole, rng)))
    return whole[:stop] + whole[start:stop] + whole[stop:]


def _zeros(whole: bytes, rng: Rng) -> bytes:
    at = _at(whole, rng)
    return whole[:at] + bytes(len(whole) - at)


def _number(whole: bytes, rng: Rng) -> bytes:
    """A digit becomes something else: a size that lies, a probability that is none."""
    digits = [i for i, byte in enumerate(whole) if chr(byte).isdigit()]
    at = digits[int(rng.integers(min(len(digits), 400)))] if digits else 0
    return whole[:at] + NUMBERS[rng.integers(len(NUMBERS))] + whole[at + 1 :]


def _extreme(whole: bytes, rng: Rng) -> bytes:
    """A field of two, four or eight bytes has its largest or its smallest value."""
    at, width = _at(whole, rng), int(2 ** rng.integers(1, 4))
    return whole[:at] + [b"\xff", b"\x00", b"\x7f"][rng.integers(3)] * width + whole[at + width :]


DAMAGE = (_flip, _overwrite, _cut, _hole, _twice, _zeros, _number, _extreme)


if __name__ == "__main__":
    for name, counts in run(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, 0).items():
        print(f"{name:20}", *(f"{count:6} {what}" for what, count in counts.items()))
