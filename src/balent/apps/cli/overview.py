"""What `balent status` shows: a project in a few lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

FEW = 5  # of a long list


def overview(name: str, place: str, found: Mapping[str, Any]) -> Iterator[str]:
    """Lines for a person; `found` is what `Project.status` gives."""
    yield f"{name}: {_count(found['items'], 'item')} of {place}"
    yield f"labels      {found['labelled']} labelled{''.join(_beside(found))}"
    yield f"accuracy    {found['audit']['sentence']}{_skipped_checks(found)}"
    yield from _block("classes", [_class(name, count, found) for name, count in found["classes"].items()])
    yield from _block("people", [f"{who or '(no name)'} {count}" for who, count in found["people"].items()])
    yield from _block("agreement", [_agreement(pair) for pair in found["agreement"]])
    yield from _block("disagree", _some(found["disagreements"]))
    yield from _block("look again", _some([_suspicious(label) for label in found["suspicious"]]))
    yield from _block("changed", _some([f"{id}: labelled before its content changed" for id in found["changed"]]))
    yield from _block("unreadable", _some([f"{id}: {reason}" for id, reason in found["bad"].items()]))
    yield from _block("left out", _some([f"{id}: {reason}" for id, reason in found["left_out"].items()]))
    yield from _block("advice", found["advice"])


def _beside(found: Mapping[str, Any]) -> Iterator[str]:
    for name in ("skipped", "flagged", "pending", "duplicates", "removed"):
        if found[name]:
            yield f", {found[name]} {name}"


def _skipped_checks(found: Mapping[str, Any]) -> str:
    skipped = found["audit"]["skipped"]
    return f" ({_count(skipped, 'random check')} skipped)" if skipped else ""


def _class(name: str, count: int, found: Mapping[str, Any]) -> str:
    recall = found["recall"].get(name)
    known = "" if recall is None else f"; of {recall['of']} random ones {recall['right']} are recognised"
    interval = "" if recall is None else f" ({100 * recall['low']:.0f}–{100 * recall['high']:.0f} %)"
    return f"{name} {count}{known}{interval}"


def _agreement(pair: Mapping[str, Any]) -> str:
    people = " and ".join(who or "(no name)" for who in pair["people"])
    kappa = "not defined" if pair["kappa"] is None else f"{pair['kappa']:.2f}"
    return f"{people}: κ {kappa} over {_count(pair['items'], 'random check')}"


def _suspicious(label: Mapping[str, Any]) -> str:
    return f"{label['id']} is labelled {label['label']}, but looks like {label['guess']} ({label['probability']:.0%})"


def _some(lines: Sequence[str]) -> list[str]:
    """The first of a long list; --json has all of them."""
    return [*lines[:FEW], *([f"… and {len(lines) - FEW} more; --json lists all"] if len(lines) > FEW else [])]


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{title if number == 0 else '':<12}{line}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
