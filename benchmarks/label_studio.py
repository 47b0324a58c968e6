"""Does `balent connect labelstudio` hold against a real Label Studio, while it is killed again and again?

python benchmarks/label_studio.py --url http://127.0.0.1:8080 --token-file token.txt

Thirty texts, two rounds of fifteen. Tasks are taken in the order in which Label Studio gives them, and labelled
through its API. Meanwhile `balent connect --watch` is killed at random moments and started again. Checked at the end:
the order was that of our questions; thirty annotations arrived, each once; random checks had no guess; a skip, an
edited annotation and the annotator's name arrived. --shot FILE.png, with --user and --password, takes a picture.

Starting a Label Studio for it, in an environment of its own:

    python -m venv ls && ls/bin/pip install 'label-studio==1.23.*'
    COLLECT_ANALYTICS=false LATEST_VERSION_CHECK=false SENTRY_DSN= ls/bin/label-studio start --no-browser \\
        --internal-host 127.0.0.1 --username ann@example.org --password 'Secret-1234'
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from balent import Project
from balent.apps.connect.http_json import Server
from balent.apps.connect.labelstudio import LabelStudio
from balent.apps.connect.secret_token import token
from balent.project.exports import choices

ITEMS, ROUND = 30, 15
WORDS = {
    "billing": ("invoice", "refund", "card", "receipt", "charged"),
    "delivery": ("parcel", "courier", "late", "address", "damaged"),
}
FILL = ("please", "again", "the", "my", "since Monday", "help")
LIFE = (0.5, 6.0)  # seconds until the next kill: in imports, in fits, between


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--url", default="http://127.0.0.1:8080")
    asked.add_argument("--token-file", type=Path, required=True)
    asked.add_argument("--shot", type=Path, default=None, help="a picture of the page, with --user and --password")
    asked.add_argument("--user", default="")
    asked.add_argument("--password", default="")
    given = asked.parse_args()
    studio = LabelStudio(Server(given.url, token(given.token_file)))
    with tempfile.TemporaryDirectory() as home:
        truth = tickets(Path(home))
        project = Project.create(
            Path(home) / "tickets.balent", Path(home) / "tickets.jsonl", text="body", id="ticket", classes=[*WORDS]
        )
        connection = Connection(project.path, given.url, given.token_file.resolve())
        connection.once()
        number = json.loads((project.path / "labelstudio.json").read_bytes())[studio.server.url]["project"]
        seen = [seen_in_order(connection, studio, number, truth, project)]
        if given.shot:
            shot(given.url, number, given.user, given.password, given.shot)
        seen += [seen_in_order(connection, studio, number, truth, project)]
        check(connection, studio, number, truth, project, seen)
    print(f"{connection.kills} kills, {connection.starts} starts")


def tickets(home: Path) -> dict[str, str]:
    """Thirty texts in a file; the class of each."""
    rng = random.Random(0)
    truth = {f"T-{i:03d}": [*WORDS][i % 2] for i in range(ITEMS)}
    lines = [
        {"ticket": id, "body": " ".join(rng.choice(WORDS[name] + FILL) for _ in range(12))}
        for id, name in truth.items()
    ]
    (home / "tickets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return truth


class Connection:
    """`balent connect`, in a process that can be killed."""

    def __init__(self, folder: Path, url: str, token_file: Path) -> None:
        program = [
            sys.executable,
            "-c",
            "from balent.apps.cli import app; app()",
            "connect",
            "labelstudio",
            str(folder),
        ]
        self.words = [*program, "--url", url, "--token-file", str(token_file), "-k", str(ROUND)]
        self.env = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.random, self.kills, self.starts, self.said = random.Random(1), 0, 0, ""

    def once(self) -> None:
        """Reads and sends once. Before that it is killed six times, each time a little later."""
        for life in (1.2, 1.6, 2.0, 2.4, 2.8, 3.2):
            self.killed(life)
        self.finished()

    def finished(self) -> None:
        """One run to its end."""
        self.starts += 1
        done = subprocess.run(self.words, env=self.env, capture_output=True, text=True)
        self.said += done.stdout + done.stderr
        assert done.returncode == 0, done.stderr

    def killed(self, life: float | None = None) -> None:
        """One run with --watch, killed after some seconds."""
        self.starts += 1
        watching = subprocess.Popen(
            [*self.words, "--watch", "--every", "0.2"],
            env=self.env,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(self.random.uniform(*LIFE) if life is None else life)
        self.kills += watching.poll() is None
        watching.send_signal(signal.SIGKILL)
        self.said += "".join(watching.communicate())


def seen_in_order(
    connection: Connection, studio: LabelStudio, number: int, truth: dict[str, str], project: Project
) -> tuple[list[str], list[str]]:
    """Our open questions, and the tasks of a round as Label Studio gives them; each is labelled, with kills between."""
    project.look()
    wanted, seen = [item.id for item in project.pending()], list[str]()
    for place in range(ROUND):
        task = studio.server.ask("GET", f"/api/projects/{number}/next")
        seen.append(task["data"]["id"])
        check_guess(project, task)
        annotate(studio, task["id"], truth[seen[-1]])
        if place % 4 == 1:
            connection.killed()
            if place == 1:  # from here on the next round may be asked, and stands behind this one
                project.look()
    connection.finished()
    return wanted, seen


def annotate(studio: LabelStudio, task: int, label: str | None) -> dict[str, Any]:
    about = {"result": choices(label), "was_cancelled": label is None, "lead_time": 2.0}
    return studio.server.ask("POST", f"/api/tasks/{task}/annotations/", about)


def check_guess(project: Project, task: dict[str, Any]) -> None:
    """Random checks have no guess."""
    project.look()
    state = project.state
    question = state.asked[project.id_number(task["data"]["id"])]
    version = studio_version(task)
    assert not question.audit or all(line["result"] == [] for line in version), task


def studio_version(task: dict[str, Any]) -> list[dict[str, Any]]:
    return [line for line in task["predictions"] if line["model_version"].startswith("balent")]


def check(
    connection: Connection,
    studio: LabelStudio,
    number: int,
    truth: dict[str, str],
    project: Project,
    rounds: list[tuple[list[str], list[str]]],
) -> None:
    for place, (wanted, seen) in enumerate(rounds, 1):
        same(f"round {place}: the order of tasks is that of our questions", seen, wanted[: len(seen)])
    tasks = [*studio.tasks(number)]
    same("tasks, each item once", sorted(task["data"]["id"] for task in tasks), sorted(truth))
    same("annotations over there", sum(len(task["annotations"]) for task in tasks), ITEMS)
    same("labels here", labels(project), truth)
    same("label events in the journal", len(events(project, "label")), ITEMS)
    same("projects over there with our key", found(studio, project, number), number)
    name = next(iter(studio.people().values()))
    same("who", {event["who"] for event in events(project, "label")}, {name})
    first = tasks[0]
    place = f"/api/annotations/{first['annotations'][0]['id']}/"
    other = next(label for label in WORDS if label != truth[first["data"]["id"]])
    studio.server.ask("PATCH", place, {"result": choices(other)})
    connection.finished()
    same("an edited annotation", labels(project), truth | {first["data"]["id"]: other})
    studio.server.ask(
        "PATCH", f"/api/annotations/{tasks[1]['annotations'][0]['id']}/", {"result": [], "was_cancelled": True}
    )
    connection.finished()
    same("a skip", tasks[1]["data"]["id"] in labels(project), False)
    connection.finished()
    same("events after one more run", len(events(project, "label")) + len(events(project, "skip")), ITEMS + 2)
    same("the token in the output", token_of(connection) in connection.said, False)


def token_of(connection: Connection) -> str:
    return Path(connection.words[connection.words.index("--token-file") + 1]).read_text().strip()


def labels(project: Project) -> dict[str, str]:
    """As another process reads them."""
    state = Project(project.path).state
    return {project.items[n].id: state.classes.name(answer.label) for n, answer in state.last.items()}


def events(project: Project, name: str) -> list[dict[str, Any]]:
    lines = (project.path / "journal.ndjson").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def found(studio: LabelStudio, project: Project, number: int) -> int | None:
    """The first project with our key: it was made once, if it is ours and no other has the key."""
    key = json.loads((project.path / "labelstudio.json").read_bytes())[studio.server.url]["key"]
    everything = studio.server.ask("GET", "/api/projects/?page_size=1000")["results"]
    assert sum(key in there["description"] for there in everything) == 1
    return studio.described(key)


def same(what: str, is_: object, expected: object) -> None:
    print(
        f"{'right' if is_ == expected else 'WRONG'}  {what}" + ("" if is_ == expected else f": {is_} is not {expected}")
    )
    if is_ != expected:
        raise SystemExit(1)


def shot(url: str, number: int, user: str, password: str, place: Path) -> None:
    """A picture of a task, by chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1200, "height": 460}).new_page()
        page.goto(f"{url}/user/login")
        page.fill("input[name=email]", user)
        page.fill("input[name=password]", password)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{url}/")
        page.goto(f"{url}/projects/{number}/data")
        page.get_by_text("Label All Tasks").first.click()  # the address with ?labeling=1 has another order
        page.get_by_text("Submit").first.wait_for(timeout=120_000)
        page.wait_for_timeout(2000)
        page.screenshot(path=place)
        browser.close()


if __name__ == "__main__":
    main()
