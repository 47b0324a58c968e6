"""How much do features tell?  Test accuracy of a linear classifier:  python benchmarks/probe.py FILE.npz …"""

import sys

import torch
from torch.nn.functional import cross_entropy

from balent.data.sources import load

DECAY, STEPS = 1e-3, 200  # of the weights; of LBFGS


def probe(path: str) -> float:
    """Logistic regression on standardised features."""
    data = load(path)
    mean, std = data.x_train[:].mean(0), data.x_train[:].std(0).clamp_min(1e-6)
    x, held = ((x[:] - mean) / std for x in (data.x_train, data.x_test))
    weights = torch.zeros(x.shape[1] + 1, data.classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = cross_entropy(x @ weights[1:] + weights[0], data.y_train) + DECAY * weights[1:].square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    right = (held @ weights[1:] + weights[0]).argmax(1) == data.y_test
    return float(right.float().mean())


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(f"{path}: {probe(path):.1%}")
