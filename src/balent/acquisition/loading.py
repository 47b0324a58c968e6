"""Models and pools that a command line names: `package.module:factory`, `file.py:factory`, or an array in a file."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from balent.acquisition import randomness
from balent.checks import nearest
from balent.data import arrays
from balent.predictors import MCDropout
from balent.strategies import strategy as named
from balent.types import Sampled, Samples


def factory(name: str) -> Any:
    """What `module:factory` makes: the function is called without arguments."""
    return function(name)()


def function(name: str) -> Callable[..., Any]:
    """The function that `module:function` or `file.py:function` names."""
    module, colon, attribute = name.rpartition(":")
    if not colon:
        raise ValueError(f"{name!r} must be MODULE:FACTORY, as in my_models:classifier or models.py:classifier")
    loaded = _module(module)
    if not callable(getattr(loaded, attribute, None)):
        known = [key for key, value in vars(loaded).items() if callable(value) and not key.startswith("_")]
        raise ValueError(f"{module} has no function {attribute!r}; {nearest(attribute, known)}")
    return getattr(loaded, attribute)


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        sys.path.insert(0, "")
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(f"there is no module {name!r} to import: {error}") from None
    path = Path(name)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that what it defines can be pickled
    spec.loader.exec_module(module)
    return module


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
