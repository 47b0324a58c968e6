"""The k best after noise: high scores are likely, not certain, so that a batch is not all alike.

The Gumbel trick: the k largest of β·log(key) + Gumbel(0, 1) are k draws without replacement in
proportion to key^β (Kirsch et al., 2023). β = 0 picks at random, β → ∞ picks the top k.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from balent import checks
from balent.maths.facts import facts
from balent.maths.measures import ranked
from balent.strategies.blocks import blocks, length
from balent.strategies.top_k import Best
from balent.types import Batches, Measure, Picks, Pool, Sampled


@dataclass(frozen=True)
class Power:
    """k points drawn without replacement, in proportion to a positive key of the measure to the power beta."""

    measure: Measure
    beta: float = 1.0

    def __call__(self, sampled: Sampled, pool: Pool | Batches, k: int, *, generator: Generator) -> Picks:
        checks.batch_size(k, length(pool))
        best, measure = Best(k), ranked(self.measure, generator)
        for batch, positions in blocks(sampled, pool):
            log = log_key(self.measure, measure(sampled.moments(batch, positions)))
            log = self.beta * log if self.beta else torch.zeros_like(log)  # key^0 = 1, also where the key is 0
            best.add(log.cpu() + gumbel(len(log), generator), positions)
        return best.picks()


def log_key(measure: Measure, scores: Tensor) -> Tensor:
    """The logarithm of a positive number in the order of the scores.

    That is what the measure declares, else the score itself; a score of 0 comes last.
    """
    own = facts(measure).log_key
    if own is not None:
        return own(scores)
    if (scores < 0).any():
        raise ValueError(
            f"a power needs scores that are not negative, but the measure gives {float(scores.min()):.6g}; "
            "use its top k, make it positive (exp keeps the order), or declare a log_key (balent.maths.facts.declares)"
        )
    return scores.log()


def gumbel(n: int, generator: Generator) -> Tensor:
    """n draws of Gumbel(0, 1), as -log of Exponential(1)."""
    return -torch.empty(n, dtype=torch.float64).exponential_(generator=generator).log()
