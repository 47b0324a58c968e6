"""What is random where nobody says: which masks, and how many draws."""

from typing import Any

from balent.strategies import JOINT
from balent.strategies.jitter import Jitter
from balent.types import Strategy

MASKS = ("auto", "shared", "per-point")
AUTO = 500  # draws among which draws="auto" chooses


def masks(asked: str, predictor: Any, strategy: Strategy) -> str:
    """Per point where predictor and strategy allow it, unless asked otherwise. Jitter brings noise of its own."""
    if asked not in MASKS:
        raise ValueError(f"masks must be one of {', '.join(MASKS)}, but is {asked!r}")
    if isinstance(strategy, JOINT):
        return "shared"
    best = "per-point" if getattr(predictor, "per_point", False) and not isinstance(strategy, Jitter) else "shared"
    return best if asked == "auto" else asked
