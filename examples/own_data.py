"""Data of your own: arrays in an .npz, strategies compared on it, and what the records say."""

from dataclasses import replace

import numpy as np

import balent
from balent.paper.experiments import FEATURES


def features(points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Stands for your data: one row of numbers for each point, and its label 0..classes-1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, points)
    return (rng.standard_normal((points, 8)) + 1.5 * np.eye(3, 8)[y]).astype(np.float32), y


def main() -> None:
    (x_train, y_train), (x_test, y_test) = features(500, 0), features(300, 1)
    np.savez("mine.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    spec = replace(FEATURES, name="mine", data="mine.npz", epochs=60, start=12, per_round=12, total=48)
    for strategy in ("balentacq", "random"):
        for record in balent.run(replace(spec, strategy=strategy), f"runs/mine/{strategy}/seed-0"):
            print(f"{strategy:9s} {record['labels']:3d} labels  accuracy {record['accuracy']:.3f}")
    # The same for all strategies, three seeds each, with a report:  balent run features --data mine.npz


if __name__ == "__main__":
    main()
