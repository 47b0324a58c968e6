"""The global randomness of Python, numpy and torch, for code that draws from it: set inside, as before outside.

Estimators of other libraries may draw from there. Each fit begins with a seed, so a resumed run fits the same ones.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from torch import Generator

from balent.predictors.training import reproducible


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, all three follow the seed (31 bits); outside, nothing has changed."""
    python, numbers = random.getstate(), np.random.get_state()  # noqa: NPY002 - others draw from it
    random.setstate(random.Random(seed).getstate())
    np.random.set_state(np.random.RandomState(seed).get_state())  # noqa: NPY002
    try:
        with reproducible(Generator().manual_seed(seed)):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numbers)  # noqa: NPY002
