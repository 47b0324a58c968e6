"""Weights that a run must find again: those it began with, and those that its last fit began with.

What a fit *starts* from is kept, rather than what comes out: a fit is a function of its start, its
labels and its seed, so doing it again gives back everything it made, whatever a predictor keeps beside its weights.
The files are safetensors: nothing in them is executed when they are read.
"""

import contextlib
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from balent.learning.records import write
from balent.predictors.training import Training, weights


def modules(predictor: Any) -> dict[str, nn.Module]:
    """The networks a predictor holds, by name."""
    return {name: value for name, value in _attributes(predictor).items() if isinstance(value, nn.Module)}


def is_warm(predictor: Any) -> bool:
    """Does a fit go on from the last one?  Then the last one matters."""
    return any(isinstance(value, Training) and value.warm_start for value in _attributes(predictor).values())


def state(predictor: Any) -> dict[str, Tensor]:
    """All weights and buffers."""
    return {
        f"{name}.{key}": value for name, module in modules(predictor).items() for key, value in weights(module).items()
    }


def save(path: Path, predictor: Any, **about: int) -> None:
    """Weights and a few numbers about them: all of it or nothing."""
    from safetensors.torch import save as serialized

    tensors = {name: value.contiguous() for name, value in state(predictor).items()}
    write(path, serialized(tensors, metadata={name: str(value) for name, value in about.items()}))


def restore(path: Path, predictor: Any) -> dict[str, int]:
    """The weights put back where they were, and the numbers about them."""
    from safetensors import safe_open

    with _in_words(path), safe_open(str(path), framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        about = {name: int(value) for name, value in (file.metadata() or {}).items()}
        for name, module in modules(predictor).items():
            own = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
            module.load_state_dict(own)
    return about


def restore_initial(path: Path, predictor: Any) -> None:
    """Weights that every fit of a cold start comes back to; predictors keep a copy of them."""
    restore(path, predictor)
    for module in modules(predictor).values():
        if hasattr(predictor, "_initial"):
            predictor._initial = weights(module)


@contextlib.contextmanager
def _in_words(path: Path) -> Any:
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{path} does not hold the weights of this model: {error}") from error


def _attributes(predictor: Any) -> dict[str, Any]:
    return getattr(predictor, "__dict__", {})
