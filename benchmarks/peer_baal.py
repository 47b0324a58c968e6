"""The side of baal 2.1.0 in bench_mc_dropout.py, run by the Python of an environment of its own.

    python -m venv PEERS
    PEERS/bin/pip install torch==2.13.0 numpy scipy scikit-learn matplotlib Pillow 'structlog<23' torchmetrics tqdm
    PEERS/bin/pip install --no-deps baal==2.1.0

(baal also asks for jupyter, which nothing here needs; no torchvision, whose wheels do not load beside a CPU torch.)

Predicts with baal's ModelWrapper over a dataset in memory, then ranks by baal's BALD: it has no BalEnt. Prints
milliseconds a point, best of several, for baal's default (inputs stacked once for each draw) and for the best of its
ways: stacked or a pass for each draw, with and without its cache of the layers' inputs, batches of several sizes.
"""

import math
import sys
import time
import warnings
from collections.abc import Iterator

import structlog
import torch
from baal.active.heuristics import BALD
from baal.bayesian.caching_utils import MCCachingModule
from baal.bayesian.dropout import MCDropoutModule
from baal.modelwrapper import ModelWrapper, TrainingArgs
from torch import Tensor, nn
from torch.utils.data import Dataset

DRAWS = 100
POINTS = {"head": 128, "cnn": 128}
DEFAULT = (True, False, 32)  # stacked, cached, points in a batch
WAYS = (DEFAULT, (True, False, 4), (False, False, 32), (False, False, 128), (False, True, 32), (False, True, 128))
REPEATS = 2


class Labelled(Dataset):
    """baal wants pairs."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return self.x[i], 0


def head() -> nn.Module:
    """As balent.paper.networks.bayesian_head(2048, 100)."""
    return nn.Sequential(nn.Linear(2048, 2048), nn.Dropout(0.2), nn.ReLU(), nn.Linear(2048, 100, bias=False))


def cnn() -> nn.Module:
    """As balent.paper.networks.CNNBNN()."""
    layers: Iterator[nn.Module] = (
        layer
        for conv in (nn.Conv2d(1, 32, 5), nn.Conv2d(32, 64, 5))
        for layer in (conv, nn.Dropout2d(0.5), nn.MaxPool2d(2), nn.ReLU())
    )
    last = (nn.Flatten(), nn.Linear(1024, 128), nn.Dropout(0.5), nn.ReLU(), nn.Linear(128, 10, bias=False))
    return nn.Sequential(*layers, *last)


def seconds(network: nn.Module, data: Labelled, stacked: bool, cached: bool, size: int) -> float:
    """From network to ranks, best of several."""
    module = MCDropoutModule(MCCachingModule(network) if cached else network)
    wrapper = ModelWrapper(module, TrainingArgs(batch_size=size, workers=0, replicate_in_memory=stacked))
    best = math.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        predictions = wrapper.predict_on_dataset(data, iterations=DRAWS, verbose=False)
        BALD()(predictions)
        best = min(best, time.perf_counter() - start)
    return best


def main(threads: int) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    inputs = {"head": (2048,), "cnn": (1, 28, 28)}
    for name, network in (("head", head), ("cnn", cnn)):
        data = Labelled(torch.randn(POINTS[name], *inputs[name]))
        times = {way: seconds(network(), data, *way) * 1e3 / len(data) for way in WAYS}
        best = min(WAYS, key=times.__getitem__)
        words = (
            f"{'stacked' if best[0] else 'a pass each'}, {'cached' if best[1] else 'no cache'}, batches of {best[2]}"
        )
        print(f"{name}\t{times[DEFAULT]}\t{times[best]}\t{words}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
