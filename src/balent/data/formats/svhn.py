"""SVHN, house numbers cropped to one digit (Netzer et al., 2011): X [32, 32, 3, n] and y [n, 1] in MATLAB files."""

from pathlib import Path

import numpy as np

from balent.data.cache import Decoded, Part, cached
from balent.data.formats import matlab
from balent.data.formats.contents import Data
from balent.data.formats.files import Known, Source

SOURCE = Source("svhn", "http://ufldl.stanford.edu/housenumbers/", ("svhn", "SVHN"))
FILES = {
    "train_32x32.mat": Known("e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
    "test_32x32.mat": Known("eb5a983be6a315427106f1b164d9cef3", 64_275_384),
}
ZERO = 10  # how the files write the digit 0


def svhn(folder: Path) -> Data:
    """73,257 and 26,032 digits of 32 × 32 pixels in colour. The extra set is not read."""
    found = {name: SOURCE.find(folder, [name]) for name in FILES}
    lost = [name for name, path in found.items() if path is None]
    if lost:
        raise SOURCE.missing(folder, lost)
    paths = [path for path in found.values() if path is not None]
    return cached("svhn", folder, paths, lambda: decoded(paths))


def decoded(paths: list[Path]) -> Decoded:
    notes: list[str] = []
    train, test = (_part(path, notes) for path in paths)
    return Decoded(train, test, tuple("0123456789"), lambda: notes)


def _part(path: Path, notes: list[str]) -> Part:
    known = FILES[path.name]
    try:
        found = matlab.arrays(path, ("X", "y"))
        x, y = found["X"], found["y"].reshape(-1)
        if x.shape[:3] != (32, 32, 3) or x.dtype != np.uint8 or len(y) != x.shape[-1]:
            raise ValueError(f"X must be bytes [32, 32, 3, n], but is {x.dtype} {list(x.shape)} with {len(y)} labels")
        if not np.isin(y, range(1, ZERO + 1)).all():
            raise ValueError(f"labels must be 1..{ZERO}, but go from {y.min()} to {y.max()}")
    except ValueError as error:
        raise SOURCE.damaged(path, error, known) from None
    notes += SOURCE.checked(path, known)
    return Part.whole(x.transpose(3, 2, 0, 1), np.where(y == ZERO, 0, y))
