"""Models and pools that a command line names: `package.module:factory`, `file.py:factory`, shards, or an array."""

from pathlib import Path
from typing import Any

from torch import nn

from balent import by_name
from balent.acquisition import randomness
from balent.acquisition.drawn_rows import DrawnShards
from balent.data import arrays, shard_paths, storage
from balent.data.probabilities import Table, read
from balent.data.shard_formats.reader import Wanted
from balent.data.shards import Shards
from balent.predictors import MCDropout
from balent.predictors.wrapped import predictor_of
from balent.strategies import strategy as named
from balent.types import Sampled, Samples


def factory(name: str) -> Any:
    """What `module:factory` makes: the function is called without arguments."""
    return by_name.made(name, expected="no arguments")


def sampled(name: str, draws: str, strategy: str, *, seed: int, masks: str, design: str) -> Sampled:
    """Draws of what a factory makes: a module (MC dropout), a trained predictor, or draws themselves.

    masks="auto" is what suits the strategy; designs other than independent draws are of shared masks.
    """
    made = factory(name)
    if isinstance(made, Sampled) and not isinstance(made, nn.Module):
        return made
    if isinstance(made, nn.Module) or not isinstance(made, Samples):
        made = predictor_of(made, name=name)
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


def probabilities(
    name: str, column: str | None = None, key: str | None = None, skip_bad: bool = False
) -> Table | DrawnShards:
    """Draws in one file, or in shards each row of which is the draws of a point.

    name      a file, or a folder or a pattern of shards, here or behind scheme://
    column    of shards, or the name of an array in an .npz
    key       the column that identifies points of shards; for an .npz, an old word for column
    skip_bad  go on without what cannot be read of shards
    """
    if storage.is_remote(name) or Path(name).is_dir() or (storage.is_pattern(name) and not Path(name).exists()):
        return DrawnShards(Shards.wanting(name, Wanted(column, key, exact=True), skip_bad=skip_bad))
    return read(Path(name), column or key)


def pool(
    name: str,
    column: str | None = None,
    key: str | None = None,
    *,
    size: int = 224,
    manifest: Path | None = None,
    skip_bad: bool = False,
) -> Any:
    """Shards, an array of numbers in an .npy (mapped, not read) or .npz, or what a factory makes.

    name      a file, a folder or a pattern, here or behind scheme://; or module:factory
    column    of shards, or the name of an array in an .npz
    key       the column that identifies points of shards; for an .npz, an old word for column
    size      pixels per side of images
    manifest  a file for the list of shards
    skip_bad  go on without what cannot be read
    """
    if shard_paths.names_shards(name):
        return Shards.of(name, column=column, key=key, size=size, manifest=manifest, skip_bad=skip_bad)
    path = Path(name)
    if ":" in name and not path.exists():
        return factory(name)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    found = arrays.read(path, column or key)
    if found.ndim == 0 or found.dtype.kind not in "biuf":
        raise ValueError(
            f"{path} must hold numbers with a row for each point, but holds {found.dtype} of shape {found.shape}"
        )
    return found
