"""Label Studio (Community 1.23) by plain REST: the calls that a connection needs, each a method.

The order of tasks is that of "Uncertainty sampling": among tasks with a prediction of the project's current model
version, the one with the lowest score comes first. Scores above 1 are dropped without a word, so a rank is sent as
rank / 10⁹. The version counts only after a PATCH of the project: without it the order is random, also without a word.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from balent.apps.connect.http_json import Denied, Server
from balent.project.exports import choices

Task = dict[str, Any]
PAGE = 100  # tasks
SAMPLING = "Uncertainty sampling"
RANK = 1e-9  # of a score
ANSWERED = {
    "filters": {
        "conjunction": "or",
        "items": [
            {"filter": f"filter:tasks:{name}_annotations", "operator": "greater", "type": "Number", "value": 0}
            for name in ("total", "cancelled")
        ],
    }
}


class LabelStudio:
    """A Label Studio over its server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    # ── projects ────────────────────────────────────────────────────────────────────────────────────

    def project(self, number: int) -> dict[str, Any]:
        try:
            return _object(self.server.ask("GET", f"/api/projects/{number}"))
        except Denied as denied:
            if denied.status != 404:
                raise
            raise ValueError(f"Label Studio at {self.server.url} has no project {number}") from None

    def described(self, word: str) -> int | None:
        """The project whose description has a word; None if there is none."""
        page = 1
        while True:
            found = _object(self.server.ask("GET", f"/api/projects/?{urlencode({'page': page, 'page_size': PAGE})}"))
            for project in found.get("results", ()):
                if word in str(project.get("description")):
                    return int(project["id"])
            if not found.get("next"):
                return None
            page += 1

    def create(self, title: str, config: str, description: str) -> int:
        about = {"title": title, "label_config": config, "description": description, "sampling": SAMPLING}
        return int(_object(self.server.ask("POST", "/api/projects/", about, once=True))["id"])

    def change(self, number: int, **fields: object) -> None:
        """Settings of a project, such as label_config and model_version."""
        self.server.ask("PATCH", f"/api/projects/{number}", fields)

    # ── tasks ───────────────────────────────────────────────────────────────────────────────────────

    def tasks(self, number: int, *, answered: bool = False) -> Iterator[Task]:
        """The tasks of a project with their annotations, a page at a time.

        answered    only those that somebody has labelled or skipped, as far as the server can tell
        """
        query = {"project": number, "fields": "all", "page_size": PAGE}
        query |= {"query": json.dumps(ANSWERED)} if answered else {}
        page, seen = 1, 0
        while True:
            found = self._page(urlencode(query | {"page": page}))
            tasks = [task for task in found.get("tasks", ()) if isinstance(task, dict)]
            yield from tasks
            page, seen = page + 1, seen + len(tasks)
            if not tasks or seen >= int(found.get("total", seen)):
                return

    def _page(self, query: str) -> dict[str, Any]:
        """The page after the last one is answered with 404."""
        try:
            return _object(self.server.ask("GET", f"/api/tasks?{query}"))
        except Denied as denied:
            if denied.status != 404:
                raise
            return {}

    def add(self, number: int, data: Sequence[Mapping[str, Any]]) -> list[int]:
        """Makes tasks; their numbers in the same order. Raises Unsure if it is not known whether they were made."""
        place = f"/api/projects/{number}/import?return_task_ids=1"
        found = _object(self.server.ask("POST", place, [{"data": task} for task in data], once=True))
        ids = found.get("task_ids")
        return [int(id) for id in ids] if isinstance(ids, list) and len(ids) == len(data) else []

    def change_task(self, task: int, data: Mapping[str, Any]) -> None:
        self.server.ask("PATCH", f"/api/tasks/{task}/", {"data": data})

    # ── the order ───────────────────────────────────────────────────────────────────────────────────

    def rank(self, number: int, version: str, ranked: Sequence[tuple[int, str | None]]) -> None:
        """Makes these tasks come first, in this order, with what the model guesses of each.

        version     a name that was not used before: predictions that were sent twice would stay
        """
        lines = [
            {"task": task, "score": rank * RANK, "model_version": version, "result": choices(guess)}
            for rank, (task, guess) in enumerate(ranked, 1)
        ]
        self.server.ask("POST", f"/api/projects/{number}/import/predictions", lines, once=True)
        self.change(number, model_version=version)

    # ── people ──────────────────────────────────────────────────────────────────────────────────────

    def people(self) -> dict[int, str]:
        """Names of users: as they call themselves, or their address where two have one name."""
        found = self.server.ask("GET", "/api/users/")
        users = found.get("results", []) if isinstance(found, dict) else found
        known = {int(user["id"]): user for user in users or () if isinstance(user, dict) and "id" in user}
        names = {id: _name(user) for id, user in known.items()}
        given = [*names.values()]
        return {id: name if given.count(name) == 1 else address(known[id]) or name for id, name in names.items()}


def _name(user: Mapping[str, Any]) -> str:
    full = " ".join(str(user.get(part) or "").strip() for part in ("first_name", "last_name")).strip()
    return full or str(user.get("username") or "").strip() or address(user) or f"user {user['id']}"


def address(user: Mapping[str, Any]) -> str:
    return str(user.get("email") or "").strip()


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"Label Studio was to answer with an object, but did with {str(found)[:80]!r}")
    return found
