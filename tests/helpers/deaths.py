"""Processes that die while they write a line of a journal or of records."""

import json

from balent.loop import journal


class Died(BaseException):
    """As if the process had ended here."""


class Deaths:
    """Lets `journal.append` die at the line that `at` counts down to, of which a share is written."""

    def __init__(self, monkeypatch, torn):
        self.left, self.torn, self.append = 0, torn, journal.append
        monkeypatch.setattr(journal, "append", self)

    def at(self, line):
        self.left = line

    def __call__(self, path, record):
        self.left -= 1
        if self.left == 0:
            line = (json.dumps(record) + "\n").encode()
            with path.open("ab") as file:
                file.write(line[: int(self.torn * len(line))])
            raise Died
        self.append(path, record)
