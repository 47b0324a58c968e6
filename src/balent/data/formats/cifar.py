"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): 50,000 and 10,000 images of 32 × 32 pixels in colour.

Both are published as pickles and as plain records, in an archive; each is read packed or unpacked. The
pickles are read by `pickles`, which runs nothing of them.
"""

import io
import tarfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from balent.data.cache import Decoded, Part, cached
from balent.data.formats import limits, pickles
from balent.data.formats.contents import Data
from balent.data.formats.files import Known, Source

PIXELS = 3 * 32 * 32
PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"

Batch = tuple[np.ndarray, np.ndarray]  # images [n, 3, 32, 32], labels [n]


@dataclass(frozen=True)
class Edition:
    """One of the two forms in which a set is published: its archive, and what is in it."""

    archive: str
    known: Known
    folder: str
    train: tuple[str, ...]
    test: str
    names: str
    batch: Callable[[bytes], Batch]
    classes: Callable[[bytes], Sequence[str]]
    members: dict[str, Known]  # of the files in it, where they were published

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, self.test, self.names)


@dataclass(frozen=True)
class CifarSet:
    """CIFAR-10 or CIFAR-100, in whichever edition is there."""

    source: Source
    count: int  # of classes
    editions: tuple[Edition, ...]

    def __call__(self, folder: Path) -> Data:
        name = self.source.name
        for edition in self.editions:
            found = self.source.find(folder, [edition.folder])
            if found is not None and found.is_dir():
                paths = self._unpacked(found, edition)
                return cached(name, folder, [*paths.values()], partial(self._from_files, edition, paths))
        for edition in self.editions:
            found = self.source.find(folder, [edition.archive])
            if found is not None:
                return cached(name, folder, [found], partial(self._from_archive, edition, found))
        raise self.source.missing(folder, [" or ".join(edition.archive for edition in self.editions)])

    def _unpacked(self, place: Path, edition: Edition) -> dict[str, Path]:
        lost = [name for name in edition.files if not (place / name).is_file()]
        if lost:
            raise FileNotFoundError(
                f"{place} lacks {', '.join(lost)}; unpack {edition.archive} there again (from {self.source.address})"
            )
        return {name: place / name for name in edition.files}

    def _from_files(self, edition: Edition, paths: dict[str, Path]) -> Decoded:
        notes = [note for name, path in paths.items() for note in self.source.checked(path, edition.members.get(name))]
        contents = {name: path.read_bytes() for name, path in paths.items()}
        return self._decoded(edition, contents, paths, notes)

    def _from_archive(self, edition: Edition, path: Path) -> Decoded:
        try:
            contents = _members(limits.gunzipped(path), edition.files)
        except MemoryError:
            raise
        except Exception as error:  # tarfile raises more than TarError over a damaged header
            raise self.source.damaged(path, error, edition.known) from None
        lost = [name for name in edition.files if name not in contents]
        if lost:
            raise self.source.damaged(path, f"it has no {', '.join(lost)}", edition.known)
        notes = self.source.checked(path, edition.known)
        return self._decoded(edition, contents, {name: path / name for name in contents}, notes)

    def _decoded(
        self, edition: Edition, contents: dict[str, bytes], paths: dict[str, Path], notes: list[str]
    ) -> Decoded:
        read = {
            name: self._batch(edition, name, paths[name], contents[name]) for name in (*edition.train, edition.test)
        }
        x, y = zip(*(read[name] for name in edition.train), strict=True)
        try:
            names = tuple(edition.classes(contents[edition.names]))
            if len(names) != self.count:
                raise ValueError(f"it should name {self.count} classes, but names {len(names)}")
        except ValueError as error:
            raise self.source.damaged(paths[edition.names], error, edition.members.get(edition.names)) from None
        return Decoded(
            Part.whole(np.concatenate(x), np.concatenate(y)), Part.whole(*read[edition.test]), names, lambda: notes
        )

    def _batch(self, edition: Edition, name: str, path: Path, content: bytes) -> Batch:
        try:
            x, y = edition.batch(content)
            if len(x) != len(y):
                raise ValueError(f"it has {len(x)} images, but {len(y)} labels")
            if len(y) and not 0 <= y.min() <= y.max() < self.count:
                raise ValueError(f"labels must be 0..{self.count - 1}, but go from {y.min()} to {y.max()}")
        except pickles.Refused as error:
            raise ValueError(f"{path} is refused: {error}; get the set from {self.source.address}") from None
        except ValueError as error:
            raise self.source.damaged(path, error, edition.members.get(name)) from None
        return x, y


def _members(content: bytes, names: Collection[str]) -> dict[str, bytes]:
    """The files of a tar archive that have these names. Links are none, and a size below 0 would lead back."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            if not 0 <= member.size <= len(content):
                raise ValueError(
                    f"{member.name[:80]!r} should have {member.size:,} bytes, but all have {len(content):,}"
                )
            file = archive.extractfile(member) if member.isreg() and Path(member.name).name in names else None
            if file is not None:
                found[Path(member.name).name] = file.read()
    return found


def _pickled(key: str) -> Callable[[bytes], Batch]:
    def batch(content: bytes) -> Batch:
        found = pickles.read(content)
        data, labels = found.get("data"), found.get(key)
        if not isinstance(data, np.ndarray) or not isinstance(labels, list):
            raise ValueError(f"it should hold 'data' and {key!r}, but holds {', '.join(map(repr, found))[:200]}")
        if data.ndim != 2 or data.shape[1] != PIXELS:
            raise ValueError(f"images should be rows of {PIXELS} bytes, but the array is {list(data.shape)}")
        if not all(type(label) is int and abs(label) < 2**63 for label in labels):
            raise ValueError("labels should be whole numbers of 64 bits, but at least one is not")
        return data.reshape(-1, 3, 32, 32), np.array(labels, np.int64)

    return batch


def _recorded(labels: int) -> Callable[[bytes], Batch]:
    """Records of `labels` label bytes (the finest class last), then the pixels."""

    def batch(content: bytes) -> Batch:
        size = labels + PIXELS
        if len(content) % size or not content:
            raise ValueError(f"it should be records of {size:,} bytes, but has {len(content):,}")
        records = np.frombuffer(content, np.uint8).reshape(-1, size)
        return records[:, labels:].reshape(-1, 3, 32, 32), records[:, labels - 1].astype(np.int64)

    return batch


def _lines(content: bytes) -> list[str]:
    return [line.strip() for line in content.decode("ascii", "replace").splitlines() if line.strip()]


def _listed(key: str) -> Callable[[bytes], Sequence[str]]:
    def names(content: bytes) -> Sequence[str]:
        found = pickles.read(content).get(key)
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise ValueError(f"it should hold {key!r}, a list of names, but does not")
        return found

    return names


def _published(count: int, python: Edition, binary: Edition) -> CifarSet:
    names = (f"cifar{count}", f"cifar-{count}", f"CIFAR{count}")
    return CifarSet(Source(names[0], PAGE, names), count, (python, binary))


def _python(archive: str, known: Known, folder: str, kind: str, members: dict[str, Known]) -> Edition:
    """The edition in pickles. Members: the files of the pool, then the test set, then the names of the classes."""
    *train, test, names = members
    batch, classes = _pickled(f"{kind}labels"), _listed(f"{kind}label_names")
    return Edition(archive, known, folder, tuple(train), test, names, batch, classes, members)


def _binary(archive: str, known: Known, folder: str, labels: int, members: Sequence[str]) -> Edition:
    """The edition in plain records, with `labels` label bytes in each. Members are in the order of `_python`."""
    *train, test, names = members
    return Edition(archive, known, folder, tuple(train), test, names, _recorded(labels), _lines, {})


CIFAR10 = _published(
    10,
    _python(
        "cifar-10-python.tar.gz",
        Known("c58f30108f718f92721af3b95e74349a", 170_498_071),
        "cifar-10-batches-py",
        "",
        {
            "data_batch_1": Known("c99cafc152244af753f735de768cd75f", 31_035_704),
            "data_batch_2": Known("d4bba439e000b95fd0a9bffe97cbabec", 31_035_320),
            "data_batch_3": Known("54ebc095f3ab1f0389bbae665268c751", 31_035_999),
            "data_batch_4": Known("634d18415352ddfa80567beed471001a", 31_035_696),
            "data_batch_5": Known("482c414d41f54cd18b22e5b47cb7c3cb", 31_035_623),
            "test_batch": Known("40351d587109b95175f43aff81a1287e", 31_035_526),
            "batches.meta": Known("5ff9c542aee3614f3951f8cda6e48888", 158),
        },
    ),
    _binary(
        "cifar-10-binary.tar.gz",
        Known("c32a1d4ab5d03f1284b67883e8d87530", 170_052_171),
        "cifar-10-batches-bin",
        1,
        [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin", "batches.meta.txt"],
    ),
)
CIFAR100 = _published(
    100,
    _python(
        "cifar-100-python.tar.gz",
        Known("eb9058c3a382ffc7106e4002c42a8d85", 169_001_437),
        "cifar-100-python",
        "fine_",
        {
            "train": Known("16019d7e3df5f24257cddd939b257f8d", 155_249_918),
            "test": Known("f0ef6b0ae62326f3e7ffdfab6717acfc"),
            "meta": Known("7973b15100ade9c7d40fb424638fde48", 1_473),
        },
    ),
    _binary(
        "cifar-100-binary.tar.gz",
        Known("03b5dce01913d631647c71ecec9e9cb8", 168_513_733),
        "cifar-100-binary",
        2,
        ["train.bin", "test.bin", "fine_label_names.txt"],
    ),
)
