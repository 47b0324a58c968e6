"""Files with the state from which a predictor's fits start: the first, and that of the last fit.

The state *before* a fit is kept, not its result: a fit is a function of its start, its labels and its
seed, so fitting again restores everything, also what a predictor keeps besides its weights.
The files are safetensors: nothing in them is executed when they are read.
"""

from pathlib import Path

import torch
from torch import Tensor

from balent.loop.journal import write
from balent.types import Predictor

State = dict[str, Tensor]


def same(a: State, b: State) -> bool:
    """Are these the same tensors under the same names, bit for bit?"""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def save(path: Path, state: State, **about: int) -> None:
    """Writes tensors and a few numbers about them, completely or not at all."""
    from safetensors.torch import save as serialized

    tensors = {name: value.contiguous() for name, value in state.items()}
    # A file with empty metadata could not be read again: `kind` is always there.
    metadata = {"kind": "balent", **{name: str(value) for name, value in about.items()}}
    write(path, serialized(tensors, metadata=metadata))


def restore(path: Path, predictor: Predictor) -> None:
    """Load the predictor from a file. A predictor without state needs no file."""
    from safetensors import SafetensorError, safe_open

    if not predictor.state():
        return
    try:
        with safe_open(str(path), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        predictor.load_state(tensors)
    except (SafetensorError, RuntimeError, ValueError, KeyError, OSError) as error:
        raise ValueError(f"{path} does not hold the weights of this model: {error}") from error


def about(path: Path) -> dict[str, int]:
    """The numbers about the tensors of a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            return {name: int(value) for name, value in (file.metadata() or {}).items() if name != "kind"}
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(f"{path} does not hold the weights of a model: {error}") from error
