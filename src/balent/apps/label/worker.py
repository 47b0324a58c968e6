"""The worker: a process beside the server that computes features, trains, and proposes what to ask next.

    python -m balent.apps.label.worker PROJECT        JSON lines in on standard input, out on standard output

It reads labels from the project's journal, like every other process, and writes none. It runs at low priority with one
thread of torch, so that the page stays quick, and ends when its input ends.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from balent.apps.label.link import HOPELESS
from balent.apps.label.queue import TAIL, K
from balent.apps.visible import visible
from balent.project import rounds
from balent.project.asking import View
from balent.project.features import HasWords
from balent.project.project import Project
from balent.project.questions import Proposal

Message = dict[str, Any]
Tell = Callable[[Message], None]
GRID = 5000  # items that the grid chooses from, at most
MARKS, WEAK = 6, 0.3  # words that are marked in a text, at most; they weigh more than this share of the first
NICE = 5
FEW, LISTED = 3, 50  # items that are left out: named on the terminal, and on the page


class Worker:
    """What the server asks for, one thing after the other."""

    def __init__(self, project: Project, tell: Tell) -> None:
        self.project, self.tell = project, tell
        self.view: View | None = None

    def prepare(self) -> None:
        """Looks for new items, computes features that are missing, and names on the terminal what is left out."""
        self.project.refresh()
        self.project.compute_features(progress=lambda done, of: self.tell({"said": "features", "done": done, "of": of}))
        left = self.left_out()
        more = [f"{len(left) - FEW} more are left out; the view Progress lists them"] if len(left) > FEW else []
        for line in [*(f"{id} is left out: {reason}" for id, reason in [*left.items()][:FEW]), *more]:
            print(visible(line), file=sys.stderr, flush=True)

    def left_out(self) -> dict[str, str]:
        """Links that are not followed and files that cannot be read, with the reason."""
        return {**self.project.kind.skipped, **self.project.unreadable()}

    def run(self, inbox: "SimpleQueue[Message]") -> None:
        """Serves until the process ends. Of several requests for proposals only the last one counts."""
        while True:
            requests = [inbox.get()]
            while not inbox.empty():
                requests.append(inbox.get())
            for request in requests:
                if request["wanted"] == "grid":
                    self.tell({"said": "reply", "to": request["number"], **self.grid(request)})
            wanted = [request for request in requests if request["wanted"] == "proposals"]
            if wanted:
                self.propose(wanted[-1]["shown"])
            if inbox.empty():
                self.stand()

    def propose(self, shown: list[int]) -> None:
        """The k items to ask next, then a tail, so that nobody waits while the next ones are computed."""
        self.project.look()
        self.view = view = View(self.project, shown)
        first = view.proposals(K)
        self._send("proposals", view, first)
        view.take(first)
        tail = view.proposals(TAIL)
        self._send("tail", view, tail, enough=len(first) == K)
        if view.model is not None and view.model.trained:
            rounds.note(self.project, view)
            view.keep()

    def _send(self, said: str, view: View, proposals: list[Proposal], **more: Any) -> None:
        lines = [asdict(proposal) for proposal in proposals]
        marks = {p.number: marks for p in proposals if (marks := self._marks(view, p))}
        about = {"round": self.project.state.rounds + 1, "rule": view.rule(), "marks": marks}
        self.tell({"said": said, "proposals": lines, **about, **more})

    def _marks(self, view: View, proposal: Proposal) -> list[list[int]]:
        """The words of a text that speak most for the guess: where they begin and end."""
        if proposal.guess is None or view.model is None or self.project.settings.kind != "text":
            return []
        weights = view.model.weights(view.classes.index(proposal.guess))
        maker = self.project.features.prepared()
        if weights is None or not isinstance(maker, HasWords):
            return []
        words = maker.words(self.project.kind.content(self.project.items[proposal.number].id), weights)
        least = WEAK * words[0][2] if words else 0
        return sorted([start, end] for start, end, share in words[:MARKS] if share > max(0, least))

    def grid(self, request: Message) -> Message:
        """Items that the model takes for one class, the surest first. Items of the reserve are never among them."""
        view = self.view
        trained = view is not None and view.model is not None and view.model.trained
        if view is None or request["class"] not in view.classes:
            return {"proposals": [], "more": 0, "trained": trained}
        self.project.look()
        free = view.taken_for(request["class"], GRID, {*request["shown"]})
        some = free[: request["n"]]
        return {"proposals": [asdict(p) for p in some], "more": len(free) - len(some), "trained": trained}

    def stand(self) -> None:
        """Accuracy, advice, and what is left out."""
        left = [{"id": id, "reason": reason} for id, reason in self.left_out().items()]
        about = {"counted": len(self.project.state.last), "left_out": left[:LISTED], "left_out_total": len(left)}
        standing = self.project.status() | about
        self.tell({"said": "standing", "standing": standing, "rounds": len(rounds.lines(self.project))})


def main(folder: str) -> int:
    os.nice(NICE)
    tell = _voice()
    inbox = _listening()
    try:
        worker = Worker(Project(folder, say=lambda note: tell({"said": "note", "note": str(note)})), tell)
        worker.prepare()
        worker.run(inbox)
    except (ValueError, ImportError, OSError) as error:
        print(visible(f"error: {error}"), file=sys.stderr)
        tell({"said": "stopped", "note": f"{error}. Labelling goes on with random checks"})
    return HOPELESS


def _voice() -> Tell:
    """Messages to the server. Whatever else prints goes to the terminal."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(message: Message) -> None:
        with lock:
            try:
                out.write(json.dumps(message) + "\n")
                out.flush()
            except BrokenPipeError:  # the server has ended: so does this process, as in _listening
                os._exit(0)

    return tell


def _listening() -> "SimpleQueue[Message]":
    """Requests of the server. When it has ended, so does this process, whatever it does."""
    inbox: SimpleQueue[Message] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            inbox.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    return inbox


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]))))
