"""MNIST and its kin in the idx format: a header of big-endian sizes, then bytes; gzipped or not.

Fashion-MNIST and KMNIST have MNIST's file names, so a checksum alone tells them apart.
"""

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from balent.data.cache import Decoded, Part, cached
from balent.data.formats import limits
from balent.data.formats.contents import Data
from balent.data.formats.files import Known, Source, md5

SIZES = {"train-images": 47_040_016, "train-labels": 60_008, "t10k-images": 7_840_016, "t10k-labels": 10_008}


@dataclass(frozen=True)
class IdxSet:
    """A data set published as four idx files. `packed` are md5 and size of the .gz, `plain` md5 of the content."""

    source: Source
    names: tuple[str, ...]
    packed: dict[str, Known]
    plain: dict[str, str]

    def __call__(self, folder: Path) -> Data:
        found = {stem: self.source.find(folder, spellings(stem)) for stem in SIZES}
        lost = [f"{stem}-idx{_axes(stem)}-ubyte.gz" for stem, path in found.items() if path is None]
        if lost:
            raise self.source.missing(folder, lost)
        paths = {stem: path for stem, path in found.items() if path is not None}
        return cached(self.source.name, folder, [*paths.values()], lambda: self.decoded(paths))

    def decoded(self, paths: dict[str, Path]) -> Decoded:
        notes: list[str] = []
        arrays = {stem: self._array(stem, path, notes) for stem, path in paths.items()}
        train, test = (self._part(paths, arrays, prefix) for prefix in ("train", "t10k"))
        if train.point != test.point:
            raise ValueError(
                f"images of the pool and of the test set must have one size, but those of {paths['train-images']} are "
                f"{list(train.point[1:])} and those of {paths['t10k-images']} are {list(test.point[1:])}"
            )
        return Decoded(train, test, self.names, lambda: notes)

    def _array(self, stem: str, path: Path, notes: list[str]) -> np.ndarray:
        array, content = self._parsed(stem, path)
        said = self.source.checked(path, self.packed[stem]) if path.suffix == ".gz" else ["not packed"]
        if said:  # not the published bytes: check the content
            self._not_anothers(stem, path, content)
            notes += self.source.checked(path, self._plain(stem), content) if self.plain else said
        return array

    def _plain(self, stem: str) -> Known | None:
        return Known(self.plain[stem], SIZES[stem]) if self.plain else None

    def _parsed(self, stem: str, path: Path) -> tuple[np.ndarray, bytes]:
        packed = path.suffix == ".gz"
        try:
            content = limits.gunzipped(path) if packed else path.read_bytes()
            return parse(content, _axes(stem)), content
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
            raise self.source.damaged(path, error, self.packed[stem] if packed else self._plain(stem)) from None

    def _not_anothers(self, stem: str, path: Path, content: bytes) -> None:
        came = {hashlib.md5(content, usedforsecurity=False).hexdigest(), md5(path)}
        for other in SETS.values():
            if other is not self and came & {other.packed[stem].md5, other.plain.get(stem)}:
                raise ValueError(
                    f"{path} is the file of {other.source.name}, not of {self.source.name}; put each set into a folder "
                    f"of its own: {', '.join(one.source.folders[0] for one in (self, other))}"
                )

    def _part(self, paths: dict[str, Path], arrays: dict[str, np.ndarray], prefix: str) -> Part:
        x, y = arrays[f"{prefix}-images"], arrays[f"{prefix}-labels"]
        if len(x) != len(y):
            raise ValueError(
                f"{paths[f'{prefix}-images']} has {len(x)} images, but {paths[f'{prefix}-labels']} has {len(y)} labels"
            )
        if len(y) and y.max() >= len(self.names):
            where = int(y.argmax())
            raise ValueError(
                f"{paths[f'{prefix}-labels']} must have labels 0..{len(self.names) - 1}, but that of image {where} is "
                f"{y[where]}"
            )
        return Part.whole(x[:, None], y)


def _axes(stem: str) -> int:
    return 3 if stem.endswith("images") else 1


def spellings(stem: str) -> list[str]:
    """The names under which a file is distributed."""
    return [f"{stem}{mark}idx{_axes(stem)}-ubyte{end}" for end in (".gz", "") for mark in ("-", ".")]


def parse(content: bytes, axes: int) -> np.ndarray:
    """The array of an idx file of bytes.

    >>> parse(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), 1)
    array([7, 9], dtype=uint8)
    """
    if content[:4] != bytes([0, 0, 8, axes]):
        raise ValueError(
            f"an idx file of bytes with {axes} axes begins with 0008{axes:02x}, this with {content[:4].hex()}"
        )
    start = 4 + 4 * axes
    shape = [int(size) for size in np.frombuffer(content[4:start], ">u4")]
    expected = start + int(np.prod(shape, dtype=object))
    if len(shape) < axes or len(content) != expected:
        raise ValueError(f"its header declares {expected:,} bytes for {shape}, but it has {len(content):,}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _known(*files: tuple[str, int]) -> dict[str, Known]:
    return {stem: Known(*file) for stem, file in zip(SIZES, files, strict=True)}


MNIST = IdxSet(
    Source("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/", ("mnist", "MNIST", "MNIST/raw")),
    tuple("0123456789"),
    _known(
        ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
        ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
        ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
        ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
    ),
    {
        "train-images": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels": "a25bea736e30d166cdddb491f175f624",
        "t10k-images": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels": "27ae3e4e09519cfbb04c329615203637",
    },
)
FASHION_MNIST = IdxSet(
    Source(
        "fashion-mnist",
        "https://github.com/zalandoresearch/fashion-mnist",
        ("fashion-mnist", "fashion_mnist", "FashionMNIST", "FashionMNIST/raw"),
    ),
    ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    _known(
        ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
        ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
        ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
        ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
    ),
    {
        "train-images": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels": "15d484375f8d13e6eb1aabb0c3f46965",
    },
)
KMNIST = IdxSet(
    Source("kmnist", "http://codh.rois.ac.jp/kmnist/", ("kmnist", "KMNIST", "KMNIST/raw")),
    ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    _known(
        ("bdb82020997e1d708af4cf47b453dcf7", 18_165_135),
        ("e144d726b3acfaa3e44228e80efcd344", 29_497),
        ("5c965bf0a639b31b8f53240b1b52f4d7", 3_041_136),
        ("7320c461ea6c1c855c0b718fb2a4b134", 5_120),
    ),
    {},  # no checksums of the content were published
)
SETS = {one.source.name: one for one in (MNIST, FASHION_MNIST, KMNIST)}
