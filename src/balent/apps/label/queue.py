"""The queue: items that were proposed and that nobody looks at yet. It is kept on disk.

The worker gives the k best items and a tail of others, so that nobody waits while the next ones are computed. New
proposals replace old ones. A server that starts again goes on with the file, before there is a model.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from balent.data.outputs import write_unsynced
from balent.loop.journal import in_words
from balent.project.questions import Proposal

K = 20
TAIL = 5 * K
NAME = "queue.json"


class Queue:
    """Proposals in the order to be asked, each item once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.round = 0
        self.rule: dict[str, str] = {}  # the strategy, and what `auto` stands for
        self.marks: dict[int, list[list[int]]] = {}  # texts: words that weigh most for the guess
        self._waiting: dict[int, Proposal] = {}
        self._restore()

    def __len__(self) -> int:
        return len(self._waiting)

    def replace(self, message: dict[str, Any]) -> None:
        """Takes proposals of the worker instead of those that wait."""
        self.round, self.rule = message["round"], message.get("rule", {})
        self._waiting = {}
        self.extend(message)

    def extend(self, message: dict[str, Any]) -> None:
        """Takes the tail of proposals."""
        found = [Proposal(**line) for line in message["proposals"]]
        self.put(found, front=False)
        self.marks |= {int(number): marks for number, marks in message.get("marks", {}).items()}
        lines = [asdict(proposal) for proposal in self._waiting.values()]
        marks = {number: marks for number, marks in self.marks.items() if number in self._waiting}
        kept = {"round": self.round, "rule": self.rule, "proposals": lines, "marks": marks}
        with in_words(self.path):  # unsynced: a person's answer may be waiting
            write_unsynced(self.path, json.dumps(kept).encode())

    def put(self, proposals: Iterable[Proposal], *, front: bool = True) -> None:
        """Adds proposals; those that somebody has seen already come first."""
        new = {proposal.number: proposal for proposal in proposals}
        self._waiting = {**new, **self._waiting} if front else {**self._waiting, **new}

    def first(self, allowed: Callable[[int], bool]) -> Proposal | None:
        """The next one that may be asked. Those that may not are forgotten."""
        while self._waiting:
            number = next(iter(self._waiting))
            if allowed(number):
                return self._waiting[number]
            del self._waiting[number]
        return None

    def drop(self, number: int) -> None:
        self._waiting.pop(number, None)

    def get(self, number: int) -> Proposal | None:
        return self._waiting.get(number)

    def _restore(self) -> None:
        """What was written by an earlier server; it can be lost without harm."""
        try:
            found = json.loads(self.path.read_bytes())
            self.round, self.rule = int(found["round"]), dict(found.get("rule", {}))
            lines = [Proposal(**line) for line in found["proposals"]]
            self.put(proposal for proposal in lines if type(proposal.number) is int)
            self.marks = {int(number): marks for number, marks in found["marks"].items()}
        except FileNotFoundError:
            return
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            self.path.unlink()
