"""A desk of the labelling page for tests: small projects, a clock that stands still, a trainer that talks to nobody."""

import itertools
import json

from balent import Project
from balent.apps.label.desk import Desk
from balent.apps.label.people import People
from balent.apps.label.said import said
from balent.apps.label.server import application
from balent.project import questions
from balent.project.questions import Proposal
from helpers.labelling import CLASSES, clusters

PORT = 8765
HOME = f"http://127.0.0.1:{PORT}"
_ids = itertools.count(1)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


def of_rows(folder, items=60, **settings):
    """A project of features."""
    clusters(folder, items)
    settings = {"classes": CLASSES, **settings}
    return Project.create(folder / "rows.balent", folder / "rows.npy", ids=folder / "ids.txt", **settings)


def of_texts(folder, texts, **settings):
    """A project of texts."""
    (folder / "texts.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts), encoding="utf-8")
    settings = {"classes": CLASSES, **settings}
    return Project.create(folder / "texts.balent", folder / "texts.jsonl", text="body", **settings)


def of_table(folder, rows, **settings):
    """A project of rows with named columns."""
    (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = {"classes": CLASSES, **settings}
    return Project.create(folder / "table.balent", folder / "table.jsonl", **settings)


def desk_of(project, clock=None, **more):
    """A desk without a worker."""
    return Desk(project, clock=clock or Clock(), **more)


def open_again(desk):
    """What a server finds that is started after this one was killed."""
    return Desk(Project(desk.project.path), clock=desk.clock)


def proposal(number, audit=False, guess=None):
    """A line of the worker about an item."""
    probability = None if guess is None else 0.5
    return {"number": number, "score": 0.25, "audit": audit, "guess": guess, "probability": probability, "why": "it is"}


def propose(desk, numbers, *, checks=(), guess=None, tail=(), enough=True, round=1):
    """The worker proposes items; those in `checks` are random checks."""

    def lines(some):
        return [proposal(n, n in checks, None if n in checks else guess) for n in some]

    desk.heard({"said": "proposals", "proposals": lines(numbers), "round": round, "marks": {}})
    desk.heard({"said": "tail", "proposals": lines(tail), "round": round, "marks": {}, "enough": enough})


def asked_elsewhere(desk, numbers):
    """Another process asks items, as `balent ask` does; without its model, which takes seconds."""
    other = Project(desk.project.path)
    columns = questions.columns([Proposal(number) for number in numbers])
    other.happen(lambda: other.event("ask", [other.items[number].id for number in numbers], None, **columns))


def new_id():
    return f"event-{next(_ids):06}"


def event(name, item, *, tab="one", **more):
    """The body of an event, about an item or several."""
    about = {"items": item} if isinstance(item, list) else {"item": item}
    return {"id": new_id(), "event": name, "tab": tab, **about, **more}


def say(desk, name, item, who=None, **more):
    """A person does something."""
    desk.answer(said(event(name, item, **more)), who)


def label(desk, item, name="cat", who=None, **more):
    say(desk, "label", item, who, label=name, **more)


def shown(desk, tab="one", who=None, n=8):
    """Numbers of the items that a tab gets, in their order."""
    return [item["item"] for item in desk.next(tab, who, n)["items"]]


def journal(project):
    """All events that are on disk."""
    return [json.loads(line) for line in (project.path / "journal.ndjson").read_text(encoding="utf-8").splitlines()]


def named(project, name):
    """Ids of the items in events of a name, in their order."""
    return [id for line in journal(project) if line["event"] == name for id in line["ids"]]


def reserve(desk):
    """Items that only random checks ask."""
    return desk.lending.reserve()


def pool(desk):
    """Items that a strategy may pick."""
    return [n for n in desk.project.items.present() if n not in set(desk.lending.reserve())]


def served(desk, names=(), **more):
    """The application over a desk, and the people who may use it."""
    people = People(desk.project.path, names)
    return application(desk, people, PORT, **more), people


def token_of(people, who=None):
    return next(token for token, name in people.tokens.items() if name == who)


def client_of(desk, who=None, names=(), *, cookie=True, **more):
    """A browser that has opened its link."""
    from starlette.testclient import TestClient

    app, people = served(desk, names, **more)
    cookies = {f"balent-{PORT}": token_of(people, who)} if cookie else None
    return TestClient(app, base_url=HOME, cookies=cookies, follow_redirects=False, raise_server_exceptions=False)
