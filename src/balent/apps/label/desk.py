"""The desk: everything that the page's requests do, one at a time, over one project. No torch here."""

import hashlib
import os
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict

from balent.apps.label.answers import Answers
from balent.apps.label.cards import Cards
from balent.apps.label.leases import SECONDS, Leases
from balent.apps.label.lending import Lending
from balent.apps.label.queue import NAME, Queue
from balent.apps.label.said import Refused, Said
from balent.apps.label.trainer import Message, Trainer
from balent.project.project import Project
from balent.project.questions import Proposal
from balent.project.settings import Look

MINUTES = 5  # over which the rate is counted


class Desk:
    """A project with its queue, its leases and its worker. Methods may be called from several threads.

    lease       seconds after which the items of an idle tab are given to others
    clock       seconds, for tests
    """

    def __init__(
        self, project: Project, *, lease: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.project, self.clock = project, clock
        self.lock = threading.RLock()
        self.queue = Queue(project.path / NAME)
        self.leases = Leases(lease, clock)
        self.trainer = Trainer(project.path, self.queue, lambda: len(project.state.last))
        self.lending = Lending(project, self.queue, self.leases, self.trainer)
        self.answers = Answers(project, self.lending)
        self.cards = Cards(project)
        self._times: deque[float] = deque(maxlen=2000)

    def next(self, tab: str, who: str | None, n: int, page: int = 0) -> Message:
        """The items of a tab, and what the head of the page shows."""
        with self.lock:
            self.look()
            found = self.lending.next(tab, who, n, page)
            self.trainer.wake(self.leases.held())
            shown = [self.shown(proposal) for proposal in found]
            over = not shown and not self.trainer.is_busy()
            return {
                "items": shown,
                "waiting": len(self.queue),
                "labelled": len(self.project.state.labels()),
                "items_total": len(self.project.items.present()),
                "sentence": self.trainer.standing.get("audit", {}).get("sentence", ""),
                "now": [other or "" for other, _ in self.leases.others(tab, who)],
                "model": self.trainer.model,
                "message": self._nothing() if over else "",
                "done": over and next(self.lending.unlabelled(), None) is None,
                "version": self.version(),
            }

    def answer(self, said: Said, who: str | None) -> None:
        """Writes an event. It is on disk when this returns."""
        with self.lock:
            written = self.answers.write(said, who)
            if written and said.event == "label":
                self._times.extend([self.clock()] * len(said.items))
            self.trainer.wake(self.leases.held())

    def leave(self, tab: str, page: int) -> None:
        """A page was closed: what it showed is given to others."""
        with self.lock:
            self.queue.put(self.leases.left(tab, page))

    def grid(self, tab: str, who: str | None, name: str, n: int, without: Sequence[int] = (), page: int = 0) -> Message:
        """Items that the model takes for one class, without those that the tab shows already or that were wrong."""
        with self.lock:
            self.look()
            if name not in self.project.state.classes:
                raise Refused(404, f"there is no class {name!r}")
            self.leases.renew(tab, who, page)
            self.lending.take_back(tab, without)
            held = sorted({*self.leases.held(), *without})
        ready = self.trainer.model["state"] == "ready"
        reply = self.trainer.ask({"wanted": "grid", "class": name, "n": n, "shown": held}) if ready else None
        with self.lock:
            free = self.lending.lend(tab, who, [Proposal(**line) for line in (reply or {}).get("proposals", [])])
            return {
                "class": name,
                "items": [self.shown(proposal) for proposal in free],
                "more": (reply or {}).get("more", 0),
                "message": "" if free else self._no_grid(reply, tab),
            }

    def _no_grid(self, reply: Message | None, tab: str) -> str:
        """Why there is nothing for the grid."""
        if reply is None:
            return "the model is not ready yet"
        if not reply["trained"]:
            return "there is no model yet: label items of two classes first"
        others = self.leases.held(without=tab)
        return "no item looks like this class now" + ("; some may be on other screens" if others else "")

    def disagreements(self) -> Message:
        """Random checks on which people disagree."""
        with self.lock:
            self.look()
            state = self.project.state
            return {
                "items": [
                    self.cards.of(number)
                    | {
                        "answers": [
                            {"who": who, "label": state.classes.name(given.label), "when": given.when}
                            for who, given in state.answers[number].items()
                        ]
                    }
                    for number in state.disagreements()
                ]
            }

    def status(self, tab: str, who: str | None) -> Message:
        """How the project stands: counts as they are now, accuracy as it was counted last."""
        with self.lock:
            self.look()
            state, standing, given = self.project.state, self.trainer.standing, self.project.state.labels()
            counts = Counter(given.values())
            nothing: Message = {
                "accuracy": None,
                "recall": {},
                "agreement": [],
                "advice": [],
                "curve": [],
                "counted": 0,
                "left_out": [],
                "left_out_total": 0,
            }
            every = {"every": self.project.settings.audit, "asked": 0, "answered": 0, "skipped": 0, "sentence": ""}
            return {
                **{name: standing.get(name, default) for name, default in nothing.items()},
                "audit": standing.get("audit", every),
                "key": hashlib.sha256(os.fsencode(self.project.path.resolve())).hexdigest()[:16],
                "project": self.project.path.name.removesuffix(".balent"),
                "kind": self.project.settings.kind,
                "who": who,
                "version": self.version(),
                "items": len(self.project.items.present()),
                "labelled": len(given),
                "skipped": len(state.skipped),
                "flagged": len(state.flagged),
                "pending": len(state.pending),
                "classes": {name: counts[number] for name, number in state.classes.names().items()},
                "looks": [asdict(look) for look in self.looks()],
                "people": state.people(),
                "now": [{"who": other or "", "seconds": round(ago)} for other, ago in self.leases.others(tab, who)],
                "disagreements": len(state.disagreements()),
                "suspicious": self.suspicious(),
                "rate": self._rate(),
                "goal": self.project.settings.goal,
                "model": self.trainer.model,
            }

    def suspicious(self) -> list[Message]:
        """Labels to look at again, without those that have been changed since."""
        state, found = self.project.state, []
        for line in self.trainer.standing.get("suspicious", []):
            number = self.project.items.number(line["id"])
            last = None if number is None else state.last.get(number)
            if last is not None and state.classes.name(last.label) == line["label"]:
                found.append({"item": number, **line})
        return found

    def change_classes(self, action: str, name: str, to: str, key: str | None, note: str | None) -> None:
        """Adds, renames, merges or describes a class."""
        with self.lock:
            project = self.project
            try:
                if action == "add":
                    project.add_class(name, key=key or "", note=note or "")
                elif action == "rename":
                    project.rename_class(name, to)
                elif action == "merge":
                    project.merge_classes(name, to)
                else:
                    project.describe_class(name, key=key, note=note)
            except ValueError as error:
                raise Refused(422, str(error)) from error
            self.trainer.wake(self.leases.held(), at_once=action != "describe")

    def worker_started(self) -> None:
        """A worker has been started, the first one or another one: it needs to know what to do."""
        with self.lock:
            self.trainer.wake(self.leases.held(), at_once=True)

    def worker_stopped(self, note: str) -> None:
        """The worker has ended, and is not started again."""
        with self.lock:
            self.trainer.stopped(note)

    def heard(self, message: Message) -> None:
        """What the worker says."""
        with self.lock:
            try:
                self.trainer.heard(message)
            except OSError as error:  # the queue cannot be written: it is in memory still
                self.trainer.model["note"] = str(error)

    def look(self) -> None:
        """Reads what other processes wrote, and takes back what nobody looks at."""
        self.project.look()
        self.lending.collect()

    def looks(self) -> list[Look]:
        """Classes in the order of their numbers, with keys and notes."""
        described = {look.name: look for look in self.project.settings.classes}
        return [described.get(name, Look(name)) for name in self.project.state.classes.names()]

    def version(self) -> int:
        """Another number whenever classes have changed."""
        return zlib.crc32(repr(self.looks()).encode("utf-8", "backslashreplace"))

    def shown(self, proposal: Proposal) -> Message:
        """An item as the page shows it."""
        number = proposal.number
        about: Message = {"guess": None, "probability": None, "why": proposal.why, "audit": proposal.audit}
        if not proposal.audit:
            known = proposal.guess in self.project.state.classes if proposal.guess is not None else False
            about |= {"guess": proposal.guess, "probability": proposal.probability} if known else {}
            about |= {"marks": self.queue.marks[number]} if number in self.queue.marks else {}
        return self.cards.of(number) | about

    def _nothing(self) -> str:
        """Why there are no items."""
        if not self.project.state.classes.names():
            return "there is no class yet: add one (n)"
        if self.leases.held():
            return "other people look at the last items"
        left = sum(1 for _ in self.lending.unlabelled())
        if left:
            return f"the last {left} were asked elsewhere; balent ask --pending lists them"
        bad = len(self.trainer.standing.get("bad", {}))
        return "every item is labelled or skipped" + (f"; {bad} cannot be read" if bad else "")

    def _rate(self) -> float | None:
        """Labels per minute, lately."""
        recent = [t for t in self._times if self.clock() - t < 60 * MINUTES]
        spent = self.clock() - recent[0] if len(recent) > 1 else 0.0
        return round(60 * len(recent) / spent, 1) if spent > 5 else None
