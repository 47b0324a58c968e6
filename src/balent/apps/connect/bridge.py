"""A project and a Label Studio kept alike: answers come in, the model learns, tasks go out in its order.

Both sides may be killed at any moment. So the other side is asked at every start what it has: the project by a key in
its description, tasks by our ids in their data, the order by the predictions of its version. Nothing is made twice. No
torch here but in `Project.ask`.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from balent.apps.connect import hearing
from balent.apps.connect.hearing import Heard
from balent.apps.connect.http_json import Away, Denied, Unsure
from balent.apps.connect.labelstudio import SAMPLING, LabelStudio, Task
from balent.apps.connect.task_data import Place, Tasks, config, named, with_choices
from balent.loop.journal import write
from balent.project.project import Progress, Project
from balent.project.telling import number_of

NAME = "labelstudio.json"
BLOCK = 200  # tasks that are sent at once
TRIES = 5  # of what may have been done
SETTLE = 3.0  # seconds for what a killed process of ours has sent
SHORTEST, LONGEST = 3, 50  # characters of a title


@dataclass
class Bridge:
    """A project of ours and one of Label Studio.

    k           how many questions are open after a round
    only_asked  makes tasks of the items that are asked, and of no others
    tasks, sent     of each item its task there, and the data of the task
    ranked, answered    items that stand in the order there; that have answers there
    """

    project: Project
    studio: LabelStudio
    place: Place
    k: int = 20
    only_asked: bool = False
    sleep: Callable[[float], None] = time.sleep
    number: int = 0  # of the project over there
    tasks: dict[int, int] = field(default_factory=dict)
    sent: dict[int, dict[str, Any]] = field(default_factory=dict)
    ranked: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    twice: int = 0  # tasks about an item that has one already

    # ── the other project ───────────────────────────────────────────────────────────────────────────

    def connect(self, number: int | None = None, title: str | None = None) -> bool:
        """Finds the project over there, or makes it; returns whether it is new.

        number      of a project that exists
        title       of a new one
        """
        self._config()  # refuses a project without classes, before anything is made
        kept = self._kept()
        found = number or kept.get("project") or self.studio.described(kept["key"])
        self.number = found or self._created(title or _title(self.project.path.stem), kept["key"])
        self._keep(kept | {"project": self.number})
        if found:
            self._adjust()
        if kept.get("sending"):
            self.sleep(SETTLE)
        self._list()
        return not found

    def _created(self, title: str, key: str) -> int:
        about = f"Filled by balent, which reads the answers. Please keep this word here: {key}"
        for _ in range(TRIES):
            try:
                return self.studio.create(title, self._config(), about)
            except Unsure as unsure:
                problem = unsure
                self.sleep(SETTLE)
                if (found := self.studio.described(key)) is not None:
                    return found
        raise problem

    def _config(self) -> str:
        return config(self.project.settings.kind, [*self.project.state.classes.names()])

    def _adjust(self) -> None:
        """Classes that are new, and the way in which tasks are ordered. What else the owner has set stays."""
        there = self.studio.project(self.number)
        wanted = [*self.project.state.classes.names()]
        given = there.get("label_config") or ""
        label = (there.get("parsed_label_config") or {}).get("label")
        if label is None and "<Choices" not in given:
            self.studio.change(self.number, label_config=self._config())
        elif new := [name for name in wanted if name not in (label or {}).get("labels", ())]:
            self.studio.change(self.number, label_config=with_choices(given, new))
        if there.get("sampling") != SAMPLING:
            self.studio.change(self.number, sampling=SAMPLING)

    def _kept(self) -> dict[str, Any]:
        """What we know of this server: a key, written before anything is made there, and the project's number."""
        url, path = self.studio.server.url, self.project.path / NAME
        found = json.loads(path.read_bytes()) if path.exists() else {}
        if url not in found:
            found[url] = {"key": f"balent-{secrets.token_hex(8)}"}
            write(path, json.dumps(found).encode())
        kept: dict[str, Any] = found[url]
        return kept

    def _keep(self, kept: dict[str, Any]) -> None:
        path = self.project.path / NAME
        found = json.loads(path.read_bytes())
        if found.get(self.studio.server.url) != kept:
            write(path, json.dumps(found | {self.studio.server.url: kept}).encode())

    def _list(self) -> None:
        """Which items have tasks, and which of these stand in the order."""
        version = self.studio.project(self.number).get("model_version")
        self.tasks, self.sent, self.ranked, self.twice = {}, {}, set(), 0
        for task in self.studio.tasks(self.number):
            number = self._item(task)
            if number is None:
                continue
            if number in self.tasks:
                self.twice += 1
                continue
            self.tasks[number], self.sent[number] = int(task["id"]), task["data"]
            given = [line for line in task.get("predictions") or () if isinstance(line, dict)]
            if version and any(line.get("model_version") == version for line in given):
                self.ranked.add(number)

    def _item(self, task: Task) -> int | None:
        """The item that a task is about."""
        id, print = named(task.get("data"))
        return number_of(self.project, id, print) if id else None

    # ── in ──────────────────────────────────────────────────────────────────────────────────────────

    def pull(self) -> Heard:
        """Records what is new over there."""
        self.project.look()
        server, people = f"{self.studio.server.url} {self.number}", self.studio.people()
        tasks = [task for task in self.studio.tasks(self.number, answered=True) if task.get("annotations")]
        self.answered = {number for task in tasks if (number := self._item(task)) is not None}
        return hearing.tell(self.project, server, tasks, people)

    # ── out ─────────────────────────────────────────────────────────────────────────────────────────

    def push(self, progress: Progress | None = None) -> bool:
        """Asks for more where half of a round is answered, makes tasks of items, and ranks those that are asked.

        Returns whether the order is another one than before.
        """
        self._ask(progress)
        wanted = self._open() if self.only_asked else self._single()
        for _ in range(TRIES):
            if missing := [number for number in wanted if number not in self.tasks]:
                self._add(missing)
        if missing:
            raise Away(f"{self.studio.server.url} did not make {len(missing)} tasks; run the same command again")
        self._update()
        return self._rank()

    def _ask(self, progress: Progress | None) -> None:
        open = len(self._open())
        if open <= self.k // 2 and self.is_more():
            self.project.ask(self.k - open, progress=progress)
        else:
            self.project.refresh()

    def is_more(self) -> bool:
        """Is there an item that nobody has labelled, skipped or been asked?"""
        state = self.project.state
        closed = {*state.last, *state.skipped, *state.pending}
        prints = {self.project.items[number].fingerprint for number in closed}
        keep = self.project.settings.duplicates == "keep"
        bad = self.project.unreadable()
        return any(
            number not in closed
            and (keep or self.project.items[number].fingerprint not in prints)
            and self.project.items[number].id not in bad
            for number in self._single()
        )

    def _single(self) -> list[int]:
        """Present items; of equal ones the first."""
        items = self.project.items
        others = items.duplicates() if self.project.settings.duplicates == "once" else {}
        return [number for number in items.present() if number not in others]

    def _open(self) -> list[int]:
        """Questions that wait for an answer, in their order."""
        return [number for number in self.project.state.pending if not self.project.items[number].gone]

    def _add(self, missing: Sequence[int]) -> None:
        """Makes tasks. Where it is not known whether they were made, what is there is listed again."""
        self._keep(self._kept() | {"sending": True})
        made = Tasks(self.project, self.place)
        for numbers in _blocks(missing):
            data = [made.data(number) for number in numbers]
            try:
                ids = self.studio.add(self.number, data)
            except Unsure:
                self.sleep(SETTLE)
                ids = []
            if not ids:
                return self._list()
            self.tasks |= zip(numbers, ids, strict=True)
            self.sent |= zip(numbers, data, strict=True)
        return self._keep(self._kept() | {"sending": False})

    def _update(self) -> None:
        """What the last question says of an item, and where its image is now, in its task."""
        made, asked = Tasks(self.project, self.place), {*self._open()}
        images = self.project.settings.kind == "images"
        for number in [n for n in self.tasks if n in asked or (images and self._has_moved(n))]:
            if self.project.items[number].gone:
                continue
            data = made.data(number)
            before = self.sent[number]
            if any(before.get(name) != value for name, value in data.items()):
                self.studio.change_task(self.tasks[number], before | data)
                self.sent[number] = before | data

    def _has_moved(self, number: int) -> bool:
        return not self.project.items[number].gone and self.sent[number].get("image") != self.place(number)

    def _rank(self) -> bool:
        """Sends the order, unless it is the one over there: then all open questions are ranked, and no others wait."""
        open = [number for number in self._open() if number in self.tasks]
        elsewhere = self.ranked - {*open} - self.answered  # answered in balent: nobody is to answer them again
        if not open or (self.ranked >= {*open} and not elsewhere):
            return False
        ranked = [(self.tasks[number], self._guess(number)) for number in open]
        for _ in range(TRIES):
            try:
                self.studio.rank(
                    self.number, f"balent round {self.project.state.rounds} {secrets.token_hex(3)}", ranked
                )
            except Unsure as unsure:
                problem: Exception = unsure
            else:
                self.ranked = {*open}
                return True
        raise problem

    def _guess(self, number: int) -> str | None:
        """What the model guessed when it asked; nothing for random checks, and for classes that are gone."""
        guess = self.project.state.asked[number].guess
        return guess if guess in self.project.state.classes.names() else None

    # ── both ────────────────────────────────────────────────────────────────────────────────────────

    def sync(self, progress: Progress | None = None) -> tuple[Heard, bool]:
        """One pull and one push. Tasks that were removed over there in the meantime are made again."""
        heard = self.pull()
        try:
            return heard, self.push(progress)
        except Denied as denied:
            if denied.status not in (400, 404):
                raise
            self._list()
            return heard, self.push(progress)


def _title(name: str) -> str:
    """One that is neither too short nor too long."""
    return (name if len(name) >= SHORTEST else f"balent {name}")[:LONGEST]


def _blocks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), BLOCK):
        yield numbers[first : first + BLOCK]
