"""Scores and picks for probabilities from any framework, and how far they can be trusted.

A score is estimated from finitely many draws; another set of draws gives another score. The
standard error is a jackknife over groups of draws; the stability of a top-K is the share of picks
that two halves of the draws agree on.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from balent import checks
from balent.draws import Draws
from balent.measures import MEASURES, Seeded, bound, random
from balent.moments import Moments
from balent.strategies import Best, TopK, strategy
from balent.strategies.error import GROUPS, jackknife, merged
from balent.types import Array, Measure, Picks, Scores

FEWEST = 4  # draws of which two halves can disagree


def score(
    draws: Array, measure: str | Measure = "balentacq", *, logits: bool = False, with_error: bool = False, seed: int = 0
) -> Array | tuple[Array, Array]:
    """What a label is worth at each point of draws [pool, draws, classes], as the same kind of array.

    `with_error` returns (scores, errors): the Monte-Carlo standard error of each score.

    >>> import numpy as np
    >>> score(np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.7, 0.3]]]), "bald").round(4)
    array([0.1017, 0.    ])
    """
    f = bound(_measure(measure), checks.generator(seed))
    blocks = moments(draws, logits, GROUPS if with_error else 1)
    parts = []
    for positions, groups in blocks:
        parts.append(scored(groups, f) if with_error else (f(groups[0]),))
        checks.scores(parts[-1][0], positions)
    results = tuple(_like(draws, torch.cat(part)) for part in zip(*parts, strict=True))
    return (results[0], results[1]) if with_error else results[0]


def select(
    draws: Array, measure: str | Measure = "balentacq", k: int = 1, *, logits: bool = False, seed: int = 0
) -> Picks:
    """The k points to label next, best first, ties by position; a measure or any strategy by name.

    For the top k of a measure, `stability` says which share of their top k two halves of the draws agree on (None
    for fewer than four draws).

    >>> import numpy as np
    >>> select(np.array([[[0.7, 0.3], [0.7, 0.3]], [[0.9, 0.1], [0.5, 0.5]]]), "bald", k=1).indices
    array([1])
    """
    chosen, generator = (
        strategy(measure) if isinstance(measure, str) else TopK(_measure(measure)),
        checks.generator(seed),
    )
    checks.batch_size(k, len(checks.draws(draws)))
    if isinstance(chosen, TopK) and chosen.measure is not random and draws.shape[1] > 1:
        picks = _stable_top_k(draws, chosen.measure, k, logits)
    else:
        source = Draws(draws, logits=logits)
        picks = chosen(source, np.arange(len(source)), k, generator=generator)
    return Picks(_like(draws, picks.indices), _like(draws, picks.scores), picks.stability)


def moments(draws: Array, logits: bool, groups: int = 1) -> Iterator[tuple[Tensor, list[Moments]]]:
    """Positions and the moments of groups of draws, a block of the pool at a time."""
    x = checks.draws(draws)
    if groups > 1:
        checks.enough_draws(x.shape[1], 2)
    size = Draws(x).block
    for start in range(0, len(x), size):
        block = x[start : start + size]
        positions = torch.arange(start, start + len(block))
        yield positions, Moments.groups(block, min(groups, x.shape[1]), logits=logits, positions=positions)


def scored(groups: list[Moments], measure: Callable[[Moments], Scores]) -> tuple[Scores, Scores]:
    """Scores of all draws, and their standard errors."""
    total = merged(groups)
    if isinstance(measure, Seeded):  # does not depend on the draws
        return measure(total), torch.zeros_like(total.entropy)
    return measure(total), jackknife(groups, measure)


def _measure(measure: str | Measure) -> Measure:
    if isinstance(measure, str):
        return checks.lookup(MEASURES, measure, "measure")
    if not callable(measure):
        raise TypeError(f"a measure must be a name or a function of moments, but is {measure!r}")
    return measure


def stability(halves: list[Best]) -> float:
    """The share of the k best that two halves of the draws agree on."""
    one, other = (best.positions for best in halves)
    return float(torch.isin(one, other).double().mean())


def _stable_top_k(draws: Array, measure: Measure, k: int, logits: bool) -> Picks:
    best, halves = Best(k), [Best(k), Best(k)]
    for positions, parts in moments(draws, logits, groups=2):
        best.add(measure(merged(parts)), positions)
        for half, m in zip(halves, parts, strict=True):
            half.add(measure(m), positions)
    return Picks(best.positions, best.scores, stability(halves) if draws.shape[1] >= FEWEST else None)


def _like(given: Array, result: Array) -> Array:
    return result.numpy() if isinstance(given, np.ndarray) and isinstance(result, Tensor) else result
