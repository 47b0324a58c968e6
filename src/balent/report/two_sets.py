"""Two sets of runs of the same strategies and seeds, such as those before and after a change of code or of a setting.

    d_s  = area of a strategy in the second set − its area in the first      for seed s

One test per strategy that is in both, by Student's t, corrected by Holm's method over all of the comparison. The area
of a strategy is taken between the label counts at which both of its curves were evaluated.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from rich.console import Group as Together
from rich.console import RenderableType

from balent.report import sentence, tables
from balent.report.compare import Comparison, corrected, curve_of, differences, paired, span
from balent.report.findings import mean_std
from balent.report.latex import Table, write_latex
from balent.report.load import Group, Run, Runs, groups

Key = tuple[str, str, int]


@dataclass(frozen=True)
class Change:
    """One experiment in both sets, and what became of each strategy."""

    before: Group
    after: Group
    comparisons: dict[str, Comparison]  # by strategy


@dataclass(frozen=True, eq=False)
class TwoSets:
    """What differs between two sets of runs. Their names are the paths that were given."""

    first: str
    second: str
    changes: tuple[Change, ...]
    remarks: list[str]

    @cached_property
    def sentences(self) -> list[str]:
        """One per strategy, those with a difference first."""
        found = [(change, c) for change in self.changes for c in change.comparisons.values()]
        found.sort(key=lambda pair: pair[1].verdict not in ("more", "less"))
        which = f"{self.second} minus {self.first}: a positive number says that {self.second} is better"
        return [which, *(f"{self._of(change)}{self._said(c)}" for change, c in found)]

    def _of(self, change: Change) -> str:
        return f"{change.after.title}: " if len(self.changes) > 1 else ""

    def _said(self, c: Comparison) -> str:
        if c.verdict in ("more", "less"):
            return f"{c.strategy} is {c.verdict} accurate in {self.second} than in {self.first}: {sentence.primary(c)}"
        if c.verdict == "undecided":
            return f"No difference shown for {c.strategy}: {sentence.primary(c)}"
        if c.verdict == "single":
            return f"One seed cannot show a difference for {c.strategy}: {sentence.mean_gain(c)}, without an interval"
        return f"{c.strategy} cannot be compared: its curves have no two label counts in common"

    def table(self) -> RenderableType:
        """For the terminal."""
        return Together(*(self._shown(*table) for table in self.tables()))

    def _shown(self, title: str, caption: str, headings: Sequence[str], rows: list[list[str]]) -> RenderableType:
        shown = tables.plain(title, headings, rows)
        shown.caption, shown.caption_justify = caption, "left"
        return shown

    def tables(self) -> Iterator[tuple[str, str, list[str], list[list[str]]]]:
        """Title, caption, headings and rows of each experiment."""
        for change in self.changes:
            tests = max((c.tests for c in change.comparisons.values()), default=0)
            many = f" corrected for {tests} comparisons (Holm)" if tests > 1 else ""
            caption = (
                "area: mean accuracy in % over the label counts of both sets. difference: paired by seed, in points, "
                f"95 % CI{many}."
            )
            headings = ["strategy", f"area in {self.first}", f"area in {self.second}", "difference", "p"]
            yield f"{change.after.title}: {self.second} against {self.first}", caption, headings, _rows(change)

    def latex(self, path: str | Path) -> None:
        """The same tables, for a paper."""
        every: list[Table] = [*self.tables()]
        write_latex(every, path)

    def csv(self, path: str | Path) -> None:
        """One row per strategy, with every number of the comparison."""
        rows = (
            [change.after.title, c.strategy, c.seeds, "area_change", None, c.gain, None, c.low, c.high, c.p]
            for change in self.changes
            for c in change.comparisons.values()
            if c.areas
        )
        tables.write_rows(rows, Path(path))


def two_sets(first: str, one: Runs, second: str, other: Runs) -> TwoSets:
    """The second set against the first."""
    pairs, remarks = _pairs(first, groups(one), second, groups(other))
    found = [[_versus(a, b, name) for name in a.strategies if name in b.strategies] for a, b in pairs]
    rest = iter(corrected([c for of in found for c in of]))
    changes = [Change(a, b, {c.strategy: next(rest) for c in of}) for (a, b), of in zip(pairs, found, strict=True)]
    said = [*one.remarks, *other.remarks, *(word for a, b in pairs for word in _differences(first, a, second, b))]
    return TwoSets(first, second, tuple(changes), [*said, *remarks])


def in_common(one: Sequence[Run], other: Sequence[Run]) -> bool:
    """Do two sets hold the same strategies and seeds of an experiment, in other files?"""
    files = {run.path.resolve() for run in one} & {run.path.resolve() for run in other}
    return bool({_key(run) for run in one} & {_key(run) for run in other}) and not files


def _key(run: Run) -> Key:
    return run.experiment, run.strategy, run.seed


def _pairs(
    first: str, one: list[Group], second: str, other: list[Group]
) -> tuple[list[tuple[Group, Group]], list[str]]:
    """Groups of one experiment: the only ones of it, or those of equal settings."""
    pairs, remarks = [], []
    for group in one:
        same = [g for g in other if g.experiment == group.experiment]
        alone = len(same) == 1 and sum(g.experiment == group.experiment for g in one) == 1
        equal = same if alone else [g for g in same if g.settings == group.settings]
        pairs += [(group, g) for g in equal]
        remarks += [] if equal else [f"{group.title} is in {first} only, so it is left out"]
    matched = [b for _, b in pairs]
    remarks += [f"{group.title} is in {second} only, so it is left out" for group in other if group not in matched]
    return pairs, remarks


def _versus(before: Group, after: Group, name: str) -> Comparison:
    """One strategy, not tested yet: the correction needs all of them."""
    pairs = paired(after.strategies[name], before.strategies[name])
    found = Comparison(name, len(pairs))
    if not pairs:
        return found
    start, stop = span([run for pair in pairs for run in pair])
    if start >= stop:
        return found
    areas, ends = differences(pairs, start, stop)
    return replace(found, span=(start, stop), areas=tuple(areas.tolist()), ends=tuple(ends.tolist()))


def _rows(change: Change) -> list[list[str]]:
    return [[name, *_areas(change, c), tables.gain(c), _p(c.p)] for name, c in change.comparisons.items()]


def _areas(change: Change, c: Comparison) -> Iterator[str]:
    """Mean and spread over the seeds that both sets have, in the first and in the second."""
    pairs = paired(change.before.strategies[c.strategy], change.after.strategies[c.strategy])
    for side in (0, 1):
        areas = [curve_of(pair[side]).area(*c.span)[0] for pair in pairs] if c.areas else []
        yield tables.plus_minus(*mean_std(np.array(areas))) if areas else "–"


def _p(p: float) -> str:
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _differences(first: str, a: Group, second: str, b: Group) -> Iterator[str]:
    """What else differs between the two: settings, versions, code, strategies, seeds."""
    for key in sorted(a.settings.keys() | b.settings.keys()):
        one, other = a.settings.get(key), b.settings.get(key)
        if one != other:
            yield f"{b.title}: {key} is {json.dumps(one)} in {first} and {json.dumps(other)} in {second}"
    for name in sorted(a.strategies.keys() ^ b.strategies.keys()):
        yield f"{b.title}: {name} is in {first if name in a.strategies else second} only, so it is not compared"
    for name in a.strategies.keys() & b.strategies.keys():
        yield from _of_runs(name, first, a.strategies[name], second, b.strategies[name])


def _of_runs(name: str, first: str, one: Sequence[Run], second: str, other: Sequence[Run]) -> Iterator[str]:
    seeds = {run.seed for run in one} ^ {run.seed for run in other}
    if seeds:
        yield f"{name}: seeds {', '.join(map(str, sorted(seeds)))} are in one of the sets only, so they are left out"
    for key in ("balent", "torch", "code"):
        was, now = (json.dumps(runs[0].records[0].get(key), sort_keys=True) for runs in (one, other))
        if was != now:
            yield f"{name}: {key} is {was} in {first} and {now} in {second}"
