"""Opening a directory of a Learner: its own settings win over defaults, and other settings are refused.

So is another pool, to whose points labels would move. Formats of the journal: 1 is version 0.1, 2 records which pool it
belongs to, 3 names points by their ids if there are some. Fields that an old journal lacks have the values of 0.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from balent import adapt, names
from balent.data.pool import Indexed
from balent.loop import fingerprint
from balent.loop.events import Events, Say
from balent.loop.labels import Event
from balent.strategies import strategy as named
from balent.types import Strategy

FORMAT = 3


@dataclass(frozen=True)
class Settings:
    """What decides the picks, besides the labels, with the defaults of this version."""

    strategy: str | Strategy = "auto"
    seed: int = 0
    draws: int | str = 100
    masks: str = "auto"
    start: str | Sequence[int] = "auto"

    @property
    def words(self) -> dict[str, Any]:
        """As a journal holds them."""
        return {**vars(self), "strategy": names.identity(self.strategy)}


OF_0_1 = Settings("balentacq", start="random")
KINDS: dict[str, type | tuple[type, ...]] = {  # of settings in a journal
    "strategy": str,
    "seed": int,
    "draws": (int, str),
    "masks": str,
    "start": (str, list),
}


def settled(given: dict[str, Any], events: Events) -> Settings:
    """The settings to go on with: as given, else as recorded, else the defaults."""
    if not events.happened:
        return Settings(**given)
    before = recorded(events)
    if "strategy" not in given:
        _check_known(events.directory, before.strategy)
    return replace(before, **given)


def recorded(events: Events) -> Settings:
    """The settings of the directory; positions to start with are those of this pool."""
    first = events.happened[0]
    words = {f.name: first[f.name] for f in fields(Settings) if f.name in first}
    for name, value in words.items():
        if isinstance(value, bool) or not isinstance(value, KINDS[name]):
            raise ValueError(f"{events.path}, line 1, is damaged: {name} = {str(value)[:40]}; restore the file")
    if isinstance(words.get("start"), list):
        words["start"] = [i for i in events.places.now(words["start"]) if i < events.places.points]
    return replace(OF_0_1, **words)


def _check_known(directory: Path | None, strategy: str | Strategy) -> None:
    """A strategy that was given as an object has a name in the journal from which it cannot be made again."""
    try:
        named(str(strategy))
    except ValueError as error:
        raise ValueError(
            f"{directory} was begun with the strategy {strategy}, which this name does not make again; pass the "
            f"strategy itself: {error}"
        ) from error


def first_event(settings: Settings, events: Events, resolved: str) -> Event:
    """How a journal begins."""
    said = settings.words | {"pool": events.places.points, "resolved": resolved}
    if events.places.ids is not None and not isinstance(settings.start, str):
        said["start"] = events.places.names(settings.start)
    return {"event": "start", "format": FORMAT, **said}


def check_settings(settings: Settings, events: Events) -> None:
    """Refuses settings other than those of the directory; and a pool of another length, unless it is known by ids."""
    before, now = recorded(events).words, settings.words
    if not by_ids(events):
        before["pool"], now["pool"] = events.happened[0].get("pool"), events.places.points
    agree(events.path.parent, before, now)


def agree(directory: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuses to continue a run with other settings; the error names the first that differs, with both values."""
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            raise ValueError(
                f"{directory} was begun with {name} = {before.get(name)!r}, but {name} = {now.get(name)!r} was given; "
                "pass the first value to continue, or use another directory"
            )


def check_noise(strategy: Strategy, events: Events) -> None:
    """Picks of one run follow one rule. Version 0.1 drew noise in the order in which points came."""
    first = events.happened[0]
    by_0_1 = [] if first.get("format", 1) > 1 else events.happened[: _number_of_pin(events)]
    if adapt.needs(strategy).noise and any(event["event"] == "ask" for event in by_0_1):
        raise ValueError(
            f"{events.directory} was begun by balent 0.1 with {first['strategy']}, whose random numbers are drawn by "
            "another rule now, so its picks would not be those of one run; finish it with balent 0.1, or start again "
            "in another directory"
        )


def _number_of_pin(events: Events) -> int | None:
    """Of the event that says which pool a directory of version 0.1 belongs to: later ones are by newer versions."""
    return next((i for i, event in enumerate(events.happened) if event["event"] == "pin"), None)


def by_ids(events: Events) -> bool:
    """Does the journal name points by their ids?"""
    pinned = _pins(events)[-1:]
    return bool(pinned) and pinned[0].get("format", 1) >= FORMAT and pinned[0]["fingerprint"].startswith("ids:")


def _pins(events: Events) -> list[Event]:
    return [event for event in events.happened if event.get("fingerprint")]


def check_pool(pool: Indexed, events: Events) -> None:
    """Refuses another pool than the one the directory was begun with: labels would move to other points."""
    ids, pins = events.places.ids, _pins(events)
    same = ids is not None if by_ids(events) else not pins or fingerprint.matches(pins[-1]["fingerprint"], pool, ids)
    if not same:
        raise ValueError(
            f"the labels in {events.directory} belong to another pool: its {pins[-1]['fingerprint'].partition(':')[0]} "
            "differ, so labels would move to other points; give the pool (and ids) it was begun with, or another "
            "directory"
        )


def pin(pool: Indexed, events: Events, say: Say) -> None:
    """Records the pool of a directory of 0.1, and the ids of one whose events name points by position."""
    pins = _pins(events)
    if not pins:
        say(
            f"{events.directory} was begun by balent 0.1, which did not record which pool its labels belong to; from "
            "now on they belong to this one"
        )
    if not pins or (events.places.ids is not None and not by_ids(events)):
        events.add(_pin(pool, events))


def _pin(pool: Indexed, events: Events) -> Event:
    """Which pool a directory belongs to from now on; with ids, those of the points that its events name by position."""
    event = {"event": "pin", "format": FORMAT, "fingerprint": fingerprint.pin(pool, events.places.ids)}
    if events.places.ids is None:
        return event
    first = events.happened[0].get("start", [])
    lists = [past["indices"] for past in events.happened if "indices" in past]
    indices = sorted({i for some in [*lists, [] if isinstance(first, str) else first] for i in some})
    return event | {"indices": indices, "ids": events.places.names(indices)}


def check_code(strategy: Strategy, events: Events, say: Say) -> None:
    """Reports a strategy whose code has changed."""
    first = events.happened[0]
    if first.get("code") is not None and first["code"] != names.source_hash(strategy):
        say(
            f"the code of {first['strategy']} has changed since {events.directory} was begun; the new code is used "
            "from now on, and labels stay: to go on as before, restore the old code and open the directory again"
        )
