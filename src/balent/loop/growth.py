"""Classes of a Learner by name, and a model that keeps one output for each of them.

The journal decides which classes there are. When a class is added, a predictor that can grows; in place of any other, a
wider one is given when the directory is opened again, and its first weights are kept as those of the first one were.
"""

from collections.abc import Sequence

import torch

from balent.data.pool import Indexed
from balent.loop import checkpoint, class_names
from balent.loop.events import Events
from balent.types import Grows, HasWidth, Predictor

INITIAL = "initial.safetensors"


def width(predictor: Predictor, pool: Indexed) -> int | None:
    """For how many classes the predictor has an output, if it tells."""
    return predictor.width(pool[torch.tensor([0])]) if isinstance(predictor, HasWidth) else None


def first_weights(events: Events) -> str:
    """The file with the weights that the first fit starts from."""
    named = [event["initial"] for event in events.happened if event.get("initial")]
    return named[-1] if named else INITIAL


def restored(predictor: Predictor, events: Events, pool: Indexed, new: Sequence[str]) -> bool:
    """Loads the first weights that a directory keeps. False if the predictor is a new one, made for new classes."""
    known = len(events.labels.classes)
    outputs = width(predictor, pool)
    if known and isinstance(predictor, Grows) and (outputs is None or outputs < known):
        predictor.grow(known)
        outputs = known
    grows = isinstance(predictor, Grows) and outputs == known
    if known and new and not grows:
        class_names.check_width(outputs, known + len(new))
        return False
    class_names.check_width(outputs, known if grows else known + len(new))
    checkpoint.restore(events.file(first_weights(events)), predictor)
    return True


def name(events: Events, predictor: Predictor, new: Sequence[str], grows: bool) -> None:
    """Records new classes: first names for the outputs of the model, or more of them."""
    known = len(events.labels.classes)
    _check_labels(events, known + len(new))
    if known and grows:
        add(events, predictor, new)
    elif new:
        kept = _saved(events, predictor, known + len(new)) if known else {}
        events.add({"event": "classes", "names": list(new), **kept})


def add(events: Events, predictor: Predictor, new: Sequence[str]) -> None:
    """More classes, for which the predictor grows. If they cannot be recorded, it is as wide as before."""
    events.check_open()
    known = events.labels.classes
    if not new:
        return
    if not isinstance(predictor, Grows):
        raise ValueError(
            f"{type(predictor).__name__} has outputs for {len(known)} classes and cannot grow, so {new[0]!r} was not "
            f"added; make the Learner again with a predictor of {len(known) + len(new)} classes and "
            f"classes={[*known, *new]}: labels in its directory are kept"
        )
    before = predictor.state()
    predictor.grow(len(known) + len(new))
    try:
        kept = {} if checkpoint.same(before, predictor.state()) else _saved(events, predictor, len(known) + len(new))
        events.add({"event": "classes", "names": list(new), **kept})
    except BaseException:
        predictor.grow(len(known))
        raise


def _saved(events: Events, predictor: Predictor, classes: int) -> dict[str, str]:
    """Writes the first weights of a wider model; the event names their file, so they count once it is written."""
    if events.directory is None or not predictor.state():
        return {}
    file = f"initial-{classes}.safetensors"
    checkpoint.save(events.file(file), predictor.state())
    return {"initial": file}


def _check_labels(events: Events, classes: int) -> None:
    most = max(events.labels.classes_told(), default=-1)
    if classes and most >= classes:
        raise ValueError(
            f"{classes} classes were named, but {events.directory} has labels of class number {most}; name them all"
        )
