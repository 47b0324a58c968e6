"""How a project stands: counts, classes, people, accuracy with an interval, advice.

Accuracy takes a few fits. It is kept in `accuracy.json` with a digest of what it depends on, and is counted again when
a label has changed.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from balent.loop.journal import write
from balent.notebook_cards import card
from balent.project import advice, audit, rounds
from balent.project.asking import View
from balent.project.audit import Interval
from balent.project.model import Pool

if TYPE_CHECKING:
    from balent.project.project import Progress, Project

NAME = "accuracy.json"
FORMAT = 2  # of this file
LAST = 100  # labels whose gain is told
CONFIDENT = 0.9  # in another class: the label is suspicious
ENOUGH = 20  # labels from which on suspicious ones are looked for


Step = Callable[[], None]  # is called when a model is trained


class Standing(dict[str, Any]):
    """What `balent status --json` prints; in a notebook, a table of classes between its sentences."""

    def _repr_html_(self) -> str:
        title = f"{self['labelled']:,} of {self['items']:,} items labelled"
        rows = [[name, f"{count:,}", _recalled(self["recall"].get(name))] for name, count in self["classes"].items()]
        people = ", ".join(f"{who or '(no name)'} {count:,}" for who, count in self["people"].items())
        notes = [f"accuracy: {self['audit']['sentence']}", *([f"people: {people}"] if people else []), *self["advice"]]
        return card(title, ["class", "labels", "recall"], rows, notes)


def _recalled(found: dict[str, Any] | None) -> str:
    return "" if found is None else f"{found['right']} of {found['of']} ({found['low']:.0%}–{found['high']:.0%})"


def status(project: "Project", progress: "Progress | None" = None) -> dict[str, Any]:
    """What `balent status --json` prints."""
    project.look()
    items, state = project.items, project.state
    given = state.labels()
    found = measured(project, progress)
    right, of = found["right"], found["of"]
    accuracy = Interval(right, of) if of >= audit.FEWEST else None
    return {
        "items": len(items.present()),
        "labelled": len(given),
        "skipped": len(state.skipped),
        "flagged": len(state.flagged),
        "pending": len(state.pending),
        "classes": {name: Counter(given.values())[number] for name, number in state.classes.names().items()},
        "people": state.people(),
        "accuracy": accuracy and {"right": right, "of": of, "low": accuracy.low, "high": accuracy.high},
        "audit": _audit(project, found),
        "recall": found["recall"],
        "agreement": agreement(project),
        "disagreements": [items[n].id for n in state.disagreements()],
        "suspicious": found["suspicious"],
        "duplicates": len(items.duplicates()) if project.settings.duplicates == "once" else 0,
        "removed": sum(item.gone for item in items.all),
        "changed": [items[n].id for n in given if not items[n].fingerprint.startswith(state.last[n].print)],
        "bad": project.unreadable(),
        "left_out": project.left_out(),
        "advice": advice.advice(project, found),
        "curve": rounds.curve(project),
    }


def _audit(project: "Project", found: dict[str, Any]) -> dict[str, Any]:
    state = project.state
    asked = [n for n, question in state.asked.items() if question.audit]
    return {
        "every": project.settings.audit,
        "asked": len(asked),
        "answered": found["answered"],
        "skipped": sum(n in state.skipped for n in asked),
        "sentence": sentence(project, found),
    }


def sentence(project: "Project", found: dict[str, Any]) -> str:
    """The accuracy in words."""
    if not project.settings.audit:
        return "no accuracy is shown: random checks are off (audit = 0)"
    if found["answered"] < audit.FEWEST:
        return f"too few yet: {found['answered']} of {audit.FEWEST} random checks answered"
    if not found["of"]:
        return "no figure yet: no model is trained"
    more = audit.more_for(found["right"], found["of"])
    width = f"; {more} more random checks for ±3 %" if more else ""
    return f"{Interval(found['right'], found['of'])}{width}"


def agreement(project: "Project") -> list[dict[str, Any]]:
    """Cohen's κ of each two people over the random checks that both answered."""
    state, result = project.state, []
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for number, given in state.answers.items():
        named = {who or "": state.classes.of(a.label) for who, a in given.items() if state.is_audit(number)}
        for one, other in combinations(sorted(named), 2):
            pairs.setdefault((one, other), []).append((named[one], named[other]))
    for people, both in sorted(pairs.items()):
        result.append({"people": list(people), "items": len(both), "kappa": audit.kappa(both)})
    return result


# ── what the random checks show ──────────────────────────────────────────────────────────────────────


def measured(project: "Project", progress: "Progress | None" = None) -> dict[str, Any]:
    """Right answers and checks, recall by class, gain of the last labels, suspicious labels.

    `answered` counts the checks that people have answered, and `of` those that a model could be judged by. What took
    fits is kept between calls; before there is a model, nothing is.
    """
    path, digest = project.path / NAME, _digest(project)
    if path.exists():
        kept = json.loads(path.read_bytes())
        if kept["digest"] == digest:
            return dict(kept)
    figures = _measured(project, progress)
    if figures is None:
        nothing = {"right": 0, "of": 0, "recall": {}, "gain": None, "suspicious": [], "answers": []}
        return nothing | {"answered": answered(project)}
    found = {"digest": digest, **figures}
    write(path, json.dumps(found, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    if found["of"] >= audit.FEWEST:
        rounds.note_accuracy(project, found["right"], found["of"])
    return found


def _digest(project: "Project") -> str:
    """Of all that accuracy depends on."""
    state = project.state
    said = [(n, state.classes.name(a.label), a.when) for n, a in sorted(state.last.items())]
    about = [FORMAT, said, sorted(state.disagreements()), [*state.classes.names()], project.items.version]
    return hashlib.sha256(json.dumps([*about, str(project.settings)]).encode("utf-8", "backslashreplace")).hexdigest()


def _measured(project: "Project", progress: "Progress | None") -> dict[str, Any] | None:
    """None before there is a model."""
    if not project.state.last or not project.features.known():
        return None
    view = View(project)
    if view.model is None or not view.model.trained:
        return None
    checks = view.checks() if project.settings.audit else []
    step = _steps(view, checks, progress)
    right = judged(view, checks, step)
    truth = [view.classes[view.model.pool.labels[view.row[n]]] for n in checks]
    return {
        "right": int(sum(right)),
        "of": len(right),
        "answered": len(right),
        "recall": _recall(truth, right),
        "gain": _gain(view, checks, right, step),
        "suspicious": suspicious(project, view, step),
        "answers": [int(r) for r in right],  # in the order in which they were given
    }


def answered(project: "Project") -> int:
    """Random checks that people have answered."""
    state = project.state
    return sum(state.is_audit(number) and not state.last[number].imported for number in state.labels())


def _steps(view: View, checks: list[int], progress: "Progress | None") -> Step:
    """Counts the models that are trained, of as many as there will be."""
    labels, done = len(view.labels), 0
    times = 1 + _has_gain(view, checks)
    total = times * len(audit.folds(checks)) + (len(audit.folds(range(labels))) if labels >= ENOUGH else 0)

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(done, total), total)

    if progress is not None and total:
        progress(0, total)
    return step


def judged(view: View, checks: list[int], step: Step = lambda: None, without: list[int] | None = None) -> list[bool]:
    """Whether each random check is predicted rightly by a model that has not seen it (nor the labels of `without`)."""
    assert view.model is not None
    pool, right = view.model.pool, dict[int, bool]()
    for part in audit.folds(checks):
        rows = [view.row[n] for n in part]
        p = view.model.without([*rows, *(view.row[n] for n in without or ())], rows)
        said = [-1] * len(rows) if p is None else p.argmax(1).tolist()
        step()
        right |= {n: c == pool.labels[row] for n, c, row in zip(part, said, rows, strict=True)}
    return [right[n] for n in checks]


def _recall(truth: list[str], right: list[bool]) -> dict[str, dict[str, Any]]:
    """By class, where there are ten checks of it or more."""
    result = {}
    for name in dict.fromkeys(truth):
        mine = [r for t, r in zip(truth, right, strict=True) if t == name]
        if len(mine) >= audit.PER_CLASS:
            known = Interval(sum(mine), len(mine))
            result[name] = {"right": known.right, "of": known.of, "low": known.low, "high": known.high}
    return result


def _has_gain(view: View, checks: list[int]) -> bool:
    return len(view.labels) >= 2 * LAST and len(checks) >= audit.FEWEST


def _gain(view: View, checks: list[int], right: list[bool], step: Step) -> dict[str, Any] | None:
    """Points of accuracy that the last 100 labels gained, as an interval: the same checks, with and without them."""
    newest = sorted((n for n in view.labels if n in view.row), key=view.since.__getitem__)[-LAST:]
    if not _has_gain(view, checks):
        return None
    before = judged(view, checks, step, newest)
    apart = np.array(right, dtype=float) - np.array(before, dtype=float)
    half = audit.Z95 * float(apart.std(ddof=1)) / len(apart) ** 0.5
    return {"low": float(apart.mean()) - half, "high": float(apart.mean()) + half, "labels": LAST}


def in_order(pool: Pool) -> list[int]:
    """Labelled rows in the order of their contents, so that folds do not depend on who was labelled when."""
    return sorted(pool.labels, key=lambda row: pool.prints[row])


def suspicious(project: "Project", view: View, step: Step) -> list[dict[str, Any]]:
    """Labels that a model which has not seen them contradicts with confidence, the surest first."""
    assert view.model is not None
    pool, found = view.model.pool, []
    for row, said in view.model.cross_fitted(in_order(pool), step) if len(pool.labels) >= ENOUGH else []:
        best = int(said.argmax())
        if best != pool.labels[row] and said[best] >= CONFIDENT:
            found.append((float(said[best]), row, best))
    return [
        {
            "id": project.items[view.numbers[row]].id,
            "label": view.classes[pool.labels[row]],
            "guess": view.classes[best],
            "probability": round(sure, 4),
        }
        for sure, row, best in sorted(found, reverse=True)
    ]
