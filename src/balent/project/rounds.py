"""How the model changes from round to round: what it says of the reserve, compared with what it said before.

`rounds.ndjson` has a line per round of asking: the number of labels, and Cohen's κ between what this model predicts
and what the last one did (Bloodgood & Vijay-Shanker, 2009; kept in `said.json`). Both can be lost without harm:
advice then takes longer. `curve.ndjson` has a line for each time that the accuracy was counted: the learning curve.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balent.loop import journal
from balent.project.audit import Interval, kappa
from balent.project.log import held, now

if TYPE_CHECKING:
    from balent.project.asking import View
    from balent.project.project import Project

NAME, SAID, CURVE = "rounds.ndjson", "said.json", "curve.ndjson"


def note(project: "Project", view: "View") -> None:
    """A line about the model of this round."""
    assert view.model is not None
    rows = [view.row[n] for n in view.reserve]
    if not rows:
        return
    said = view.model.probabilities(view.model.pool.rows[rows]).argmax(1).tolist()
    prints = [project.items[n].fingerprint[:16] for n in view.reserve]
    now_said = {print: view.classes[c] for print, c in zip(prints, said, strict=True)}
    path = project.path / NAME
    with held(project.path / "rounds.lock"):
        journal.repair(path)
        earlier = _said(project.path / SAID)
        numbers = {name: i for i, name in enumerate({*earlier.values(), *now_said.values()})}
        pairs = [(numbers[earlier[print]], numbers[now_said[print]]) for print in now_said if print in earlier]
        line = {"round": project.state.rounds, "labels": len(view.model.pool.labels), "kappa": _kappa(pairs)}
        journal.write(project.path / SAID, json.dumps(now_said).encode())
        journal.append(path, {"format": 1, **line, "when": now()})


def _said(path: Path) -> dict[str, str]:
    """Class names by fingerprint, as the last model predicted them."""
    return json.loads(path.read_bytes()) if path.exists() else {}


def _kappa(pairs: list[tuple[int, int]]) -> float | None:
    """Two models that say one and the same class of everything agree."""
    found = kappa(pairs)
    return 1.0 if found is None and pairs else found


def lines(project: "Project") -> list[dict[str, Any]]:
    """All rounds so far."""
    return journal.read(project.path / NAME)


def agreements(project: "Project") -> list[float]:
    """κ of consecutive models."""
    return [line["kappa"] for line in lines(project) if line["kappa"] is not None]


def note_accuracy(project: "Project", right: int, of: int) -> None:
    """A point of the learning curve."""
    line = {"format": 1, "labels": len(project.state.last), "right": right, "of": of, "when": now()}
    with held(project.path / "rounds.lock"):
        journal.repair(project.path / CURVE)
        journal.append(project.path / CURVE, line)


def curve(project: "Project") -> list[dict[str, Any]]:
    """Accuracy by the number of labels; of several figures for the same number the last one."""
    found = {line["labels"]: Interval(line["right"], line["of"]) for line in journal.read(project.path / CURVE)}
    return [
        {"labels": labels, "right": seen.right, "of": seen.of, "low": seen.low, "high": seen.high}
        for labels, seen in sorted(found.items())
    ]
