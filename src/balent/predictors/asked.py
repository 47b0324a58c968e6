"""What is asked of `sample`, checked once for the predictors whose functions are the same for all points."""

from typing import Any


def shared_draws(n: Any, masks: str, what: str) -> None:
    """n functions, shared by the pool: `what` says why there are no others."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be a positive number of draws, but is {n!r}")
    if masks == "per-point":
        raise ValueError(f'masks="per-point" has no meaning here: {what}; use masks="shared"')
    if masks not in ("shared", "auto"):
        raise ValueError(f'masks must be "shared" or "auto", which is the same here, but is {masks!r}')
