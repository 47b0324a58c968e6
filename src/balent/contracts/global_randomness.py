"""The random numbers that a whole process shares: those of torch, numpy and Python, set for a while and put back."""

# ruff: noqa: NPY002 (what numpy shares is its old generator)

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from balent.contracts.promises import expect


def states() -> dict[str, Any]:
    """Of torch and numpy, in a form that can be compared. Type checkers draw from Python's, so it tells nothing."""
    _, keys, *rest = np.random.get_state(legacy=True)
    return {"torch": torch.get_rng_state().tolist(), "numpy": (np.asarray(keys).tolist(), *rest)}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within, the shared random numbers follow from the seed, and nobody may have drawn any at the end."""
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
    np.random.set_state(np.random.RandomState(seed).get_state())
    random.setstate(random.Random(seed).getstate())
    given = states()
    try:
        yield
        drawn = [whose for whose, state in states().items() if state != given[whose]]
        expect(
            not drawn,
            f"it draws from, or seeds, the random numbers of {' and '.join(drawn)} that the whole process shares; "
            "draw from the generator or the seed that is passed",
        )
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])
        random.setstate(before[2])
