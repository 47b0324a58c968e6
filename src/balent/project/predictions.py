"""Predictions: for every item of a project, for other data, and for use elsewhere.

The model is kept as what it was trained on: features and labels of the labelled items, and the rows that the head looks
for neighbours in. Training from these takes about a second and gives the same model, and a file of numbers can be read
without executing anything.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from balent.data.outputs import whole
from balent.loop.checkpoint import save
from balent.project.asking import View
from balent.project.features import Maker
from balent.project.items import Known
from balent.project.kinds import ARRAY, kind_of
from balent.project.model import Model, Pool, Probabilities
from balent.project.settings import Settings
from balent.project.state import DIGITS

if TYPE_CHECKING:
    from balent.project.project import Progress, Project

TOGETHER = 4096  # rows


@dataclass(frozen=True)
class Prediction:
    """What the model says of an item.

    label           the class; of a labelled item still the model's
    probability     of that class
    uncertainty     entropy of the classes' probabilities, as a share of the largest possible: 0 is certain, 1 a guess
    given           the label that a person gave, or None
    fingerprint     the first digits of that of the content
    """

    id: str
    label: str
    probability: float
    uncertainty: float
    given: str | None = None
    fingerprint: str = ""


def predict(
    project: "Project",
    output: str | os.PathLike[str] | None,
    data: str | os.PathLike[str] | None,
    progress: "Progress | None",
) -> list[Prediction]:
    """All items, or other data; to a file, completely or not at all."""
    project.refresh()
    project.compute_features(progress=progress)
    project.look()
    view = View(project)
    model = _trained(view)
    keep(project, view)
    if data is None:
        model.keep_views()
        found = of_items(project, view, model)
        _write(Path(output or project.path / "predictions.csv"), found)
        return found
    found = of_data(project, view, model, Path(data), progress)
    if output is not None:
        _write(Path(output), found)
    return found


def of_items(project: "Project", view: View, model: Model) -> list[Prediction]:
    """Present items in the order of their numbers; equal items have equal predictions. Unreadable ones have none."""
    names, given = view.classes, project.state.labels()
    p = _in_blocks(model, model.pool.rows)
    found = []
    for number in project.items.present():
        row = view.row.get(view.owner[number])
        if row is not None:
            label = given.get(number)
            said = None if label is None else project.state.classes.name(label)
            found.append(prediction(project.items[number], p[row], names, said))
    return found


def of_data(project: "Project", view: View, model: Model, data: Path, progress: "Progress | None") -> list[Prediction]:
    """Other data of the same kind."""
    settings = replace(project.settings.moved(project.path, data), ids="", target="")
    if settings.features.endswith(ARRAY):
        if data.suffix != ARRAY:
            raise ValueError(
                f"the features of this project were computed elsewhere; compute those of {data} there too, and pass "
                "them as an .npy"
            )
        settings = replace(settings, kind="features")
    kind = kind_of(settings, project.path)
    things = [*kind.found()]
    prints = {thing.id: thing.fingerprint() for thing in things}
    contents = {prints[thing.id]: partial(kind.content, thing.id) for thing in things}
    project.features.compute(contents, progress=progress)
    bad = {id: project.features.bad[print] for id, print in prints.items() if print in project.features.bad}
    for id, reason in {**kind.skipped, **bad}.items():
        project.say(f"{id} has no prediction: {reason}")
    good = [id for id in prints if id not in bad]
    p = _in_blocks(model, project.features.rows([prints[id] for id in good]))
    return [prediction(Known(-1, id, prints[id]), row, view.classes) for id, row in zip(good, p, strict=True)]


def prediction(item: Known, p: np.ndarray, names: Sequence[str], given: str | None = None) -> Prediction:
    """Probabilities as a line of the file."""
    best = int(p.argmax())
    positive = p[p > 0].astype(np.float64)
    entropy = float(-(positive * np.log(positive)).sum()) / math.log(len(p))
    about = (names[best], round(float(p[best]), 6), round(max(0.0, entropy), 6), given)
    return Prediction(item.id, *about, item.fingerprint[:DIGITS])


def as_csv(found: Sequence[Prediction]) -> bytes:
    """A line per item, after a line of names."""
    file = io.StringIO(newline="")
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow([field.name for field in fields(Prediction)])
    rows.writerows(astuple(line) for line in found)
    return file.getvalue().encode("utf-8", "backslashreplace")


def _write(path: Path, found: Sequence[Prediction]) -> None:
    with whole(path) as partial:
        partial.write_bytes(as_csv(found))


def _in_blocks(model: Model, rows: np.ndarray) -> Probabilities:
    parts = [model.probabilities(rows[i : i + TOGETHER]) for i in range(0, len(rows), TOGETHER)]
    return np.concatenate(parts) if parts else np.empty((0, model.pool.classes), dtype=np.float32)


def _trained(view: View) -> Model:
    if view.model is None or not view.model.trained:
        raise ValueError("a prediction needs labels of two classes or more; label some items first: balent ask, tell")
    return view.model


# ── for use elsewhere ────────────────────────────────────────────────────────────────────────────────


def keep(project: "Project", view: View) -> None:
    """Writes model.safetensors."""
    pool = _trained(view).pool
    order = sorted(pool.labels, key=pool.prints.__getitem__)  # that of a Learner's fits
    tensors = {
        "features": torch.from_numpy(pool.rows[order]),
        "labels": torch.tensor([pool.labels[row] for row in order]),
        "classes": torch.from_numpy(np.frombuffer(json.dumps(view.classes).encode(), dtype=np.uint8).copy()),
        **{f"state.{name}": value for name, value in _trained(view).initial.items()},
    }
    save(project.path / "model.safetensors", tensors)


def ready(project: "Project") -> "Ready":
    """The model of model.safetensors; the data are not needed."""
    from safetensors.torch import load_file

    path = project.path / "model.safetensors"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; project.predict() makes it")
    tensors = load_file(path)
    names = json.loads(bytes(tensors["classes"].numpy()))
    rows, labels = tensors["features"].numpy(), dict(enumerate(tensors["labels"].tolist()))
    pool = Pool([f"{i:09d}" for i in labels], rows, labels, [], [], [], len(names))
    state = {name.removeprefix("state."): value for name, value in tensors.items() if name.startswith("state.")}
    model = Model(project.settings, pool, project.path, state=state)
    return Ready(project.features.prepared(), model, names, project.settings)


@dataclass(frozen=True)
class Ready:
    """A trained model over contents: paths of images, texts, rows of a table, rows of numbers."""

    maker: Maker
    model: Model
    classes: list[str]
    settings: Settings

    def probabilities(self, contents: Iterable[Any]) -> Probabilities:
        """[contents, classes]; an error if one of them cannot be read."""
        given = list(contents)
        rows, reasons = self.maker(given)
        for content, reason in zip(given, reasons, strict=True):
            if reason is not None:
                raise ValueError(f"{str(content)[:80]!r} has no features: {reason}")
        return self.model.probabilities(rows)

    def __call__(self, contents: Iterable[Any]) -> list[str]:
        """The class of each."""
        return [self.classes[int(best)] for best in self.probabilities(contents).argmax(1)]
