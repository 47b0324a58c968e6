"""What a predictor's fits start from, in files: the first start, and that of the last fit.

What a fit *starts* from is kept, rather than its result: a fit is a function of its start, its labels and
its seed, so fitting again gives back everything, whatever a predictor keeps beside its weights.
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
    """Tensors and a few numbers about them: all of it or nothing."""
    from safetensors.torch import save as serialized

    tensors = {name: value.contiguous() for name, value in state.items()}
    # A file with empty metadata could not be read again: `kind` is always there.
    metadata = {"kind": "balent", **{name: str(value) for name, value in about.items()}}
    write(path, serialized(tensors, metadata=metadata))


def restore(path: Path, predictor: Predictor) -> dict[str, int]:
    """Load the predictor from a file; returns the numbers about it. A predictor without state needs no file."""
    from safetensors import SafetensorError, safe_open

    if not predictor.state():
        return {}
    try:
        with safe_open(str(path), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            about = {name: int(value) for name, value in (file.metadata() or {}).items() if name != "kind"}
        predictor.load_state(tensors)
    except (SafetensorError, RuntimeError, ValueError, KeyError, OSError) as error:
        raise ValueError(f"{path} does not hold the weights of this model: {error}") from error
    return about
