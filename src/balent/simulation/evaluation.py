"""Quality of predictions on the test set: four metrics, from mean probabilities."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from balent import adapt
from balent.data.pool import Sized
from balent.maths.agreement import macro_f1, mean_iou
from balent.types import Sampled

BINS = 15  # of the calibration error, as is usual since Guo et al. (2017)

Probabilities = Float[Tensor, "points classes"]
Truth = Int[Tensor, " points"]


def predictions(sampled: Sampled, x: Sized) -> Probabilities:
    """E[P] of each point, a block at a time."""
    size = adapt.traits(sampled).block
    spans = [torch.arange(i, min(i + size, len(x))) for i in range(0, len(x), size)]
    return torch.cat([sampled.moments(x[at], at).mean for at in spans])


def evaluation(p: Probabilities, y: Truth) -> dict[str, float]:
    """Accuracy, negative log-likelihood (nats), Brier score and calibration error.

    >>> evaluation(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 0]))["brier"]
    0.3125
    """
    return {name: f(p, y) for name, f in METRICS.items()}


def evaluation_of_parts(sampled: Sampled, x: Sized, y: Tensor) -> dict[str, float]:
    """The four metrics over all parts that count, and mean IoU; of several labels over all labels, and macro F1.

    sampled  posterior samples of items with parts
    x        the items
    y        their labels, one row each; negative ones do not count
    """
    size = adapt.traits(sampled).block
    p, true, grids = list[Tensor](), list[Tensor](), list[Tensor]()
    for at in torch.arange(len(x)).split(size):
        m = sampled.moments(x[at], at)
        assert m.items is not None
        truth = y[at].flatten()[m.items.place]
        p.append(m.mean[truth >= 0])
        true.append(truth[truth >= 0])
        if m.items.binary:
            grids.append(m.items.grid(m.mean))
    rows, known = torch.cat(p), torch.cat(true)
    own = {"macro_f1": macro_f1(torch.cat(grids) > 0.5, y)} if grids else {"mean_iou": mean_iou(rows.argmax(1), known)}
    return evaluation(rows, known) | own


def accuracy(p: Probabilities, y: Truth) -> float:
    """The share of points whose likeliest class is the true one."""
    return float((p.argmax(1) == y).double().mean())


def nll(p: Probabilities, y: Truth) -> float:
    """-log p(true class), on average."""
    true = p[torch.arange(len(y)), y]
    # Probabilities are means of float32 numbers; 0 stands for "less than the smallest of them".
    return float(-true.clamp_min(torch.finfo(torch.float32).tiny).log().mean())


def brier(p: Probabilities, y: Truth) -> float:
    """Σ_c (p_c - [c is true])², on average."""
    return float((p - torch.nn.functional.one_hot(y, p.shape[1])).square().sum(1).mean())


def calibration_error(p: Probabilities, y: Truth, bins: int = BINS) -> float:
    """Expected calibration error: |confidence - accuracy| in bins of confidence, weighted by their points."""
    sure, guess = p.max(1)
    missed = sure.double() - (guess == y).double()
    at = (sure * bins).ceil().long().clamp(1, bins) - 1
    return float(torch.zeros(bins, dtype=torch.float64).index_add(0, at, missed).abs().sum() / len(y))


METRICS = {"accuracy": accuracy, "nll": nll, "brier": brier, "ece": calibration_error}
