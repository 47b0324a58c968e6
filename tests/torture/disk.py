"""A disk that is full at every byte of an append: what was acknowledged before is there, and the next append works."""

import json
import tempfile
from collections import Counter
from pathlib import Path

from helpers.disk import room_up_to

from balent.loop import journal


def run(tries: int, seed: int) -> dict[str, Counter]:
    """Every number of bytes that may be left, for an append to records and for a label told to a Learner."""
    return {"append, full disk": _appends(), "Learner.tell, full disk": _tells(seed)}


def _appends() -> Counter:
    found: Counter = Counter()
    line = {"round": 3, "text": "x" * 100}
    for room in range(len(json.dumps(line)) + 1):
        with tempfile.TemporaryDirectory() as folder:
            found[_append(Path(folder) / "records.jsonl", line, room)] += 1
    return found


def _append(path: Path, line: dict, room: int) -> str:
    for i in range(3):
        journal.append(path, {"round": i})
    before = path.read_bytes()
    with room_up_to(len(before) + room):
        outcome = _refused(lambda: journal.append(path, line))
    journal.append(path, {"round": 4})
    intact = [record["round"] for record in journal.read(path)] == [0, 1, 2, 4]
    return outcome if intact and path.read_bytes().startswith(before) else "silent"


def _tells(seed: int) -> Counter:
    from torture.kills import POOL, learner

    found: Counter = Counter()
    for room in range(0, 80, 2):
        with tempfile.TemporaryDirectory() as folder:
            with learner("mc_dropout", folder, seed) as driven:
                driven.tell([1, 2], [0, 1])
                with room_up_to((Path(folder) / "journal.ndjson").stat().st_size + room):
                    outcome = _refused(lambda driven=driven: driven.tell([3], [2], who="a name of some length" * 3))
                driven.tell([4], [1])
            with learner("mc_dropout", folder, seed) as driven:
                right = driven.told == {1: 0, 2: 1, 4: 1} and len(driven.pool) == len(POOL)
        found[outcome if right else "silent"] += 1
    return found


def _refused(act) -> str:
    try:
        act()
    except OSError as error:
        return "clear error" if "is intact" in str(error) else "traceback"
    except Exception:
        return "traceback"
    return "silent"
