"""One seed, split by purpose: a change of one use does not affect the others."""

from balent.kernels.hashing import mixed

PURPOSES = ("start", "initial weights", "training", "draws", "strategy", "evaluation", "order", "anchors")


def seed_of(seed: int, purpose: str, when: int = 0) -> int:
    """The seed for one purpose at one moment of a run: a number of 63 bits."""
    key = mixed(mixed(seed, PURPOSES.index(purpose)), when)
    return int(key) & ((1 << 63) - 1)
