"""The link to the worker: a process that is listened to, started again if it dies, and ended with the server."""

import os
import signal
import sys
import time

import pytest

from balent.apps.label import link as module
from balent.apps.label.link import Link


class Server:
    """What a server notes of its worker."""

    def __init__(self, folder, program):
        self.heard, self.started, self.stopped = [], 0, []
        self.link = Link(folder, self.heard.append, self._start, self.stopped.append)
        self.link.command = [sys.executable, "-S", "-c", program]

    def _start(self):
        self.started += 1

    def until(self, done, patience=8.0):
        end = time.monotonic() + patience
        while not done() and time.monotonic() < end:
            time.sleep(0.01)
        assert done(), (self.heard, self.started, self.stopped)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Makes a server with a worker that runs a program of a few lines."""
    monkeypatch.setattr(module, "PAUSE", 0.05)
    made = []

    def start(program):
        made.append(Server(tmp_path, program))
        made[-1].link.start()
        return made[-1]

    yield start
    for some in made:
        some.link.close()
        some.until(lambda: some.link.process.poll() is not None)  # noqa: B023 - called at once


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()"


def test_messages_go_both_ways(server):
    one = server(ECHO)
    one.link.send({"wanted": "proposals", "shown": [1, 2]})
    one.link.send({"text": "ü\n🙂\ud800"})
    one.until(lambda: len(one.heard) == 2)
    assert one.heard == [{"wanted": "proposals", "shown": [1, 2]}, {"text": "ü\n🙂\ud800"}]
    assert one.started == 1


def test_a_worker_that_is_killed_is_started_again(server):
    one = server(ECHO)
    one.until(lambda: one.started == 1)
    os.kill(one.link.process.pid, signal.SIGKILL)
    one.until(lambda: one.started == 2)
    one.link.send({"still": "there"})
    one.until(lambda: one.heard == [{"still": "there"}])
    assert not one.stopped


def test_a_worker_that_dies_while_it_speaks_is_started_again(server, tmp_path):
    """Half a line is no message, and does not end the listening."""
    first = tmp_path / "first"
    one = server(f"""
import os, sys
if not os.path.exists({str(first)!r}):
    open({str(first)!r}, "w").close()
    sys.stdout.write('{{"said": "propos'); sys.stdout.flush(); os._exit(9)
{ECHO}""")
    one.until(lambda: one.started == 2)
    one.link.send({"still": "there"})
    one.until(lambda: one.heard == [{"still": "there"}])


@pytest.mark.parametrize("line", ["Downloading weights…", "{}"])
def test_a_message_that_cannot_be_used_does_not_stop_the_next_one(server, line, desk):
    """A library may print while it is imported, before the worker has its voice to itself."""
    one = server(f"import time; time.sleep(0.3); print({line!r}, flush=True)\n{ECHO}")
    one.link.heard = desk.heard
    one.link.send({"said": "note", "note": "hello"})
    one.until(lambda: desk.trainer.model["note"] == "hello", patience=3.0)


def test_a_worker_that_dies_again_and_again_is_left_alone_and_it_is_said(server):
    one = server("raise SystemExit(1)")
    one.until(lambda: one.stopped)
    assert one.started == module.TRIES
    assert "Labelling goes on" in one.stopped[0]
    time.sleep(0.3)
    assert one.started == module.TRIES


def test_a_worker_that_gives_up_is_not_started_again(server):
    """It has said why: it would fail again."""
    one = server('import sys; print(\'{"said": "stopped"}\', flush=True); sys.exit(%d)' % module.HOPELESS)  # noqa: UP031
    one.until(lambda: one.heard)
    time.sleep(0.3)
    assert one.started == 1
    assert not one.stopped


def test_sending_to_a_worker_that_is_dead_and_closing_do_not_fail(server):
    """People go on labelling without a model, and then press Ctrl-C."""
    one = server(f"raise SystemExit({module.HOPELESS})")
    one.until(lambda: one.link.process.poll() is not None)
    for _ in range(3):
        one.link.send({"wanted": "proposals", "shown": []})
    one.link.close()


def test_the_worker_ends_with_its_server(server):
    one = server(ECHO)
    pid = one.link.process.pid
    one.link.close()
    assert one.link.process.poll() is not None
    assert not is_alive(pid)


def test_a_worker_that_does_not_end_is_killed(server):
    one = server("import time\nprint('{}', flush=True)\ntime.sleep(100)")
    one.until(lambda: one.heard)
    one.link.close()
    one.until(lambda: one.link.process.poll() is not None)


def test_no_worker_is_started_after_the_end(server, monkeypatch):
    """Ctrl-C in the second in which a worker that died waits to be started again."""
    monkeypatch.setattr(module, "PAUSE", 0.4)
    one = server(ECHO)
    one.until(lambda: one.started == 1)
    first = one.link.process
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    time.sleep(0.1)
    one.link.close()
    time.sleep(0.6)
    assert one.link.process is first


def test_the_worker_has_one_thread_and_a_session_of_its_own(server):
    """Two threads on a busy machine were ten times slower. Ctrl-C is for the server, which ends the worker itself."""
    one = server(
        "import os, json; print(json.dumps([os.environ[n] for n in "
        "('OMP_NUM_THREADS', 'MKL_NUM_THREADS')] + [os.getsid(0) == os.getpid()]), flush=True)\n" + ECHO
    )
    one.until(lambda: one.heard)
    assert one.heard == [["1", "1", True]]
