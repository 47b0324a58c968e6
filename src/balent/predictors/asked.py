"""What is asked of `sample`, checked once for the predictors whose functions are the same for all points."""


def shared_draws(n: object, masks: str, what: str) -> None:
    """n functions, shared by the pool: `what` says why there are no others."""
    if n < 1:
        raise ValueError(f"n must be a positive number of draws, but is {n}")
    if masks == "per-point":
        raise ValueError(f'masks="per-point" has no meaning here: {what}; use masks="shared"')
    if masks != "shared":
        raise ValueError(f'masks must be "shared" or "per-point", but is {masks!r}')
