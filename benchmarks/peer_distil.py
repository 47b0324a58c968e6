"""The side of decile-distil 0.2.0 in bench_strategies.py; peer_skactiveml.py says how to make its environment.

Its BADGE gets a network whose features are its inputs and whose logits are looked up, so that little but the selection
counts. Reads `probabilities.npy` [points, classes] and `features.npy` in a folder; prints seconds, best of several,
peak memory in MB above what was used before, and the picks.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from distil.active_learning_strategies.badge import BADGE
from peak import memory
from torch import Tensor, nn
from torch.utils.data import Dataset


class Ready(nn.Module):
    """A network over rows [features, logits]."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    def get_embedding_dim(self) -> int:
        return self.features

    def forward(self, x: Tensor, last: bool = False, freeze: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        logits = x[:, self.features :].clone().requires_grad_(True)
        return (logits, x[:, : self.features]) if last else logits


class Rows(Dataset):
    """A handler, as distil wants one."""

    def __init__(self, x: np.ndarray, *_: object, **__: object) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        return self.x[i], i


def main(folder: Path, k: int, repeats: int) -> None:
    p, h = np.load(folder / "probabilities.npy"), np.load(folder / "features.npy")
    rows = np.concatenate([h, np.log(p)], 1)
    before, best = memory("VmRSS"), np.inf
    for _ in range(repeats):
        np.random.seed(0)  # noqa: NPY002  # the generator of its scipy.stats
        start = time.perf_counter()
        settings = {"batch_size": 1024, "device": "cpu"}
        strategy = BADGE(rows[:1], np.zeros(1), rows, Ready(h.shape[1]), Rows, p.shape[1], settings)
        picks = strategy.select(k)
        best = min(best, time.perf_counter() - start)
    print(best, memory("VmHWM") - before, *picks)


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[4]))
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
