"""The k best after noise: high scores are likely, not certain, so that the points of a batch differ.

The Gumbel trick: the k largest of β·log(key) + Gumbel(0, 1) are k draws without replacement in
proportion to key^β (Kirsch et al., 2023). β = 0 picks at random, β → ∞ picks the top k.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from balent import adapt
from balent.maths import noise
from balent.maths.facts import facts
from balent.strategies.top_k import ByMeasure, Top
from balent.types import Batch, Indices, Measure, Needs, Picks, Pool, Sampled, Scores


@dataclass(frozen=True)
class Power:
    """k points drawn without replacement, in proportion to a positive key of the measure to the power beta."""

    measure: Measure
    beta: float = 1.0
    needs: ClassVar[Needs] = Needs(noise=True)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        return pool.scan(sampled, Top(Powered(self.measure, self.beta, generator.initial_seed()), k)).best.picks()


@dataclass(frozen=True)
class Powered:
    """β·log(key) + Gumbel noise of the point."""

    measure: Measure
    beta: float
    seed: int

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Scores:
        scores = ByMeasure(self.measure, self.seed)(sampled, batch, positions)
        log = log_key(self.measure, scores).cpu()
        log = self.beta * log if self.beta else torch.zeros_like(log)  # key^0 = 1, also where the key is 0
        return log + noise.gumbel(self.seed, adapt.keys(sampled, positions), purpose=1)  # 0 is the random measure's


def log_key(measure: Measure, scores: Tensor) -> Tensor:
    """The logarithm of a positive number in the order of the scores.

    That is what the measure declares, else the score itself; a score of 0 is last.
    """
    own = facts(measure).log_key
    if own is not None:
        return own(scores)
    if (scores < 0).any():
        raise ValueError(
            f"power: needs scores of 0 or more, but the measure gives {float(scores.min()):.6g}; "
            "use its top k, make it positive (exp keeps the order), or declare a log_key (balent.maths.facts.declares)"
        )
    return scores.log()
