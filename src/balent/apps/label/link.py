"""The link to the worker: a process of its own that is started, listened to, and started again if it dies.

Both sides speak JSON lines through pipes. The worker ends when its pipe closes, so it never outlives the server,
however that ends.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

Message = dict[str, Any]
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
HOPELESS = 3  # exit code of a worker that would fail again, and has said why
PAUSE = 1.0  # seconds before a worker that died is started again
TRIES, WITHIN = 4, 60.0  # a worker that dies as often within so many seconds is left alone


class Link:
    """A worker for a project.

    heard       is called with each message, from a thread
    started     is called when a worker has been started
    stopped     is called with a sentence when it died too often
    """

    def __init__(
        self,
        folder: Path,
        heard: Callable[[Message], None],
        started: Callable[[], None],
        stopped: Callable[[str], None],
    ) -> None:
        self.command = [sys.executable, "-P", "-m", "balent.apps.label.worker", str(folder)]
        self.heard, self.started, self.stopped = heard, started, stopped
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closing = False
        self._deaths: list[float] = []

    def start(self) -> None:
        """Starts the worker, and a thread that listens to it."""
        self._spawn()
        threading.Thread(target=self._listen, name="balent worker", daemon=True).start()

    def send(self, message: Message) -> None:
        """Tells the worker something. One that is just being started anew is asked again when it runs."""
        with self._lock:
            if self.process is not None and self.process.stdin is not None:
                try:
                    self.process.stdin.write(json.dumps(message).encode() + b"\n")
                    self.process.stdin.flush()
                except (OSError, ValueError):  # it has died: the next one is asked anew
                    return

    def close(self) -> None:
        """Ends the worker."""
        with self._lock:
            self._closing = True
            process = self.process
        if process is not None:
            _shut(process.stdin)
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _spawn(self) -> bool:
        """Starts a worker, unless the end has come meanwhile."""
        with self._lock:
            if not self._closing:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=os.environ | dict.fromkeys(THREADS, "1"),
                    start_new_session=True,
                )
            return not self._closing

    def _listen(self) -> None:
        """Until the server ends, or the worker cannot be helped."""
        again = True
        while again and (process := self.process) is not None and process.stdout is not None:
            self.started()
            for line in process.stdout:
                self._hear(line)
            code = process.wait()
            _shut(process.stdin)
            _shut(process.stdout)
            if code == HOPELESS or self._closing or self._gave_up():
                return
            time.sleep(PAUSE)
            again = self._spawn()

    def _hear(self, line: bytes) -> None:
        """One message. Something else may have been printed, or torn when the worker died: it is shown, and left."""
        try:
            self.heard(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"the worker printed what is not a message: {line[:200]!r} ({error!r})", file=sys.stderr)

    def _gave_up(self) -> bool:
        """Did it die too often?"""
        now = time.monotonic()
        self._deaths = [death for death in self._deaths if now - death < WITHIN] + [now]
        if len(self._deaths) >= TRIES:
            self.stopped(
                f"the process that trains the model ended {TRIES} times within {WITHIN:.0f} seconds; the terminal says "
                "why. Labelling goes on with random checks"
            )
        return len(self._deaths) >= TRIES


def _shut(pipe: IO[bytes] | None) -> None:
    """Closes a pipe. What a dead worker did not read is lost, and not needed."""
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()
