"""Every measure over a source of draws in one pass: all scores as they come, or the best of each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from balent import checks
from balent.acquisition.score import FEWEST, scored, stability
from balent.data.probabilities import Source
from balent.maths.error import GROUPS, merged
from balent.maths.measures import MEASURES, Seeded, bound, check_draws
from balent.maths.moments import Moments
from balent.strategies import Best
from balent.types import Picks, Scores

Advance = Callable[[int], object]


def example(pool: int = 2000, draws: int = 100, classes: int = 10) -> Source:
    """Softmax of Gaussian logits whose confidence and disagreement differ from point to point."""
    generator = np.random.default_rng(0)
    center = 3 * generator.standard_normal((pool, 1, classes)) * generator.random((pool, 1, 1))
    noise = generator.standard_normal((pool, draws, classes)) * 2 * generator.random((pool, 1, 1))
    p = torch.from_numpy(center + noise).softmax(-1).numpy()
    return Source(p.shape, lambda start, stop: p[start:stop])


@dataclass(frozen=True)
class Job:
    """What `balent score` was asked for."""

    source: Source
    names: tuple[str, ...]
    logits: bool = False
    error: bool = False
    seed: int = 0

    @cached_property
    def measures(self) -> dict[str, Callable[[Moments], Scores]]:
        generator = checks.generator(self.seed)
        return {name: bound(checks.lookup(MEASURES, name, "measure"), generator) for name in self.names}

    @property
    def columns(self) -> list[str]:
        return ["point", *(c for name in self.names for c in ([name, f"{name}_error"] if self.error else [name]))]

    def blocks(self, groups: int, advance: Advance) -> Iterator[tuple[Tensor, list[Moments]]]:
        """Positions, and the moments of as many groups of draws (fewer if there are fewer draws)."""
        for name in self.measures:  # unknown names are said before the first block is read
            check_draws(MEASURES[name], self.source.shape[1])
        if self.error:
            checks.enough_draws(self.source.shape[1], 2)
        for start, block in self.source.blocks():
            positions = torch.arange(start, start + len(block))
            count = min(groups, block.shape[1])
            yield positions, Moments.groups(block, count, logits=self.logits, positions=positions)
            advance(len(block))

    def every_point(self, advance: Advance) -> Iterator[list]:
        """A row for each point, in the order of the pool."""
        for positions, groups in self.blocks(GROUPS if self.error else 1, advance):
            columns = [column for f in self.measures.values() for column in self._scores(f, groups)]
            for i, position in enumerate(positions.tolist()):
                yield [self.source.name(position), *(float(column[i]) for column in columns)]

    def best(self, k: int, advance: Advance) -> "Ranking":
        """The k best of each measure, from this one pass."""
        checks.batch_size(k, self.source.pool)
        best = {name: Best(k) for name in self.names}
        halves = {name: [Best(k), Best(k)] for name in self.names}
        errors: dict[str, dict[int, float]] = {name: {} for name in self.names}
        for positions, groups in self.blocks(GROUPS if self.error else 2, advance):
            parts = [merged(groups[::2]), merged(groups[1::2])] if len(groups) > 1 else []
            for name, f in self.measures.items():
                scores, *error = self._scores(f, groups)
                best[name].add(scores, positions)
                for half, m in zip(halves[name], [] if isinstance(f, Seeded) else parts, strict=False):
                    half.add(f(m), positions)
                if error:
                    known = {**errors[name], **dict(zip(positions.tolist(), error[0].tolist(), strict=True))}
                    errors[name] = {p: known[p] for p in best[name].positions.tolist()}
        agree = {
            name: stability(pair)
            for name, pair in halves.items()
            if name != "random" and self.source.shape[1] >= FEWEST
        }
        return Ranking(self.source, {name: b.picks() for name, b in best.items()}, errors if self.error else {}, agree)

    def _scores(self, f: Callable[[Moments], Scores], groups: list[Moments]) -> tuple[Scores, ...]:
        return scored(groups, f) if self.error else (f(merged(groups)),)


@dataclass(frozen=True)
class Ranking:
    """The best points of each measure, their errors, and how far two halves of the draws agree on them."""

    source: Source
    picks: dict[str, Picks]
    errors: dict[str, dict[int, float]]
    stability: dict[str, float]

    def rows(self) -> tuple[list[str], Iterator[list]]:
        """A header, and a row for each measure and rank."""
        return ["measure", "rank", "point", "score", *(["error"] if self.errors else [])], self._rows()

    def _rows(self) -> Iterator[list]:
        for name, picks in self.picks.items():
            ranked = zip(picks.indices.tolist(), picks.scores.tolist(), strict=True)
            for rank, (position, score) in enumerate(ranked, 1):
                error = [self.errors[name][position]] if self.errors else []
                yield [name, rank, self.source.name(position), score, *error]

    def remarks(self) -> Iterator[str]:
        for name, share in self.stability.items():
            k = len(self.picks[name].indices)
            yield f"{name}: two halves of the draws agree on {share:.0%} of the top {k}"
