"""Records read back: every *.jsonl (or *.jsonl.gz) below the folders given, one `Run` for each strategy and seed.

Records of different experiments, or of one experiment under different settings, are kept in `Group`s
and never averaged together. What was left out is said in remarks, not hidden. A line that cannot be
read is an error, unless it is the last of its file: there a killed process leaves half a line.
"""

import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1
BASELINE = "random"
ENDINGS = (".jsonl", ".jsonl.gz")
REQUIRED = {"experiment": str, "strategy": str, "seed": int, "round": int, "labels": int, "accuracy": float}
METRICS = {"accuracy": "accuracy", "nll": "negative log-likelihood", "brier": "Brier score", "ece": "calibration error"}
OF_PICKS = {"epistemic": "epistemic uncertainty of picks", "aleatoric": "aleatoric uncertainty of picks"}
Record = dict[str, Any]


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
        """What was specified, but for strategy and seed: equal for runs that may be averaged."""
        return _settings(self.records[0])

    @property
    def labels(self) -> np.ndarray:
        return np.array([record["labels"] for record in self.records], dtype=float)

    def series(self, name: str) -> np.ndarray:
        """A value a round; NaN where it was not recorded."""
        return np.array([number(record.get(name)) for record in self.records])

    @property
    def accuracies(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and accuracy of the rounds that were evaluated."""
        values = self.series("accuracy")
        known = np.isfinite(values)
        return self.labels[known], values[known]


class Runs(list[Run]):
    """A list of runs, and what a reader should know of how they were read."""

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


def number(value: object) -> float:
    """A float; NaN for what is absent. JSON has no infinity, so records spell it "inf"."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return float(value) if value in ("inf", "-inf") else math.nan


def load(*folders: str | Path) -> Runs:
    """Every run below the folders (or in the files) given."""
    found: dict[tuple, Run] = {}
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
            f"no records in {', '.join(map(str, folders)) or 'no folder at all'}: expected *.jsonl files "
            "as balent run writes them" + "".join(f"; {remark}" for remark in remarks)
        )
    return Runs(list(found.values()), remarks)


def _files(folders: Sequence[str | Path]) -> list[Path]:
    files: dict[Path, Path] = {}
    for folder in map(Path, folders):
        if not folder.exists():
            raise FileNotFoundError(f"{folder} does not exist; name the folder that balent run wrote to")
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*.jsonl*")):
            if path.is_file() and path.name.endswith(ENDINGS):
                files.setdefault(path.resolve(), path)
    return list(files.values())


def _runs(path: Path, remarks: list[str]) -> Iterator[Run]:
    """The runs of one file: usually one, but nothing forbids more."""
    rounds: dict[tuple, list[Record]] = {}
    for line, record in _lines(path, remarks):
        key = (record["experiment"], record["strategy"], record["seed"], _canonical(_settings(record)))
        before = rounds.setdefault(key, [])
        if before and not (record["round"] > before[-1]["round"] and record["labels"] >= before[-1]["labels"]):
            raise ValueError(
                f"{path}, line {line}: rounds must grow and labels must not shrink, but round {record['round']} with "
                f"{record['labels']} labels follows round {before[-1]['round']} with {before[-1]['labels']}"
            )
        before.append(record)
    for (experiment, strategy, seed, _), records in rounds.items():
        yield Run(experiment, strategy, seed, tuple(records), path)


def _lines(path: Path, remarks: list[str]) -> Iterator[tuple[int, Record]]:
    lines = [(n, text) for n, text in enumerate(_content(path).split(b"\n"), 1) if text.strip()]
    for n, text in lines:
        try:
            record = json.loads(text.decode("utf-8"))
        except ValueError:
            if n == lines[-1][0]:
                remarks.append(f"{path}, line {n}: half a line at the end was ignored (balent run --resume repairs it)")
                return
            raise ValueError(f"{path}, line {n}: not JSON; the file is damaged, restore it or leave it out") from None
        if isinstance(record, dict) and not {"experiment", "strategy", "round"} & record.keys() and n == lines[0][0]:
            remarks.append(f"{path} holds no records and was left out")
            return
        yield n, _checked(record, f"{path}, line {n}")


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}); restore it or leave it out") from None


def _checked(record: Any, where: str) -> Record:
    """The record, if a report can be made of it. Absent optional fields are no reason to refuse."""
    if not isinstance(record, dict):
        raise ValueError(f"{where}: a record is a JSON object, but this is {type(record).__name__}")
    if (format := record.get("format", FORMAT)) != FORMAT:
        by = f" of balent {record['balent']}" if "balent" in record else ""
        raise ValueError(
            f"{where}: records{by} in format {format!r}, but this balent reads format {FORMAT}; "
            "report them with the version that wrote them"
        )
    for key, kind in REQUIRED.items():
        if key not in record:
            raise ValueError(f"{where}: the record has no {key!r}")
        value = record[key]
        if key == "accuracy" and value is None:
            continue  # a round that was not evaluated
        if isinstance(value, bool) or not isinstance(value, int | float if kind is float else kind):
            raise ValueError(f"{where}: {key!r} must be {_KINDS[kind]}, but is {value!r}")
    if record["accuracy"] is not None and not 0 <= record["accuracy"] <= 1:  # NaN too
        raise ValueError(f"{where}: 'accuracy' must be between 0 and 1, but is {record['accuracy']!r}")
    if record["labels"] < 0:
        raise ValueError(f"{where}: 'labels' must not be negative, but is {record['labels']}")
    for key, kind in _OPTIONAL.items():
        if record.get(key) is not None and not isinstance(record[key], kind):
            raise ValueError(f"{where}: {key!r} must be {_KINDS[kind]}, but is {record[key]!r:.60}")
    return record


_KINDS: dict[type, str] = {str: "a string", int: "a whole number", float: "a number", list: "a list", dict: "an object"}
_OPTIONAL = {"spec": dict, "seconds": dict, "picks": list, "scores": list, "pick_labels": list, "thumbnails": list}


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
    for key in ("balent", "torch"):
        versions = sorted({str(run.records[0][key]) for run in runs if key in run.records[0]})
        if len(versions) > 1:
            remarks.append(f"recorded by different versions of {key}: {', '.join(versions)}")
    return Group(title, runs[0].settings, strategies, tuple(remarks))


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
