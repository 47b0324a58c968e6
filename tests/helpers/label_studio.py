"""A stand-in for Label Studio 1.23: the calls that a connection needs, with the traps that the real one has.

Access tokens end; a second token is refused (409); titles have three characters or more; predictions with a score
above 1 are dropped without a word; tasks come in random order unless the project's model version has predictions; a
page after the last one is 404. `trouble` lets it fail before or after it has done what was asked.
"""

import html
import json
import random
import re
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, urlsplit

PERSONAL, LEGACY = "aaaa.bbbb.cccc", "0123456789abcdef0123456789abcdef01234567"
USERS = {
    1: {"id": 1, "first_name": "Ann", "last_name": "Lee", "username": "ann", "email": "ann@example.org"},
    2: {"id": 2, "first_name": "", "last_name": "", "username": "", "email": "bob@example.org"},
    3: {"id": 3, "first_name": "Eve", "last_name": "", "username": "", "email": "eve1@example.org"},
    4: {"id": 4, "first_name": "Eve", "last_name": "", "username": "", "email": "eve2@example.org"},
}


class Refusal(Exception):
    def __init__(self, status, **about):
        self.status, self.about = status, {"status_code": status, **about}


class Stub:
    """Its state outlives its server, as a database does."""

    def __init__(self, lives=10**9):
        self.lives = lives  # requests that an access token is good for
        self.projects, self.tasks, self.predictions, self.annotations = {}, {}, [], {}
        self.made, self.access, self.issued = False, {}, count()
        self.ids, self.requests, self.random = count(1), [], random.Random(0)
        self.lock = threading.RLock()
        self.trouble = lambda method, path: None  # or "429", "502", "503", "moved", or "lost": done, but not answered
        self.clock = datetime(2026, 11, 19, 8, tzinfo=UTC)

    # ── people ──────────────────────────────────────────────────────────────────────────────────────

    def now(self):
        self.clock += timedelta(seconds=1)
        return self.clock.isoformat().replace("+00:00", "Z")

    def check(self, header):
        kind, _, secret = (header or "").partition(" ")
        if kind == "Token" and secret == LEGACY:
            return
        left = self.access.get(secret, 0) if kind == "Bearer" else 0
        if not left:
            raise Refusal(401, detail=f"Authentication credentials were not provided: {header}")
        self.access[secret] = left - 1

    def post_token(self, body, query):
        if self.made:
            raise Refusal(409, detail="You already have a valid token.")
        self.made = True
        return 201, {"token": PERSONAL}

    def refresh(self, body, query):
        if body.get("refresh") != PERSONAL:
            raise Refusal(401, detail=f"Token is invalid: {body.get('refresh')}")
        self.access[found := f"access{next(self.issued)}.x.y"] = self.lives
        return 200, {"access": found}

    def users(self, body, query):
        return 200, [*USERS.values()]

    # ── projects ────────────────────────────────────────────────────────────────────────────────────

    def list_projects(self, body, query):
        page, size = int(query.get("page", 1)), int(query.get("page_size", 30))
        some = [*self.projects.values()]
        more = len(some) > page * size
        return 200, {"count": len(some), "next": "more" if more else None, "results": some[(page - 1) * size :][:size]}

    def create(self, body, query):
        if len(body["title"]) < 3:
            raise Refusal(400, validation_errors={"title": ["Ensure this field has at least 3 characters."]})
        number = len(self.projects) + 1
        self.projects[number] = {"id": number, "model_version": "", "description": "", "sampling": "Sequential", **body}
        return 201, self.project(None, query, number)[1]

    def project(self, body, query, number):
        if number not in self.projects:
            raise Refusal(404, detail="No Project matches the given query.")
        found = self.projects[number]
        plain = [html.unescape(name) for name in re.findall(r'<Choice value="([^"]*)"', found["label_config"])]
        label = (
            {"label": {"type": "Choices", "labels": plain}} if '<Choices name="label"' in found["label_config"] else {}
        )
        return 200, found | {"parsed_label_config": label}

    def change(self, body, query, number):
        known = {p["model_version"] for p in self.predictions if self.tasks[p["task"]]["project"] == number}
        if "model_version" in body and body["model_version"] not in known:
            raise Refusal(400, validation_errors={"model_version": ["Model version doesn't exist"]})
        self.projects[number] |= body
        return self.project(None, query, number)

    # ── tasks ───────────────────────────────────────────────────────────────────────────────────────

    def add(self, body, query, number):
        ids = []
        for task in body:
            id = next(self.ids)
            self.tasks[id] = {"id": id, "project": number, "data": task["data"]}
            ids.append(id)
        return 201, {"task_count": len(ids), **({"task_ids": ids} if "return_task_ids" in query else {})}

    def list_tasks(self, body, query):
        size, page = int(query.get("page_size", 30)), int(query.get("page", 1))
        some = [t for t in self.tasks.values() if t["project"] == int(query["project"])]
        if "query" in query:
            some = [t for t in some if self.of(t["id"])]
        shown = some[(page - 1) * size :][:size]
        if not shown and page > 1:
            raise Refusal(404, detail="Invalid page.")
        return 200, {"total": len(some), "tasks": [self.whole(task) for task in shown]}

    def whole(self, task):
        given = [p for p in self.predictions if p["task"] == task["id"]]
        return task | {"annotations": self.of(task["id"]), "predictions": given}

    def of(self, task):
        return [a for a in self.annotations.values() if a["task"] == task]

    def change_task(self, body, query, id):
        if id not in self.tasks:
            raise Refusal(404, detail="No Task matches the given query.")
        self.tasks[id] |= body
        return 200, self.tasks[id]

    def predict(self, body, query, number):
        if any(line["task"] not in self.tasks for line in body):
            raise Refusal(400, validation_errors={"non_field_errors": ["task ID couldn't be retrieved"]})
        good = [line for line in body if 0 <= line["score"] <= 1]
        self.predictions += good
        return 201, {"created": len(good)}

    def next(self, body, query, number):
        open = [t for t in self.tasks.values() if t["project"] == number and not self.of(t["id"])]
        if not open:
            raise Refusal(404, detail="Not found")
        version, ids = self.projects[number]["model_version"], {t["id"] for t in open}
        ranked = [p for p in self.predictions if p["model_version"] == version and p["task"] in ids]
        if ranked:
            return 200, self.whole(self.tasks[min(ranked, key=lambda p: p["score"])["task"]])
        return 200, self.whole(self.random.choice(open))

    # ── what annotators do ──────────────────────────────────────────────────────────────────────────

    def annotate(self, task, label=None, who=1, seconds=2.5, skipped=False, as_object=False):
        value = {"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [label]}}
        id, when = next(self.ids), self.now()
        self.annotations[id] = {
            "id": id,
            "task": task,
            "completed_by": USERS[who] if as_object else who,
            "result": [] if label is None else [value],
            "was_cancelled": skipped,
            "created_at": when,
            "updated_at": when,
            "lead_time": seconds,
        }
        return id

    def edit(self, id, label):
        self.annotations[id]["result"][0]["value"]["choices"] = [label]
        self.annotations[id]["updated_at"] = self.now()

    def task_of(self, id):
        return next(t["id"] for t in self.tasks.values() if t["data"]["id"] == id)

    def shown(self, number=1):
        """Our ids in the order in which one annotator who skips everything sees them; nothing stays of it."""
        found, before = [], dict(self.annotations)
        for _ in [t for t in self.tasks.values() if not self.of(t["id"])]:
            task = self.next(None, {}, number)[1]
            found.append(task["data"]["id"])
            self.annotate(task["id"], skipped=True)
        self.annotations = before
        return found


ROUTES = [
    ("POST", r"/api/token/", "post_token"),
    ("POST", r"/api/token/refresh/", "refresh"),
    ("GET", r"/api/users/", "users"),
    ("GET", r"/api/projects/", "list_projects"),
    ("POST", r"/api/projects/", "create"),
    ("GET", r"/api/projects/(\d+)", "project"),
    ("PATCH", r"/api/projects/(\d+)", "change"),
    ("POST", r"/api/projects/(\d+)/import", "add"),
    ("POST", r"/api/projects/(\d+)/import/predictions", "predict"),
    ("GET", r"/api/projects/(\d+)/next", "next"),
    ("GET", r"/api/tasks", "list_tasks"),
    ("PATCH", r"/api/tasks/(\d+)/", "change_task"),
]


class Handler(BaseHTTPRequestHandler):
    stub: Stub
    timeout = 10

    def log_message(self, *_):
        pass

    def _do(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        parts = urlsplit(self.path)
        with self.stub.lock:
            self.stub.requests.append((self.command, self.path))
            trouble = self.stub.trouble(self.command, parts.path)
            if trouble in ("429", "502", "503"):
                return self._send(int(trouble), {"detail": "later"}, {"Retry-After": "1"} if trouble == "429" else {})
            status, answer = self._answer(parts, body)
            if trouble == "lost":
                return self.connection.close()
            if trouble == "moved":
                return self._send(302, {}, {"Location": "http://127.0.0.1:1/elsewhere"})
            return self._send(status, answer)

    do_GET = do_POST = do_PATCH = _do

    def _answer(self, parts, body):
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        for method, path, name in ROUTES:
            found = re.fullmatch(path, parts.path)
            if found and method == self.command:
                try:
                    if name != "refresh":
                        self.stub.check(self.headers.get("Authorization"))
                    return getattr(self.stub, name)(body, query, *map(int, found.groups()))
                except Refusal as refusal:
                    return refusal.status, refusal.about
        return 404, {"detail": "Not found."}

    def _send(self, status, answer, headers=()):
        content = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def served(stub, port=0):
    """The address of a server over a stub, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (Handler,), {"stub": stub}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
