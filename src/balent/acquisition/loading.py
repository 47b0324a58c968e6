"""Models and pools that a command line names: `package.module:factory`, `file.py:factory`, or an array in a file."""

from pathlib import Path
from typing import Any

from torch import nn

from balent import by_name
from balent.acquisition import randomness
from balent.data import arrays
from balent.predictors import MCDropout
from balent.strategies import strategy as named
from balent.types import Sampled, Samples


def factory(name: str) -> Any:
    """What `module:factory` makes: the function is called without arguments."""
    return by_name.made(name, expected="no arguments")


def sampled(name: str, draws: str, strategy: str, *, seed: int, masks: str, design: str) -> Sampled:
    """Functions drawn from what a factory makes: a module (MC dropout), a predictor, or functions drawn already.

    masks="auto" is what suits the strategy; designs other than independent draws are of shared masks.
    """
    made = factory(name)
    if isinstance(made, nn.Module):
        made = MCDropout(made)
    if isinstance(made, Sampled):
        return made
    if not isinstance(made, Samples):
        raise TypeError(f"{name} must make a torch module, a predictor or a Sampled, but made {type(made).__name__}")
    options = {"design": design} if isinstance(made, MCDropout) else {}
    if masks == "auto":
        masks = randomness.masks(masks, made, named(strategy)) if design == "independent" else "shared"
    return made.sample(_count(draws), seed=seed, masks=masks, **options)


def _count(draws: str) -> int | str:
    if draws in ("analytic", "auto"):
        return "analytic" if draws == "analytic" else randomness.AUTO
    try:
        return int(draws)
    except ValueError:
        raise ValueError(f'--draws must be a number, "auto" or "analytic", but is {draws!r}') from None


def pool(name: str, key: str | None) -> Any:
    """An array of numbers in an .npy (mapped, not read) or .npz, a row for each point, or what a factory makes."""
    if ":" in name:
        return factory(name)
    path = Path(name)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    found = arrays.read(path, key)
    if found.ndim == 0 or found.dtype.kind not in "biuf":
        raise ValueError(
            f"{path} must hold numbers with a row for each point, but holds {found.dtype} of shape {found.shape}"
        )
    return found
