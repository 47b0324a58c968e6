"""The labels that a batch might get, and what each would leave to learn.

A configuration y is one label for each point of a batch. It has the probability
p(y) = E_ω Π_i p(y_i | x_i, ω), and after it draw m has the weight w_m(y) ∝ Π_i p_m(y_i | x_i). So what the
label of one more point tells of ω, given those of the batch, is

    I(Y; ω | batch) = Σ_y p(y) [H(Σ_m w_m(y) p_m) - Σ_m w_m(y) H(p_m)]

a mean of BALDs under weights, none of which is negative. The label of that point itself is summed out, so the
gain of the b-th point takes the C^(b-1) configurations of those before it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from balent.types import Probabilities, Scores

# Nats: gains that differ by less are equal, and less than this is nothing.
ROUNDING = {torch.float64: 1e-12, torch.float32: 2e-6}
TOGETHER = 1 << 20  # configurations times classes of the points in one product: they stay in the cache
STRONGEST = 1e-3  # what is left of a weight of 1, where configurations differ no more
NEGLIGIBLE = 1e-30  # of what sums to 1. Products of smaller numbers would be denormal, many times slower, or 0


@dataclass(frozen=True)
class Configurations:
    """Configurations of a batch with their probabilities (which sum to 1) and the weights of the draws after each.

    Weights have the precision of the draws, sums over configurations that of float64.
    """

    probability: Float[Tensor, " configurations"]
    weights: Float[Tensor, "configurations draws"]
    exact: bool = True

    @classmethod
    def before_any(cls, draws: int, dtype: torch.dtype = torch.float64) -> "Configurations":
        """Of the empty batch: there is one, and all draws weigh the same."""
        return cls(torch.ones(1, dtype=torch.float64), torch.full((1, draws), 1 / draws, dtype=dtype))

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def rounding(self) -> float:
        return ROUNDING[self.weights.dtype]

    def gains(self, draws: Probabilities) -> Scores:
        """I(Y; ω | batch) at each of these points."""
        likely = self.probability.to(draws.dtype)
        noise = surprise(draws).sum(-1) @ (likely @ self.weights)
        together = max(1, TOGETHER // (len(self) * draws.shape[2]))
        gains = torch.cat([self._label_entropies(some, likely) for some in draws.split(together)]) - noise
        return gains.where(gains > self.rounding, 0).double()

    def _label_entropies(self, draws: Probabilities, likely: Tensor) -> Tensor:
        """H(Y | batch) at each of these points: one product for all of them."""
        points, _, classes = draws.shape
        predicted = self.weights @ draws.transpose(0, 1).flatten(1)
        return (likely @ surprise(predicted)).view(points, classes).sum(-1)

    def extended(self, point: Float[Tensor, "draws classes"], limit: int, generator: Generator) -> "Configurations":
        """Those of the batch and one more point: all if there are no more than `limit`, else so many of them."""
        predicted = self.weights @ point
        predicted.masked_fill_(predicted < NEGLIGIBLE, 0)
        joint = (self.probability.unsqueeze(1) * predicted.double()).flatten()
        possible = joint.nonzero()[:, 0]
        probability, exact = joint[possible], self.exact
        if len(possible) > limit:
            some, probability = thinned(probability, limit, generator)
            possible, exact = possible[some], False
        batch, label = possible // point.shape[1], possible % point.shape[1]
        weights = self.weights[batch].mul_(point.t()[label])
        weights.div_(weights.sum(1, keepdim=True)).masked_fill_(weights < NEGLIGIBLE, 0)
        return Configurations(probability, weights, exact)

    def merged(self) -> "Configurations":
        """Fewer of them, in which those are one that favour the same draw about as strongly: gains are upper bounds.

        A BALD is concave in the weights: that of their mean is no less than the mean of theirs.
        """
        top, draw = self.weights.max(1)
        strength = -(1 - top).clamp(min=STRONGEST).log()  # 0 for no favour, then one more for each factor e
        groups, group = (draw * 16 + strength.long()).unique(return_inverse=True)
        probability = self.probability.new_zeros(len(groups)).index_add_(0, group, self.probability)
        weights = self.weights.double() * (self.probability / probability[group]).unsqueeze(1)
        mean = weights.new_zeros(len(groups), weights.shape[1]).index_add_(0, group, weights)
        return Configurations(probability, mean.to(self.weights.dtype), False)


def surprise(p: Tensor) -> Tensor:
    """-p log p, 0 at 0."""
    return p.clamp(min=torch.finfo(p.dtype).tiny).log_().mul_(p).neg_()  # special.entr is slower


def thinned(p: Tensor, limit: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """`limit` of these probabilities, with weights whose expectations they are (Fearnhead & Clifford, 2003).

    Those above a threshold c stay as they are. The others stay with probability p/c, and then weigh c: in their order,
    at equal steps from a random start, so that of neighbours the right number stays.
    """
    c = threshold(p, limit)
    large = p > c
    steps = torch.where(large, 0, p / c).cumsum(0) + torch.rand(1, dtype=p.dtype, generator=generator)
    whole = steps.floor()
    chosen = large | (whole.diff(prepend=whole.new_zeros(1)) > 0)
    return chosen.nonzero()[:, 0], torch.where(large, p, c)[chosen]


def threshold(p: Tensor, limit: int) -> Tensor:
    """The c for which Σ min(p/c, 1) = limit."""
    largest = p.sort(descending=True).values
    rest = largest.flip(0).cumsum(0).flip(0)[:limit]  # with the 0, 1, 2… largest taken out
    c = rest / torch.arange(limit, 0, -1, dtype=p.dtype)
    return c[(largest[:limit] <= c).nonzero()[0, 0]]
