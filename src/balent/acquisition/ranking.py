"""Several measures over a file of draws in one pass: the scores of all points, or the best of each measure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from torch import Tensor

from balent import checks
from balent.acquisition.beside import Known, Together
from balent.acquisition.drawn_rows import DrawnRows, DrawnShards
from balent.acquisition.draws import Draws
from balent.acquisition.engines.local import Local
from balent.acquisition.score import Scored
from balent.data.pool import Indexed
from balent.data.probabilities import Table
from balent.maths.measures import check_draws, random
from balent.maths.named import measure as named
from balent.strategies.top_k import FEWEST, ByMeasure, Halves, Top
from balent.types import Batch, Fold, Indices, Measure, Picks, Rereadable, Sampled

Advance = Callable[[int], None]


def example(pool: int = 2000, draws: int = 100, classes: int = 10) -> Table:
    """Softmax of Gaussian logits whose confidence and disagreement differ from point to point."""
    generator = np.random.default_rng(0)
    center = 3 * generator.standard_normal((pool, 1, classes)) * generator.random((pool, 1, 1))
    noise = generator.standard_normal((pool, draws, classes)) * 2 * generator.random((pool, 1, 1))
    p = torch.from_numpy(center + noise).softmax(-1).numpy()
    return Table(p.shape, lambda start, stop: p[start:stop])


@dataclass(frozen=True)
class Job:
    """The arguments of `balent score`."""

    table: Table | DrawnShards
    names: tuple[str, ...]
    logits: bool = False
    error: bool = False
    seed: int = 0

    @cached_property
    def measures(self) -> dict[str, Measure]:
        found = {name: named(name) for name in self.names}
        checks.generator(self.seed)
        for measure in found.values():
            check_draws(measure, self.table.shape[1])
        if self.error:
            checks.enough_draws(self.table.shape[1], 2)
        return found

    @property
    def columns(self) -> list[str]:
        return ["point", *(c for name in self.names for c in ([name, f"{name}_error"] if self.error else [name]))]

    def every_point(self, advance: Advance) -> Iterator[list[object]]:
        """One row per point, in the order of the pool."""
        columns = Side([Scored(f, self.seed, self.error) for f in self.measures.values()])
        for positions, found in Local(count=advance).stream(self._sampled, self._points, columns):
            for name, row in zip(self.table.named(positions), found.tolist(), strict=True):
                yield [name, *row]

    def best(self, k: int, advance: Advance) -> "Ranking":
        """The k best of each measure, from one pass; those are read again for their errors."""
        checks.batch_size(k, len(self.table))
        together = Together([self._fold(measure, k) for measure in self.measures.values()])
        folds = Local(count=advance).scan(self._sampled, self._points, together).folds
        picks = {name: _picks(fold) for name, fold in zip(self.measures, folds, strict=True)}
        errors = {name: self._errors(name, found) for name, found in picks.items()} if self.error else {}
        return Ranking(self.table, picks, errors)

    @cached_property
    def _sampled(self) -> Sampled:
        if isinstance(self.table, DrawnShards):
            return DrawnRows(*self.table.shape[1:], logits=self.logits)
        return Draws(self.table, logits=self.logits)

    @property
    def _points(self) -> Rereadable:
        return self.table.shards if isinstance(self.table, DrawnShards) else Indexed(np.arange(len(self.table)))

    def _fold(self, measure: Measure, k: int) -> Halves | Top:
        halves = measure is not random and self.table.shape[1] >= FEWEST
        return Halves(measure, k) if halves else Top(ByMeasure(measure, self.seed), k)

    def _errors(self, name: str, picks: Picks) -> list[float]:
        reading = Scored(self.measures[name], self.seed, with_error=True)
        return Local().read(self._sampled, self._points, torch.as_tensor(picks.indices), reading)[:, 1].tolist()


@dataclass(frozen=True)
class Side:
    """A reading: several readings side by side, of moments that are computed once."""

    readings: Sequence[Scored]

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        known = Known(sampled)
        return torch.cat([reading(known, batch, positions) for reading in self.readings], 1)


def _picks(fold: Fold) -> Picks:
    if isinstance(fold, Halves):
        found = fold.best[0].picks()
        return Picks(found.indices, found.scores, stability=fold.stability)
    return cast(Top, fold).best.picks()


@dataclass(frozen=True)
class Ranking:
    """The best points of each measure, with their errors if requested."""

    table: Table | DrawnShards
    picks: dict[str, Picks]
    errors: dict[str, list[float]]

    def rows(self) -> tuple[list[str], Iterator[list[object]]]:
        """A header, and a row for each measure and rank."""
        return ["measure", "rank", "point", "score", *(["error"] if self.errors else [])], self._rows()

    def _rows(self) -> Iterator[list[object]]:
        for name, picks in self.picks.items():
            points = self.table.named(torch.as_tensor(picks.indices))
            columns = [points, picks.scores.tolist(), *([self.errors[name]] if self.errors else [])]
            for rank, row in enumerate(zip(*columns, strict=True), 1):
                yield [name, rank, *row]

    def remarks(self) -> Iterator[str]:
        for name, picks in self.picks.items():
            if picks.stability is not None:
                yield f"{name}: two halves of the draws agree on {picks.stability:.0%} of the top {len(picks.indices)}"
