"""Records: one JSON line for each round of a Learner, which is all that `balent report` reads.

A round trains on all labels known so far, predicts the test set, and queries the next batch. Its record is on disk
before the batch is returned, so no batch is labelled whose round is not recorded. A process that was killed in between
goes on by the journal: the record that is missing is written first, and a round that is there is not written again.
`balent run` and a user's own loop write their records here.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from balent import adapt, names
from balent.data.pool import Indexed, PoolLike, as_source
from balent.loop import given, journal
from balent.loop.events import Events
from balent.loop.given import Answers
from balent.loop.journal import Record
from balent.loop.labels import Labels
from balent.loop.learner import NUMBERS, Learner
from balent.loop.opening import agree
from balent.loop.seeds import seed_of
from balent.maths.measures import bald
from balent.simulation.evaluation import METRICS, evaluation, evaluation_of_parts, predictions
from balent.simulation.thumbnails import thumbnails
from balent.types import Picks

DRAWS = 100  # posterior samples that predict the test set


class Recorder:
    """Asks a Learner and records each round, so that `balent report` works on a loop of your own.

    learner     whose rounds are recorded. With a directory, records.jsonl lies beside its journal; without one,
                records are in memory only
    test        (points, labels): test data with known labels. Nothing is decided on them
    experiment  a name: runs of one experiment, with the same settings, are compared
    strategy    what reports call the strategy; by default the name that the Learner was given
    settings    what else decides the run, such as {"epochs": 50}; runs of other settings are reported apart
    truth       the labels of the whole pool, where they are known: reports then show which classes were picked
    image       [channels, height, width] of points that are images in [0, 1]: reports then show the picks
    draws       posterior samples that predict the test set
    code        hashes of code of your own, by what it is; by default of the strategy and the predictor
    """

    def __init__(
        self,
        learner: Learner,
        test: tuple[PoolLike, Answers],
        experiment: str,
        *,
        strategy: str | None = None,
        settings: Mapping[str, Any] | None = None,
        truth: Answers | None = None,
        image: tuple[int, ...] | None = None,
        draws: int = DRAWS,
        code: Mapping[str, str] | None = None,
    ) -> None:
        self.learner, self.experiment, self.image, self.draws = learner, experiment, image, draws
        self.strategy = strategy or str(learner.events.happened[0]["strategy"])
        self.settings = {"draws": learner.draws, **(settings or {})}
        self.code = _code(learner) if code is None else dict(code)
        self.x, self.y = _test(learner, *test)
        self.truth = None if truth is None else _truth(learner, truth)
        self.records: list[Record] = [] if self.path is None else self._found(self.path)

    @property
    def path(self) -> Path | None:
        """The file of records."""
        return None if self.learner.directory is None else self.learner.directory / "records.jsonl"

    @property
    def finished(self) -> bool:
        """Is the last record one that queries nothing?"""
        return bool(self.records) and not self.records[-1]["picks"]

    def ask(self, k: int, *, evaluate: bool = True) -> Picks:
        """The next points to label: those that still wait for a label if there are some, else the next k.

        Trains, predicts the test set, queries, and writes the record. Before there are labels of two classes there is
        no model, and nothing is recorded. `evaluate=False` records the round without its accuracy.
        """
        self._check_open()
        rounds = _rounds(self.learner.events)
        _check_end(self.path or "this run", len(self.records), rounds, self.learner)
        if len(rounds) > len(self.records):
            self._record(None, evaluate)  # the process died after the query and before the record
        elif len(self.learner.pending.indices) == 0:
            return self._record(k, evaluate) if _can_train(self.learner.labels) else self.learner.ask(k)
        return self.learner.pending

    def finish(self) -> Record:
        """The last record: trains on all labels, predicts the test set, and queries nothing."""
        self._check_open()
        if len(self.learner.pending.indices):
            raise ValueError(
                f"{len(self.learner.pending.indices)} points of the last batch have no label yet; label or skip them "
                "before finish()"
            )
        self._record(0, evaluate=True)
        return self.records[-1]

    # ── how ─────────────────────────────────────────────────────────────────────────────────────────

    def _record(self, k: int | None, evaluate: bool) -> Picks:
        """One round. Without a k the batch is queried already; with 0 there is none."""
        clock = Clock()
        self.learner.fit()
        clock.lap("train")
        measured = self._evaluated() if evaluate else dict.fromkeys(METRICS)
        clock.lap("evaluate")
        picks = self.learner.ask(k) if k else self.learner.pending
        uncertainty = self._uncertainty(picks)
        clock.lap("score")
        self._write({
            "format": journal.FORMAT,
            "balent": version("balent"),
            "torch": str(torch.__version__),
            "experiment": self.experiment,
            "strategy": self.strategy,
            "resolved": self.learner.resolved,
            "seed": self.learner.seed,
            "round": len(self.records),
            "labels": len(self.learner.told),
            **measured,
            "picks": torch.as_tensor(picks.indices).tolist(),
            "scores": [NUMBERS.get(score, score) for score in torch.as_tensor(picks.scores).tolist()],
            **self._classes(picks),
            **uncertainty,
            "draws": self.learner.draws,
            "seconds": clock.seconds,
            "spec": self.settings,
            **({"code": self.code} if self.code else {}),
            **self._pictures(picks),
        })  # fmt: skip
        return picks

    def _write(self, record: Record) -> None:
        if self.path is not None:
            journal.append(self.path, record)
        self.records.append(record)

    def _evaluated(self) -> dict[str, float]:
        seed = seed_of(self.learner.seed, "evaluation", len(self.learner.told))
        sampled = self.learner.predictor.sample(self.draws, seed=seed)  # shared masks: means need no more
        parts = adapt.traits(sampled).parts
        return (
            evaluation_of_parts(sampled, self.x, self.y) if parts else evaluation(predictions(sampled, self.x), self.y)
        )

    def _uncertainty(self, picks: Picks) -> dict[str, float | None]:
        """Epistemic and aleatoric: means over the picks."""
        if len(picks.indices) == 0:
            return {"epistemic": None, "aleatoric": None}
        at = torch.as_tensor(picks.indices)
        m = self.learner.sampled(self.learner.masks).moments(self.learner.pool[at], at)
        return {"epistemic": float(bald(m).mean()), "aleatoric": float(m.entropy.mean())}

    def _classes(self, picks: Picks) -> dict[str, list[Any]]:
        """The classes of the picks: by name, where they have names. Items with parts have many each."""
        if self.truth is None or self.truth.ndim > 1:
            return {}
        numbers, known = self.truth[picks.indices].tolist(), self.learner.classes
        return {"pick_labels": [known[number] for number in numbers] if known else numbers}

    def _pictures(self, picks: Picks) -> dict[str, list[str]]:
        if self.image is None:
            return {}
        rows = torch.as_tensor(self.learner.pool[torch.as_tensor(picks.indices)])
        return {"thumbnails": thumbnails(rows.reshape(-1, *self.image))}

    def _check_open(self) -> None:
        if self.finished:
            raise ValueError(
                f"the run of {self.strategy}, seed {self.learner.seed}, is finished: its last record queries nothing; "
                "record further rounds in another directory"
            )

    # ── going on ────────────────────────────────────────────────────────────────────────────────────

    def _found(self, path: Path) -> list[Record]:
        """The records of a run that goes on, if they are those of its journal."""
        note = journal.repair(path)
        if note:
            self.learner.say(note)
        found = journal.read(path)
        _check_records(path, found, self.learner)
        if found:
            self._continue(path.parent, found[0])
        return found

    def _continue(self, directory: Path, first: Record) -> None:
        """All records of a run have the settings of the first; fields that a newer version added are left out."""
        settings, code = first.get("spec") or {}, first.get("code") or {}
        before = {key: first.get(key) for key in ("experiment", "strategy", "seed")} | settings
        now = {"experiment": self.experiment, "strategy": self.strategy, "seed": self.learner.seed} | self.settings
        agree(directory, before, {key: now[key] for key in before.keys() & now.keys()})
        if added := sorted(now.keys() - before.keys()):
            self.learner.say(
                f"{directory} was begun without the settings {', '.join(added)}: its records go on without"
            )
        if changed := [name for name in code if self.code.get(name) != code[name]]:
            raise ValueError(
                f"the code of the {changed[0]} has changed since {directory} was begun, so its records would be of two "
                "codes; restore the code to go on, or record in another directory"
            )
        self.settings = settings


class Clock:
    """Seconds from lap to lap: the only thing in a record that differs from run to run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.seconds[name], self._last = round(now - self._last, 4), now


def _code(learner: Learner) -> dict[str, str]:
    """Hashes of a user's own code; none where all of it is balent's."""
    hashes = {"strategy": names.source_hash(learner.strategy), "predictor": names.source_hash(learner.predictor)}
    return {name: found for name, found in hashes.items() if found is not None}


def _test(learner: Learner, x: PoolLike, y: Answers) -> tuple[Indexed, torch.Tensor]:
    points = as_source(x)
    if not isinstance(points, Indexed):
        raise TypeError("test points must have a length, as an array or a Dataset has, but they are a stream")
    labels = _numbers(learner, y)
    if len(labels) != len(points):
        raise ValueError(f"every test point needs one label, but there are {len(points)} points and {len(labels)}")
    return points, labels


def _truth(learner: Learner, truth: Answers) -> torch.Tensor:
    labels = _numbers(learner, truth)
    if len(labels) != len(learner.pool):
        raise ValueError(
            f"truth needs one label for each of the {len(learner.pool)} points of the pool, but has {len(labels)}"
        )
    return labels


def _numbers(learner: Learner, labels: Answers) -> torch.Tensor:
    return torch.tensor(given.read(labels, learner))


def _can_train(labels: Labels) -> bool:
    """Are there labels of two classes?"""
    return len(labels.classes_told()) > 1


def _rounds(events: Events) -> list[list[int]]:
    """The picks of each round, by the journal: a query before there is a model is none."""
    rounds, before = list[list[int]](), Labels()
    for event in events.happened:
        if event["event"] == "ask" and _can_train(before):
            rounds.append([i for i in event["indices"] if i < events.places.points])
        before.add(event)
    return rounds


def _check_records(path: Path, found: list[Record], learner: Learner) -> None:
    """Every round in order, each with the picks that its journal has, and not more than one round behind it."""
    rounds = _rounds(learner.events)
    for number, (record, picks) in enumerate(zip(found, _and_none(rounds, len(found)), strict=True)):
        if record.get("round") != number or record.get("picks") != picks:
            raise ValueError(
                f"{path}, line {number + 1}, should be round {number} with the picks that its journal has, but is "
                f"round {record.get('round')!r}; lines are missing or from another run: restore the file, or remove "
                f"{path.parent} and run again"
            )
    _check_end(path, len(found), rounds, learner)


def _check_end(where: Path | str, count: int, rounds: list[list[int]], learner: Learner) -> None:
    """At most one round has no record: that of a batch of which nothing is labelled yet."""
    missing = rounds[count:]
    if len(missing) > 1 or (missing and not set(missing[0]) <= learner.labels.pending.keys()):
        raise ValueError(
            f"{where} has {count} rounds, but the journal beside it goes on beyond them: records are missing at the "
            "end (every batch is to be asked by the Recorder); restore the file, or remove its directory and run again"
        )


def _and_none(rounds: list[list[int]], count: int) -> Iterable[list[int]]:
    """The picks of this many records: those beyond the rounds query nothing."""
    return [rounds[i] if i < len(rounds) else [] for i in range(count)]
