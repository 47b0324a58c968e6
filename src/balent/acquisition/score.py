"""Scores and picks for probabilities from any framework, and how reliable they are.

A score is estimated from finitely many draws; another set of draws gives another score. The
standard error is a jackknife over groups of draws; the stability of a top-K is the share of picks
that two halves of the draws agree on.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from balent import adapt, checks
from balent.acquisition.acquire import acquire
from balent.acquisition.draws import Draws
from balent.acquisition.engines.local import Local
from balent.data.pool import Indexed
from balent.maths import noise
from balent.maths.error import GROUPS, jackknife, merged
from balent.maths.measures import random
from balent.maths.named import measure as named
from balent.maths.scored import scored
from balent.strategies import TopK, strategy
from balent.strategies.column import Column
from balent.types import Array, Batch, Indices, Measure, Picks, Sampled


def score(
    draws: Array, measure: str | Measure = "balentacq", *, logits: bool = False, with_error: bool = False, seed: int = 0
) -> Array | tuple[Array, Array]:
    """The score of each point: how much its label is worth. Returns the kind of array that was passed.

    draws       probabilities, or logits, of posterior samples: [pool, draws, classes]
    measure     a name (see `balent list`), or a function of moments
    logits      the numbers are logits
    with_error  return (scores, errors): the Monte-Carlo standard error of each score
    seed        seed of the measure `random`

    >>> import numpy as np
    >>> score(np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.7, 0.3]]]), "bald").round(4)
    array([0.1017, 0.    ])
    """
    checks.generator(seed)
    sampled = Draws(draws, logits=logits)
    reading = Scored(_measure(measure), int(seed), with_error)
    if with_error:
        checks.enough_draws(sampled.array.shape[1], 2)
    found = Local().scan(sampled, Indexed(np.arange(len(sampled))), Column(reading)).values
    results = [_like(draws, column) for column in found.unbind(1)]
    return (results[0], results[1]) if with_error else results[0]


@dataclass(frozen=True)
class Scored:
    """A reading: the score of each point, and its standard error if asked for."""

    measure: Measure
    seed: int
    with_error: bool = False

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        groups = adapt.groups(sampled, batch, positions, GROUPS if self.with_error else 1)
        constant = self.measure is random  # does not depend on the draws
        keys = adapt.keys(sampled, positions)
        scores = noise.uniform(self.seed, keys) if constant else scored(self.measure, merged(groups))
        checks.scores(scores, positions)
        if not self.with_error:
            return scores[:, None]
        errors = torch.zeros_like(scores) if constant else jackknife(groups, self.measure)
        return torch.stack([scores, errors], 1)


def select(
    draws: Array, measure: str | Measure = "balentacq", k: int = 1, *, logits: bool = False, seed: int = 0
) -> Picks:
    """The k points to label next, best first, ties by position.

    draws    probabilities, or logits, of posterior samples: [pool, draws, classes]
    measure  the name of a measure or of any strategy (see `balent list`), or a function of moments
    k        the number of points
    logits   the numbers are logits
    seed     seed of the strategy's noise

    For the top k of a measure, `stability` of the picks is the share of the top k on which two halves of the draws
    agree (None for fewer than four draws).

    >>> import numpy as np
    >>> select(np.array([[[0.7, 0.3], [0.7, 0.3]], [[0.9, 0.1], [0.5, 0.5]]]), "bald", k=1).indices
    array([1])
    """
    checks.generator(seed)
    chosen = strategy(measure) if isinstance(measure, str) else TopK(_measure(measure))
    chosen = replace(chosen, stable=True) if isinstance(chosen, TopK) else chosen
    sampled = Draws(draws, logits=logits)
    checks.batch_size(k, len(sampled))
    picks = acquire(sampled, np.arange(len(sampled)), k, chosen, seed=int(seed))
    return Picks(_like(draws, picks.indices), _like(draws, picks.scores), picks.stability)


def _measure(measure: str | Measure) -> Measure:
    if isinstance(measure, str):
        return named(measure)
    if not callable(measure):
        raise TypeError(f"a measure must be a name or a function of moments, but is {measure!r}")
    return measure


def _like(given: Array, result: Array) -> Array:
    return result.numpy() if isinstance(given, np.ndarray) and isinstance(result, Tensor) else result
