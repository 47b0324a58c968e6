"""Whatever is handed to a Learner: refused in words with nothing recorded, or recorded as it was given."""

import random
from collections import Counter

import numpy as np
import torch

from torture.kills import POOL, learner

ODD = [
    None, True, "cat", b"x", 1.5, float("nan"), float("inf"), -1, 2**63, 2**64, 10**30, object, {}, [[]], [[0, 1]],
    np.array(0.5), np.array("a"), np.array([None], dtype=object), np.ma.masked_array([1, 2], [True, False]),
    torch.tensor(1.0), torch.tensor([True]), torch.zeros(2, 2, dtype=torch.int64), np.array([2**63], dtype=np.uint64),
]  # fmt: skip


def run(tries: int, seed: int) -> dict[str, Counter]:
    return {"Learner.ask, tell, skip, retract": _calls(tries, random.Random(seed))}


def _calls(tries: int, chance: random.Random) -> Counter:
    found: Counter = Counter()
    driven = learner("mc_dropout", None, 0)
    for _ in range(tries):
        if len(driven.labels.closed()) > len(POOL) // 2:
            driven = learner("mc_dropout", None, 0)
        found[_call(driven, chance)] += 1
    return found


def _call(driven, chance: random.Random) -> str:
    name = chance.choice(["tell", "tell", "tell", "skip", "ask", "retract"])
    count = chance.randint(0, 3)
    args = [_numbers(chance, count, len(POOL)), _numbers(chance, chance.choice([count, count, 2]), 3)]
    args = args[: 2 if name == "tell" else 1] if name != "ask" else [_k(chance)]
    before = (dict(driven.told), set(driven.labels.skipped), len(driven.asked))
    try:
        getattr(driven, name)(*args)
    except (ValueError, TypeError) as error:
        after = (dict(driven.told), set(driven.labels.skipped), len(driven.asked))
        return "clear error" if str(error) and after == before else "silent"
    except Exception:
        return "traceback"
    return "right" if _recorded(driven, name, args, before) else "silent"


def _recorded(driven, name: str, args: list, before: tuple) -> bool:
    told, skipped, asks = before
    if name == "ask":
        left = len(POOL) - len(driven.labels.closed()) + len(driven.asked[-1])  # more than are left: these are asked
        return len(driven.asked) == asks + 1 and len(driven.asked[-1]) == min(args[0], left)
    if any(isinstance(arg, np.ma.MaskedArray) for arg in args):
        return False
    positions = [int(i) for i in np.asarray(args[0]).reshape(-1)]
    if name == "retract":
        kept = {i: label for i, label in told.items() if i not in positions}
        return driven.told == kept and driven.labels.skipped == skipped - set(positions)
    if name == "skip":
        return driven.labels.skipped == skipped | set(positions)
    labels = [int(i) for i in np.asarray(args[1]).reshape(-1)]
    one_each = len(set(zip(positions, labels, strict=True))) == len(set(positions))
    return one_each and driven.told == told | dict(zip(positions, labels, strict=True))


def _numbers(chance: random.Random, count: int, below: int):
    """Most often numbers in some container, now and then a few that are out of range, or something odd."""
    if chance.random() < 0.3:
        return chance.choice(ODD)
    numbers = [
        chance.randrange(below) if chance.random() < 0.9 else chance.choice([-1, below, 10**9]) for _ in range(count)
    ]
    return chance.choice([list, tuple, np.array, torch.tensor])(numbers)


def _k(chance: random.Random):
    return chance.choice(ODD) if chance.random() < 0.5 else chance.randint(-1, 3)
