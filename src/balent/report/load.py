"""Runs from records: every *.jsonl (or *.jsonl.gz) below the given folders, one `Run` for each strategy and seed.

Records of different experiments, or of one experiment under different settings, are kept in separate `Group`s and never
averaged together. Remarks report everything that was left out.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from balent.report.lines import Record, number, records_of

BASELINE = "random"
ENDINGS = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, eq=False)
class Run:
    """One strategy under one seed: its rounds in order."""

    experiment: str
    strategy: str
    seed: int
    records: tuple[Record, ...]
    path: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The specification without strategy and seed: equal for runs that may be averaged."""
        return _settings(self.records[0])

    @property
    def labels(self) -> np.ndarray:
        return np.array([record["labels"] for record in self.records], dtype=float)

    def series(self, name: str) -> np.ndarray:
        """One value per round; NaN where it was not recorded."""
        return np.array([number(record.get(name)) for record in self.records])

    @cached_property
    def accuracies(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and accuracy of the rounds that were evaluated."""
        values = self.series("accuracy")
        known = np.isfinite(values)
        return self.labels[known], values[known]


class Runs(list[Run]):
    """A list of runs, with remarks on how they were read."""

    def __init__(self, runs: Sequence[Run] = (), remarks: Sequence[str] = ()) -> None:
        super().__init__(runs)
        self.remarks = tuple(remarks)


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that may be averaged over seeds and compared: one experiment, one set of settings."""

    title: str
    settings: dict[str, Any]
    strategies: dict[str, tuple[Run, ...]]
    remarks: tuple[str, ...]

    @property
    def experiment(self) -> str:
        return next(iter(self.strategies.values()))[0].experiment


def load(*folders: str | Path) -> Runs:
    """Every run below the given folders, or in the given files."""
    found: dict[tuple[object, ...], Run] = {}
    remarks: list[str] = []
    for path in _files(folders):
        for run in _runs(path, remarks):
            key = (run.experiment, _canonical(run.settings), run.strategy, run.seed)
            if key in found:
                raise ValueError(
                    f"{run.experiment}, {run.strategy}, seed {run.seed} was recorded twice: in {found[key].path} "
                    f"and in {path}; leave one of them out"
                )
            found[key] = run
    if not found:
        raise ValueError(
            f"no records in {', '.join(map(str, folders)) or 'an empty list of folders'}: expected *.jsonl files "
            "as balent run writes them" + "".join(f"; {remark}" for remark in remarks)
        )
    return Runs(list(found.values()), remarks)


def _files(folders: Sequence[str | Path]) -> list[Path]:
    files: dict[Path, Path] = {}
    for folder in map(Path, folders):
        if not folder.exists():
            raise FileNotFoundError(f"{folder} does not exist; give the folder that balent run wrote to")
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*.jsonl*")):
            if path.is_file() and path.name.endswith(ENDINGS):
                files.setdefault(path.resolve(), path)
    return list(files.values())


def _runs(path: Path, remarks: list[str]) -> Iterator[Run]:
    """The runs of one file: usually one, but nothing forbids more."""
    rounds: dict[tuple[str, str, int, str], list[Record]] = {}
    for where, record in records_of(path, remarks):
        key = (record["experiment"], record["strategy"], record["seed"], _canonical(_settings(record)))
        before = rounds.setdefault(key, [])
        if before and not (record["round"] > before[-1]["round"] and record["labels"] >= before[-1]["labels"]):
            raise ValueError(
                f"{where}: rounds must grow and labels must not shrink, but round {record['round']} with "
                f"{record['labels']} labels follows round {before[-1]['round']} with {before[-1]['labels']}"
            )
        before.append(record)
    for (experiment, strategy, seed, _), records in rounds.items():
        if any(record["accuracy"] is not None for record in records):
            yield Run(experiment, strategy, seed, tuple(records), path)
        else:
            remarks.append(f"{path}: {experiment}, {strategy}, seed {seed}, was never evaluated and is left out")


def groups(runs: Sequence[Run]) -> list[Group]:
    """Runs sorted by experiment and settings; within, by strategy (random last) and seed."""
    members: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        members.setdefault((run.experiment, _canonical(run.settings)), []).append(run)
    names = Counter(experiment for experiment, _ in members)
    several = {name: [group[0].settings for (n, _), group in members.items() if n == name] for name in names}
    return [
        _group(_title(name, group[0].settings, several[name]), group) for (name, _), group in sorted(members.items())
    ]


def _group(title: str, runs: Sequence[Run]) -> Group:
    end = max(run.labels[-1] for run in runs)
    strategies, remarks = {}, []
    for name in sorted({run.strategy for run in runs}, key=lambda name: (name == BASELINE, name)):
        mine = sorted((run for run in runs if run.strategy == name), key=lambda run: run.seed)
        longest = max(run.labels[-1] for run in mine)
        strategies[name] = tuple(run for run in mine if run.labels[-1] == longest)
        for run in mine:
            if run.labels[-1] < end:
                left_out = " and is left out" if run.labels[-1] < longest else ""
                remarks.append(f"{name}, seed {run.seed}, ends at {run.labels[-1]:.0f} of {end:.0f} labels{left_out}")
        remarks.extend(_of_several_codes(name, mine))
    for key in ("balent", "torch"):
        versions = sorted({str(run.records[0][key]) for run in runs if key in run.records[0]})
        if len(versions) > 1:
            remarks.append(f"the runs were recorded by different versions of {key}: {', '.join(versions)}")
    return Group(title, runs[0].settings, strategies, tuple(remarks))


def _of_several_codes(name: str, runs: Sequence[Run]) -> Iterator[str]:
    """A name of a user's own code says nothing of what stood in the file."""
    if len({_canonical(run.records[0].get("code") or {}) for run in runs}) > 1:
        yield f"the runs of {name} were recorded with different code of your own: their mean is not of one method"


def _title(name: str, settings: dict[str, Any], several: list[dict[str, Any]]) -> str:
    """The experiment's name; where it was run under several settings, with those that differ."""
    keys = sorted({key for one in several for key in one if any(other.get(key) != one[key] for other in several)})
    differ = ", ".join(f"{key} {json.dumps(settings.get(key))}" for key in keys)
    return f"{name} ({differ})" if differ else name


def _settings(record: Record) -> dict[str, Any]:
    spec = record.get("spec") or {}
    return {key: value for key, value in spec.items() if key not in ("strategy", "seed")}


def _canonical(settings: dict[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)
