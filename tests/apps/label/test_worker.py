"""The worker: a real process over a small project. It proposes what `balent ask` would, and outlives nothing."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import pytest
from helpers.labelling import CLASSES, clusters, pictures
from helpers.labelling_page import label, of_rows, of_texts, reserve, shown

from balent import Project
from balent.apps.label.link import HOPELESS
from balent.apps.label.serving import desk_with_worker
from balent.project.asking import View

PATIENCE = 180.0  # seconds, for a busy machine; it takes two, most of them to import torch


class Worker:
    """The process, spoken to through its pipes."""

    def __init__(self, folder, **environment):
        command = [sys.executable, "-P", "-m", "balent.apps.label.worker", str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=os.environ | environment | {"OMP_NUM_THREADS": "1"}, **pipes)
        self.lines = queue.SimpleQueue()
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, said):
        """The next message of a kind."""
        while (message := self.lines.get(timeout=PATIENCE))["said"] != said:
            pass
        return message

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self.listener.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


@pytest.fixture
def start():
    made = []

    def worker(folder, **environment):
        made.append(Worker(folder, **environment))
        return made[-1]

    yield worker
    for one in made:
        one.close()


def numbers(message):
    return [line["number"] for line in message["proposals"]]


def labelled(folder, items=200, labels=20, **settings):
    """A project with some labels, and the class of each item."""
    project = of_rows(folder, items, **settings)
    truth = clusters(folder, items)
    some = [project.items[n] for n in range(0, items, items // labels)][:labels]
    project.tell({item.id: truth[item.id] for item in some}, who="ann")
    return project, truth


def test_it_proposes_k_items_and_a_tail_as_ask_would_and_ends_with_its_pipe(tmp_path, start):
    project, _ = labelled(tmp_path)
    worker = start(project.path)
    worker.ask(wanted="proposals", shown=[])
    first, tail = worker.until("proposals"), worker.until("tail")
    assert (len(first["proposals"]), len(tail["proposals"]), tail["enough"]) == (20, 100, True)
    assert not {*numbers(first)} & {*numbers(tail)}
    assert not {*numbers(first), *numbers(tail)} & {*project.state.last}
    assert [line["audit"] for line in first["proposals"]] == [i % 5 == 0 for i in range(1, 21)]
    checks = [line for line in first["proposals"] + tail["proposals"] if line["audit"]]
    assert all(line["guess"] is None and line["probability"] is None for line in checks)
    guesses = [line["guess"] for line in first["proposals"] if not line["audit"]]
    assert all(guess in CLASSES for guess in guesses)
    asked = [project.id_number(item.id) for item in Project(project.path).ask(20)]
    assert asked == numbers(first)
    standing = worker.until("standing")["standing"]
    assert standing["counted"] == 20
    worker.ask(wanted="grid", number=7, **{"class": "cat"}, n=5, shown=[numbers(tail)[0]])
    reply = worker.until("reply")
    assert reply["to"] == 7
    assert all(line["guess"] == "cat" and not line["audit"] for line in reply["proposals"])
    assert not {*numbers(reply)} & {numbers(tail)[0], *asked, *project.state.last}
    assert not {*numbers(reply)} & {*View(project).reserve}
    assert os.getpriority(os.PRIO_PROCESS, worker.process.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 5
    worker.process.stdin.close()
    assert worker.process.wait(PATIENCE) == 0


def test_items_that_people_look_at_are_as_good_as_asked(tmp_path, start):
    """Other items are proposed, and the count goes on: every fifth question is a random check."""
    project, _ = labelled(tmp_path)
    project.compute_features()
    plain = [proposal.number for proposal in View(project).proposals(20)]
    worker = start(project.path)
    worker.ask(wanted="proposals", shown=plain[:8])
    found = worker.until("proposals")
    assert not {*numbers(found)} & {*plain[:8]}
    assert [i for i, line in enumerate(found["proposals"]) if line["audit"]] == [1, 6, 11, 16]


def test_links_and_files_that_cannot_be_read_are_named_on_the_terminal_and_on_the_page(tmp_path, start):
    pictures(tmp_path / "photos", [f"{i}.png" for i in range(12)], size=16)
    (tmp_path / "photos/broken.png").write_text("not a picture")
    (tmp_path / "photos/passwords.png").symlink_to("/etc/passwd")
    project = Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=CLASSES)
    worker = start(project.path)
    worker.ask(wanted="proposals", shown=[])
    standing = worker.until("standing")["standing"]
    assert {line["id"]: line["reason"] for line in standing["left_out"]} == {
        "broken.png": "not an image",
        "passwords.png": "a link; --follow-links includes it",
    }
    assert standing["left_out_total"] == 2
    worker.process.stdin.close()
    said = worker.process.stderr.read().decode()
    assert "passwords.png is left out: a link; --follow-links includes it" in said
    assert "broken.png is left out: not an image" in said


def test_a_file_cannot_write_to_the_terminal_by_its_name(tmp_path, start):
    """Escape sequences in the name of a damaged image were obeyed by the terminal, and bidi marks turned its line."""
    pictures(tmp_path / "photos", [f"{i}.png" for i in range(12)], size=16)
    (tmp_path / "photos/\x1b[2J\u202egnp.png").write_text("not a picture")
    worker = start(Project.create(tmp_path / "p.balent", tmp_path / "photos", classes=CLASSES).path)
    worker.until("features")
    worker.ask(wanted="proposals", shown=[])
    worker.until("standing")
    worker.process.stdin.close()
    said = worker.process.stderr.read().decode()
    assert "␛[2J�gnp.png is left out: not an image" in said
    assert "\x1b" not in said


def test_a_worker_whose_server_was_killed_says_nothing(tmp_path):
    """It printed a traceback into the terminal if it had something to say at that moment."""
    command = [sys.executable, "-P", "-m", "balent.apps.label.worker", str(tmp_path / "missing.balent")]
    read, write = os.pipe()
    os.close(read)  # nobody will read what it says
    worker = subprocess.run(command, stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE, timeout=PATIENCE)
    os.close(write)
    assert b"Traceback" not in worker.stderr


def test_an_error_that_would_come_again_is_said_and_the_process_ends(tmp_path, start):
    """The file of the user's own model is not there."""
    project = of_rows(tmp_path, model=str(tmp_path / "missing.py") + ":factory")
    project.tell({project.items[n].id: CLASSES[n % 3] for n in range(6)})
    worker = start(project.path)
    worker.ask(wanted="proposals", shown=[])
    note = worker.until("stopped")["note"]
    assert "missing.py" in note
    assert note.endswith("Labelling goes on with random checks")
    assert worker.process.wait(PATIENCE) == HOPELESS


def test_what_a_model_prints_does_not_disturb_the_protocol(tmp_path, start):
    """Nor what a program prints that it starts: everything but our messages goes to the terminal."""
    (tmp_path / "mine.py").write_text(
        "import os, sys\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "def factory(rows, classes):\n"
        "    print('hello from python'); sys.stdout.flush()\n"
        "    os.write(1, b'hello from C\\n'); os.system('echo hello from a child')\n"
        "    return LogisticRegression()\n"
    )
    project, _ = labelled(tmp_path, 60, 10, model=str(tmp_path / "mine.py") + ":factory")
    worker = start(project.path)
    worker.ask(wanted="proposals", shown=[])
    assert len(worker.until("proposals")["proposals"]) == 20
    worker.process.kill()
    said = worker.process.stderr.read().decode()
    assert "hello from python" in said
    assert "hello from C" in said
    assert "hello from a child" in said


def test_words_of_a_text_that_speak_for_the_guess_are_marked(tmp_path, start):
    words = {"cat": "meow purr", "dog": "bark woof", "bird": "chirp tweet"}
    texts = [f"🙂 {words[CLASSES[i % 3]]} number {i}" for i in range(45)]
    project = of_texts(tmp_path, texts)
    project.tell({project.items[n].id: CLASSES[n % 3] for n in range(12)})
    worker = start(project.path)
    worker.ask(wanted="proposals", shown=[])
    found = worker.until("proposals")
    guessed = {line["number"]: line["guess"] for line in found["proposals"] if line["guess"]}
    assert guessed
    marked = {int(number): marks for number, marks in found["marks"].items()}
    assert {*marked} <= {*guessed}
    right = [
        texts[number][start:end] in words[guess].split()
        for number, guess in guessed.items()
        for start, end in marked.get(number, [])
    ]
    assert right
    assert sum(right) / len(right) > 0.5


# ── with a desk ──────────────────────────────────────────────────────────────────────────────────────


def until(done):
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    assert done()


def test_a_worker_that_is_killed_is_started_again_and_proposes_again(tmp_path):
    project, truth = labelled(tmp_path)
    with desk_with_worker(project) as desk:
        until(lambda: desk.trainer.model["state"] == "ready" and not desk.trainer.is_busy())
        first = shown(desk)
        killed = desk.trainer.send.__self__.process
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        for item in first:  # people go on meanwhile
            label(desk, item, truth[project.items[item].id])
        desk.queue._waiting.clear()
        until(lambda: len(desk.queue) >= 100)
        assert desk.trainer.send.__self__.process is not killed
        assert not {*desk.queue._waiting} & {*desk.project.state.last}


def test_without_a_worker_labelling_goes_on_with_random_checks(tmp_path):
    """The model is missing: it is said, and people are not stopped by it."""
    project = of_rows(tmp_path, model=str(tmp_path / "missing.py") + ":factory")
    project.tell({project.items[n].id: CLASSES[n % 3] for n in range(6)})
    with desk_with_worker(project) as desk:
        until(lambda: desk.trainer.model["state"] == "stopped")
        checks = [number for number in shown(desk, n=4) if number in reserve(desk)]
        assert checks
        label(desk, checks[0])
        assert "missing.py" in desk.next("one", None, 1)["model"]["note"]
