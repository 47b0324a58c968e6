"""Experiments: a Learner whose labels are known beforehand, and one record of each round.

A round trains on all labels so far, is evaluated on the test set, and then queries a batch. Nothing is
decided on test data, and the last batch is trained on too. Strategies of one seed share start set and first
weights, so their difference is the strategy's. A record is a function of the specification, but
for its `seconds`.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from balent import by_name, names
from balent.data.sources import Data, all_labelled, load, own_function
from balent.lookup import lookup
from balent.loop import journal
from balent.loop.events import Say
from balent.loop.journal import Record
from balent.loop.learner import Learner
from balent.loop.opening import agree
from balent.loop.start import balanced
from balent.predictors.augment import augmentation
from balent.simulation.models import predictor, predictor_named
from balent.simulation.recorder import Recorder
from balent.strategies import strategy as named

STARTS = ("balanced", "random", "auto")
DRAWS = ("auto", "analytic")
LONGEST = 120  # characters of a folder's name that a strategy gives; file systems allow 255


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run. Numbers and names only: it stands in every record."""

    name: str
    data: str  # what `load` takes: a name, a file, or file.py:function
    network: str  # file.py:function or module:function, called with the Data: most often makes a torch module
    predictor: str = "mc_dropout"  # of PREDICTORS, or file.py:name
    strategy: str = "balentacq"
    seed: int = 0
    epochs: int = 150
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    warm_start: bool = False
    augment: str = ""  # of AUGMENTATIONS
    backbone: str = ""  # for networks that have one: a name, or a file of weights
    draws: int | str = 100  # functions that score the pool; "analytic" for none, "auto" for more where undecided
    masks: str = "auto"  # per point where predictor and strategy allow it
    evaluation_draws: int = 100  # functions that predict the test set
    start: int = 20  # labels to begin with
    start_set: str = "balanced"  # at random, as many of each class; "random"; "auto": as the strategy begins by itself
    per_round: int = 10  # K of the paper
    total: int = 200  # K^tot: labels at the end
    evaluate_every: int = 1  # rounds; the first and the last are always evaluated
    profile: str = "paper"  # or what it was shrunk for

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "evaluation_draws", "start", "per_round", "total", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, but is {getattr(self, name)}")
        if self.draws not in DRAWS and not (isinstance(self.draws, int) and self.draws > 0):
            raise ValueError(f"draws must be a positive number, {' or '.join(DRAWS)}, but is {self.draws!r}")
        if self.total < self.start:
            raise ValueError(f"total = {self.total} labels is less than the {self.start} to start with")
        named(self.strategy)
        predictor_named(self.predictor)
        lookup(dict.fromkeys(STARTS), self.start_set, "start set")
        augmentation(self.augment)

    @property
    def rounds(self) -> int:
        """How many records a run has when the pool is large enough."""
        return 1 + -(-(self.total - self.start) // self.per_round)

    def directory(self, runs: Path) -> Path:
        """Where its records go below a directory of runs."""
        return runs / self.name / _folder_name(self.strategy) / f"seed-{self.seed}"


# Settings of a run of 0.1 whose file does not have them: a new field has a default that changes nothing.
DEFAULTS = {field.name: field.default for field in fields(Experiment) if field.default is not MISSING}


def _folder_name(strategy: str) -> str:
    """A strategy as the name of a folder; a long path keeps its end, and a hash of all of it."""
    quoted = re.sub(r"^\.", "%2E", quote(strategy, safe="=,()-"))  # a folder that begins with a dot would be hidden
    if len(quoted) <= LONGEST:
        return quoted
    return f"{hashlib.sha256(strategy.encode()).hexdigest()[:8]}-{quoted[-LONGEST:].lstrip('%')}"


def run(
    spec: Experiment,
    directory: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    folder: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    say: Say = warnings.warn,
) -> Iterator[Record]:
    """One record a round, those of a run that is resumed first. Without a directory nothing is written.

    `folder` is where data sets lie that are read from files; it is no part of the specification. `skip_bad` leaves out
    images that cannot be read.
    """
    data = all_labelled(load(spec.data, folder, skip_bad=skip_bad, say=say))
    place = None if directory is None else Path(directory)
    if place is not None:
        claim(place, spec, resume)
    pinned = code(spec)
    with learner(spec, data, place, say) as driven:
        yield from rounds(spec, data, driven, pinned)


def rounds(spec: Experiment, data: Data, driven: Learner, pinned: dict[str, str]) -> Iterator[Record]:
    """The records that are there, then those of the rounds that are left. Batch r is what round r trains on first."""
    recorder = recorded(spec, data, driven, pinned)
    yield from recorder.records
    while not recorder.finished:
        done, count = len(recorder.records), len(driven.told)
        if not len(driven.pending.indices) and count >= min(spec.total, len(data.y_train)):
            yield recorder.finish()
            return
        k = spec.start if driven.labels.asks == 0 else min(spec.per_round, spec.total - count)
        waiting = recorder.ask(k, evaluate=done % spec.evaluate_every == 0).indices
        yield from recorder.records[done:]
        driven.tell(waiting, data.y_train[waiting], who="oracle")


def recorded(spec: Experiment, data: Data, driven: Learner, pinned: dict[str, str]) -> Recorder:
    """What writes the records of an experiment; `pinned`: the hashes of a user's own code as the run began."""
    return Recorder(
        driven,
        (data.x_test, data.y_test),
        spec.name,
        strategy=spec.strategy,
        settings=asdict(spec),
        truth=data.y_train,
        image=data.image,
        draws=spec.evaluation_draws,
        code=pinned,
    )


def learner(spec: Experiment, data: Data, directory: Path | None = None, say: Say = warnings.warn) -> Learner:
    """The Learner that an experiment drives."""
    k = min(spec.start, len(data.y_train))
    given = spec.start_set == "balanced"
    return Learner(
        predictor(spec, data),
        data.x_train,
        spec.strategy,
        seed=spec.seed,
        directory=directory,
        draws=spec.draws,
        masks=spec.masks,
        start=balanced(data.y_train.tolist(), k, spec.seed) if given else spec.start_set,
        say=say,
    )


def continued(directory: Path, spec: Experiment, given: Collection[str]) -> Experiment:
    """The specification to go on with: settings of the run that is there win over defaults, not over given ones."""
    path = directory / "spec.json"
    if not path.exists():
        return spec
    before = DEFAULTS | _specification(path)
    mine = {name: before[name] for name in asdict(spec).keys() & before.keys() - set(given)}
    same_kind = {name: value for name, value in mine.items() if type(value) is type(getattr(spec, name))}
    return replace(spec, **same_kind)


def allowed(directory: Path, spec: Experiment, resume: bool) -> bool:
    """May this run write here?  True where one is to go on; nothing is touched."""
    now = code(spec)
    path = directory / "spec.json"
    if not path.exists():
        return False
    if not resume:
        raise FileExistsError(
            f"{directory} holds a run already; go on with it by --resume (a finished one is left as it is), "
            "or write elsewhere by --out"
        )
    before = DEFAULTS | _specification(path)
    pinned = before.pop("code", {})
    agree(directory, before, asdict(spec))
    _check_code(directory, spec, pinned, now)
    return True


def code(spec: Experiment) -> dict[str, str]:
    """Hashes of a user's own functions and classes in a run, by setting; none where all of it is balent's."""
    things = {
        "strategy": named(spec.strategy),
        "predictor": predictor_named(spec.predictor),
        "network": by_name.function(spec.network),
        "data": own_function(spec.data),
    }
    hashes = {name: names.source_hash(thing) for name, thing in things.items() if thing is not None}
    return {name: found for name, found in hashes.items() if found is not None}


def _check_code(directory: Path, spec: Experiment, pinned: dict[str, str], now: dict[str, str]) -> None:
    """The records of one run are of one code. A run that began before code was pinned goes on with what is there."""
    for name, before in pinned.items():
        if now.get(name) != before:
            raise ValueError(
                f"the code of {getattr(spec, name)} has changed since {directory} was begun, so its records would be "
                f"of two codes; restore the code to go on, remove {directory} to run again, or write elsewhere by --out"
            )


def _specification(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} is damaged: it does not hold the settings of a run; restore it, or remove its directory"
        )
    return found


def claim(directory: Path, spec: Experiment, resume: bool) -> None:
    """The specification is the first file of a run."""
    if not allowed(directory, spec, resume):
        pinned = code(spec)
        settings = asdict(spec) | ({"code": pinned} if pinned else {})
        with journal.in_words(directory):
            directory.mkdir(parents=True, exist_ok=True)
        journal.write(directory / "spec.json", (json.dumps(settings, indent=1) + "\n").encode())


def changed(spec: Experiment, words: Sequence[str]) -> Experiment:
    """The experiment with settings given as `key=value`."""
    types = {field.name: field.type for field in fields(Experiment)}
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"a setting must be KEY=VALUE, as in epochs=50, but is {word!r}")
        settings[key] = _value(key, value, lookup(types, key, "setting"))
    return replace(spec, **settings)


def _value(key: str, value: str, kind: Any) -> Any:
    answers = {"true": True, "false": False}
    names = {int: "a whole number", float: "a number", bool: "true or false", int | str: "a whole number or a word"}
    if kind == int | str:
        return int(value) if value.lstrip("-").isdigit() else value
    try:
        return answers[value.lower()] if kind is bool else kind(value)
    except (ValueError, KeyError):
        raise ValueError(f"{key} must be {names[kind]}, but is {value!r}") from None
