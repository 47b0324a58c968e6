"""Defaults of the random choices in a round: masks, and the number of draws."""

from balent import adapt
from balent.types import Samples, Strategy

MASKS = ("auto", "shared", "per-point")
AUTO = 500  # draws among which draws="auto" chooses


def masks(asked: str, predictor: Samples, strategy: Strategy) -> str:
    """Per point if predictor and strategy allow it, unless asked otherwise.

    A strategy that adds the noise of independent draws itself (jitter) has enough of shared masks.
    """
    if asked not in MASKS:
        raise ValueError(f"masks must be one of {', '.join(MASKS)}, but is {asked!r}")
    needs = adapt.needs(strategy)
    if needs.shared:
        return "shared"
    best = "per-point" if adapt.per_point(predictor) and not needs.separates else "shared"
    return best if asked == "auto" else asked
