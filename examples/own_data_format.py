"""A data format of your own, used by name: one point per line, "label: number number …", in two text files.

    python examples/own_data_format.py                                       # writes pool.points and test.points here
    balent run features --data examples/own_data_format.py:read --set total=60 --seeds 1
    balent run features --data "examples/own_data_format.py:read(pool='other.points')" --seeds 1

The function returns a dict of arrays as an .npz would hold them, or a `balent.data.sources.Data`. If it has an argument
`folder`, that is the folder with data: balent run features --set data=examples/own_data_format.py:read --data FOLDER
"""

from pathlib import Path

import numpy as np


def read(folder: Path = Path(), pool: str = "pool.points", test: str = "test.points") -> dict[str, np.ndarray]:
    (x_train, y_train), (x_test, y_test) = points(folder / pool), points(folder / test)
    return {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}


def points(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of one file. Errors say which line to look at."""
    x, y = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        label, colon, numbers = line.partition(":")
        if not colon:
            raise ValueError(f"{path}, line {number}: expected 'label: number number …', but it is {line[:40]!r}")
        y.append(int(label))
        x.append([float(word) for word in numbers.split()])
    return np.array(x, dtype=np.float32), np.array(y)


def main() -> None:
    rng = np.random.default_rng(0)
    for name, count in (("pool", 300), ("test", 200)):
        y = rng.integers(0, 3, count)
        x = rng.standard_normal((count, 4)) + 2 * np.eye(3, 4)[y]
        lines = [f"{label}: {' '.join(f'{value:.3f}' for value in row)}" for label, row in zip(y, x, strict=True)]
        Path(f"{name}.points").write_text("\n".join(lines) + "\n")
    print({name: array.shape for name, array in read().items()})


if __name__ == "__main__":
    main()
