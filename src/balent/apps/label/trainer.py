"""The trainer, as the server sees it: what the worker does, and what it should do next.

The worker is asked for new proposals when few items wait, or when many labels are new. What it found out last about
accuracy and advice is kept here, since finding it out takes a few fits.
"""

import itertools
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from balent.apps.label.queue import K, Queue

Message = dict[str, Any]
PATIENCE = 10.0  # seconds to wait for an answer of the worker; the page waits for 15


class Trainer:
    """The state of the worker.

    folder      the project's
    labels      a function that counts labels
    """

    def __init__(self, folder: Path, queue: Queue, labels: Callable[[], int]) -> None:
        self.queue, self.labels = queue, labels
        self.send: Callable[[Message], None] = lambda _: None
        self.model: Message = {"state": "starting", "done": 0, "of": 0, "rounds": 0, "note": ""}
        self.standing: Message = {}
        self._first_time = not any((folder / "features").glob("*/index.ndjson"))
        self._waits = False  # for proposals
        self._counted = -1  # labels of the last request
        self._enough = True  # the worker gave as many items as it was asked for
        self._replies: dict[int, tuple[threading.Event, list[Message]]] = {}
        self._numbers = itertools.count(1)
        self._over = False

    def without_model(self) -> bool:
        """Are random checks all that can be asked?"""
        return self.model["state"] in ("features", "stopped") or (self.is_starting() and self._first_time)

    def is_starting(self) -> bool:
        """Has the worker said nothing yet?"""
        return bool(self.model["state"] == "starting")

    def is_busy(self) -> bool:
        """Will there be proposals?"""
        return self.is_starting() or (self._waits and self.model["state"] != "stopped")

    def wake(self, shown: Iterable[int], *, at_once: bool = False) -> None:
        """Asks for proposals if they are needed: fewer than k items wait, or k/2 labels are new."""
        labels = self.labels()
        few = len(self.queue) < K and (self._enough or labels != self._counted)
        if at_once or (not self._waits and (few or abs(labels - self._counted) >= K // 2)):
            self._waits, self._counted = True, labels
            self.send({"wanted": "proposals", "shown": sorted(shown)})

    def heard(self, message: Message) -> None:
        """Takes what the worker says."""
        said = message.pop("said")
        if said == "proposals":
            self.queue.replace(message)
            self.model |= {"state": "ready", "note": ""}
        elif said == "tail":
            self.queue.extend(message)
            self._waits, self._enough = False, message["enough"]
        elif said == "features":
            self.model |= {"state": "features", "done": message["done"], "of": message["of"]}
        elif said == "standing":
            self.standing, self.model["rounds"] = message["standing"], message["rounds"]
        elif said == "reply":
            event, found = self._replies.get(message["to"], (threading.Event(), []))
            found.append(message)
            event.set()
        elif said == "note":
            self.model["note"] = message["note"]
        elif said == "stopped":
            self.stopped(message["note"])

    def stopped(self, note: str) -> None:
        """The worker has ended, and is not started again."""
        self.model |= {"state": "stopped", "note": note}

    def give_up(self) -> None:
        """The server ends: nobody waits for a reply any more."""
        self._over = True
        for event, _ in [*self._replies.values()]:
            event.set()

    def ask(self, request: Message) -> Message | None:
        """Asks the worker something, and waits for the reply; None if it takes too long."""
        number, event, found = next(self._numbers), threading.Event(), list[Message]()
        self._replies[number] = (event, found)
        try:
            self.send({**request, "number": number})
            event.wait(0 if self._over else PATIENCE)
        finally:
            del self._replies[number]
        return found[0] if found else None
