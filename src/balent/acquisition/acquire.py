"""Picks points of a pool by posterior samples. The pool is streamed, so memory does not grow with its size."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from balent import adapt, checks, names
from balent.acquisition.beside import ScoresBy
from balent.acquisition.engines import opened
from balent.acquisition.engines.local import MEMORY, Local
from balent.acquisition.engines.ray import RayEngine
from balent.acquisition.passed import Passed
from balent.acquisition.progress import counting
from balent.acquisition.score_file import written
from balent.acquisition.score_folder import ScoreFolder, is_folder
from balent.acquisition.view import View
from balent.data.damage import Damaged
from balent.data.pool import PoolLike, as_source
from balent.data.shards import Shards
from balent.maths.error import GROUPS, jackknife
from balent.maths.measures import name_of
from balent.maths.named import measure as named_measure
from balent.strategies import Race, TopK
from balent.strategies import strategy as named
from balent.strategies.auto import AUTO, resolved, why_not
from balent.types import (
    Batch,
    Engine,
    HasDevice,
    HasFeatures,
    HasParts,
    Indices,
    Measure,
    Picks,
    Rereadable,
    Sampled,
    Source,
    Strategy,
)


def acquire(
    sampled: Sampled | None,
    pool: PoolLike,
    k: int,
    strategy: str | Strategy = "auto",
    *,
    seed: int = 0,
    draws: str | None = None,
    with_error: bool = False,
    measures: Sequence[str] = (),
    scores: str | os.PathLike[str] | None = None,
    memory: int = MEMORY,
    device: str | None = None,
    labelled: PoolLike | None = None,
    engine: str | Engine = "local",
    progress: bool | Callable[[int, int | None], None] = False,
) -> Picks:
    """The k points of the pool to label next, best first.

    sampled     posterior samples: what `sample` of a predictor returns, or `balent.Draws`; None before there is a model
    pool        an array, a Dataset, a DataLoader, a dict of arrays, `balent.Shards`, or a stream of batches
    k           how many points
    strategy    a name (see `balent list`), "file.py:name" or "module:name", or a strategy itself. "auto" is herding, or
                balentacq where scores of all points are asked for or points cannot be compared: see `picks.plan`
    seed        of the strategy's noise
    draws       "auto": more draws where the top k is undecided; the picks report how many it took
    with_error  add the standard error of each pick's score, and the stability of the top k
    measures    other measures to score in the same pass, for the file `scores`
    scores      a file (.npy or .parquet) for the scores of all points; it appears when it is complete. For shards a
                folder with a file per shard: a run that was stopped goes on
    memory      bytes for one block of points
    device      where to evaluate the draws, e.g. "cuda"; None leaves them where they are
    labelled    the labelled points, for strategies that avoid points near them (auto, core_set, diverse) or look
                for them (seals)
    engine      "local"; "ray": workers on the CPUs of this machine; a `balent.RayEngine`, or an engine of your own
    progress    True for a progress bar, or a function of the points done and the number of points
    """
    sampled = adapt.Untrained() if sampled is None else sampled if device is None else _moved(sampled, device)
    source, asked = as_source(pool), _scores_for(draws, with_error, scores)
    while True:  # once more, if rows of shards are left out that turned out to be damaged
        with _leaving_out(source):
            compared = strategy != AUTO or _compared(sampled, source)
            why, settled = why_not(strategy, sampled, asked, compared), resolved(strategy, sampled, asked, compared)
            chosen = _strategy(settled, draws, with_error)
            size = source.size
            checks.batch_size(k, size)
            generator, name = checks.generator(seed), settled if isinstance(settled, str) else names.identity(chosen)
            wanted = _wanted(chosen, measures) if measures or scores is not None else {}
            _check_needs(chosen, name, sampled, source)
            if with_error or measures or scores is not None:
                _check_wishes(chosen, name, sampled, source, with_error, scores, measures)
            shown = counting(progress, size) if progress else nullcontext()
            tables = _tables(scores, wanted, source, generator.initial_seed())
            with shown as advance, tables as (beside, folder), opened(engine, memory, advance) as running:
                if isinstance(running, Local | RayEngine):
                    running.try_out(sampled, source)
                view = View(running, source, None if labelled is None else View(running, _known(labelled)), beside)
                if folder is not None and beside is not None and isinstance(chosen, TopK) and not chosen.stable:
                    picks = folder.picks(sampled, running, beside, k)
                else:
                    picks = chosen(sampled, view, k, generator=generator)
                picks = replace(picks, plan=f"auto: {settled}, since {why}") if why else picks
                return _with_error(sampled, view, picks, chosen) if with_error else picks


@contextmanager
def _leaving_out(source: Source) -> Iterator[None]:
    """Ends quietly, to be tried again, where shards go on without the rows that could not be read."""
    try:
        yield
    except Damaged as error:
        if not (isinstance(source, Shards) and source.leave_out(error)):
            raise


def _moved(sampled: Sampled, device: str) -> Sampled:
    if not isinstance(sampled, HasDevice):
        raise ValueError(f"{type(sampled).__name__} cannot be moved to another device; leave device out")
    return sampled.to(device)


def _known(labelled: PoolLike) -> Rereadable:
    source = as_source(labelled)
    if not adapt.rereadable(source):
        raise TypeError(
            "labelled must have a length, as an array or a Dataset has, but it is a stream; pass an array or a Dataset"
        )
    return source


def _compared(sampled: Sampled, source: Source) -> bool:
    """Can points be compared?  Taken for granted of streams, and where there is no model that could score instead."""
    if not adapt.rereadable(source) or not adapt.trained(sampled) or not source.size:
        return True
    return adapt.only_positions(sampled) or adapt.comparable(sampled, source.at(adapt.first(source, 1)))


def _scores_for(draws: str | None, with_error: bool, scores: object) -> str:
    """What asks for a score of each point, in words."""
    wishes = {"with_error=True": with_error, "a file of scores": scores is not None, 'draws="auto"': draws == "auto"}
    return next((name for name, wanted in wishes.items() if wanted), "")


def _strategy(strategy: str | Strategy, draws: str | None, with_error: bool) -> Strategy:
    chosen = named(strategy) if isinstance(strategy, str) else strategy
    if draws not in (None, "auto"):
        raise ValueError(
            f'draws must be "auto" or left out, but is {draws!r}; set their number in predictor.sample(n, …)'
        )
    if draws == "auto" and not isinstance(chosen, TopK):
        raise ValueError(f'draws="auto" needs the top k of a measure as strategy (e.g. "bald"), but it is {strategy}')
    if isinstance(chosen, TopK):
        return Race(chosen.measure) if draws == "auto" else replace(chosen, stable=chosen.stable or with_error)
    return chosen


def _check_needs(chosen: Strategy, name: str, sampled: Sampled, source: Source) -> None:
    """Refuses, before any work, a pool or a Sampled that lacks what the strategy declares to need."""
    needs, traits = adapt.needs(chosen), adapt.traits(sampled)
    if needs.model and not adapt.trained(sampled):
        raise ValueError(f"{name} asks a model, but there is none yet; use auto, which begins without one")
    if needs.again and not adapt.rereadable(source):
        raise ValueError(
            f"{name} reads points again, but a stream is read only once; "
            "pass an array, a Dataset or a DataLoader of one"
        )
    if needs.shared and not traits.shared:
        raise ValueError(
            f"{name} needs draws that are the same functions at every point, but masks are drawn per point; "
            'use sample(..., masks="shared")'
        )
    if needs.features and not isinstance(sampled, HasFeatures):
        raise ValueError(f"{name} compares features, but {type(sampled).__name__} has no method features(batch)")
    if needs.parts and not isinstance(sampled, HasParts):
        raise ValueError(f"{name} takes draws in parts, but {type(sampled).__name__} has no method part(start, stop)")


def _check_wishes(
    chosen: Strategy,
    name: str,
    sampled: Sampled,
    source: Source,
    with_error: bool,
    scores: str | os.PathLike[str] | None,
    measures: Sequence[str],
) -> None:
    """Refuses options that this strategy or this pool does not support."""
    measured = adapt.measure_of(chosen) is not None
    if with_error and not (measured and adapt.rereadable(source)):
        raise ValueError(
            "with_error=True needs a strategy based on a measure (e.g. 'bald') and a pool that can be read twice "
            "(not a stream)"
        )
    if with_error and not adapt.traits(sampled).independent:
        raise ValueError(
            "with_error=True (--error) needs independent draws, but stratified and matched draws are dependent, so "
            'their errors would be too large; use design="independent", or leave with_error out'
        )
    if measures and scores is None:
        raise ValueError('measures=… needs a file for the scores; name it, as in scores="scores.npy" (or .parquet)')
    if scores is not None and not measured:
        raise ValueError(
            f"{name} does not score points, so scores=… has nothing to write; use a strategy based on a measure"
        )
    if scores is not None and isinstance(chosen, Race):
        raise ValueError(
            'draws="auto" uses few draws for most points, so scores are imprecise; leave draws out to write them'
        )


def _wanted(chosen: Strategy, measures: Sequence[str]) -> dict[str, Measure]:
    """The measure of the strategy and the additional measures, by name."""
    own = adapt.measure_of(chosen)
    first = {} if own is None else {name_of(own): own}
    return {**first, **{name: named_measure(name) for name in measures}}


@contextmanager
def _tables(
    path: str | os.PathLike[str] | None, wanted: Mapping[str, Measure], source: Source, seed: int
) -> Iterator[tuple[Passed | None, ScoreFolder | None]]:
    """A fold that writes the scores of all points, if that was asked for; for shards also the folder that it fills."""
    if path is None:
        yield None, None
    elif isinstance(source, Shards) and is_folder(path, source):
        with ScoreFolder(Path(path), source, list(wanted), seed) as folder:
            yield Passed(ScoresBy(wanted, seed), folder.write), folder
    else:
        total = source.shards[0].rows if isinstance(source, Shards) else source.size
        with written(path, list(wanted), total) as write:
            yield Passed(ScoresBy(wanted, seed), write), None


def _with_error(sampled: Sampled, view: View, picks: Picks, chosen: Strategy) -> Picks:
    """Adds the standard error of each pick; its draws are computed again."""
    measure = adapt.measure_of(chosen)
    assert measure is not None  # checked before
    at = torch.as_tensor(picks.indices)

    def error(sampled: Sampled, batch: Batch, positions: Indices) -> torch.Tensor:
        return jackknife(adapt.groups(sampled, batch, positions, GROUPS), measure)

    return replace(picks, errors=view.read(sampled, at, error))
