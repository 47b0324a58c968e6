"""What models take and give: labelled sets as two tensors, batches as the model likes them, logits.

A batch is a tensor, or a dict of tensors for models that are called with keywords (Hugging Face).
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from balent.batches import take

Batch = Tensor | Mapping[str, Tensor]


def as_pairs(labelled: Any, labels: "Callable[[Any], Tensor] | None" = None) -> tuple[Batch, Tensor]:
    """A labelled set as inputs and labels: from the tuple (x, y), or from a Dataset of (x, y) pairs.

    `labels` makes a tensor of the labels; by default they are class numbers.

    >>> as_pairs(([[0.5, 1.0], [2.0, 3.0]], [0, 1]))
    (tensor([[0.5000, 1.0000],
            [2.0000, 3.0000]]), tensor([0, 1]))
    """
    x, y = labelled if isinstance(labelled, tuple) and len(labelled) == 2 else columns(labelled)
    return as_batch(x), (labels or whole_numbers)(y)


def columns(labelled: Any) -> tuple[Any, Any]:
    """Inputs and labels of a Dataset of (x, y) pairs."""
    if isinstance(labelled, TensorDataset) and len(labelled.tensors) == 2:
        return labelled.tensors
    if not isinstance(labelled, Dataset | Sequence):
        raise TypeError(
            f"a labelled set is a tuple (x, y) or a Dataset of (x, y) pairs, but is of type {type(labelled).__name__}"
        )
    pairs = [labelled[i] for i in range(len(labelled))]  # type: ignore[arg-type]  # Datasets of known length have one
    if any(not isinstance(pair, Sequence) or len(pair) != 2 for pair in pairs):
        raise TypeError("every item of a labelled Dataset is a pair (x, y), but at least one is not")
    return [x for x, _ in pairs], [int(y) if np.ndim(y) == 0 else y for _, y in pairs]


def as_batch(x: Any) -> Batch:
    """Points as one tensor, or as a dict of tensors."""
    if isinstance(x, Mapping):
        return {name: torch.as_tensor(value) for name, value in x.items()}
    if isinstance(x, list) and x and isinstance(x[0], Mapping):
        return {name: torch.stack([torch.as_tensor(item[name]) for item in x]) for name in x[0]}
    if isinstance(x, list) and x and isinstance(x[0], Tensor | np.ndarray):
        return _stacked([torch.as_tensor(item) for item in x])
    return torch.as_tensor(x)


def _stacked(items: list[Tensor]) -> Tensor:
    for i, item in enumerate(items):
        if item.shape != items[0].shape:
            raise ValueError(
                f"items must have one shape, but item 0 has {tuple(items[0].shape)} and item {i} has "
                f"{tuple(item.shape)}; resize or pad them first"
            )
    return torch.stack(items)


def whole_numbers(y: Any) -> Tensor:
    """Labels as class numbers."""
    labels = torch.as_tensor(y)
    if labels.ndim != 1 or labels.is_floating_point() or labels.is_complex():
        raise TypeError(
            f"labels must be whole numbers on one axis, but are {labels.dtype} of shape {tuple(labels.shape)}; "
            "one-hot labels become numbers by y.argmax(-1)"
        )
    return labels.long()


def copied(value: Any) -> Any:
    """Tensors in any nest as they are now. Of a part of a tensor that part alone: deepcopy would take the whole."""
    if isinstance(value, Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(copied(item) for item in value)
    if type(value) is dict:
        return {name: copied(item) for name, item in value.items()}
    return copy.deepcopy(value)


def as_tensor(batch: Any) -> Any:
    """Arrays and lists of items as one tensor; anything else that a model takes (a dict of tensors) is unchanged."""
    if isinstance(batch, np.ndarray):
        # torch does not take arrays with negative strides, arrays in the other byte order, or read-only arrays (such
        # as memory-mapped files).
        fine = batch.flags.writeable and min(batch.strides, default=0) >= 0
        return torch.from_numpy(batch.astype(batch.dtype.newbyteorder("="), copy=not fine))
    if isinstance(batch, list | tuple):
        return torch.stack([torch.as_tensor(item) for item in batch])
    return batch


def fitting(model: nn.Module, batch: Any) -> Any:
    """The batch on the model's device, and its floating-point numbers in the model's precision."""
    return fitted(example(model), batch)


def example(model: nn.Module) -> Tensor:
    """An empty tensor on the model's device and in its precision."""
    return next((p.new_empty(0) for p in model.parameters() if p.is_floating_point()), torch.empty(0))


def fitted(like: Tensor, batch: Any) -> Any:
    """The batch on the device of `like`, and its floating-point numbers in the precision of `like`."""
    if isinstance(batch, Mapping):
        return {name: value.to(like.device, like.dtype if value.is_floating_point() else value.dtype)
                for name, value in batch.items()}  # fmt: skip
    x = as_tensor(batch)
    return x.to(like.device, like.dtype if x.is_floating_point() else x.dtype)


def channels_last(batch: Any) -> Any:
    """Images with the colours of a pixel side by side: convolutions follow, up to several times as fast on CPU."""
    return batch.to(memory_format=torch.channels_last) if _are_images(batch) else batch


def _are_images(batch: Any) -> bool:
    return isinstance(batch, Tensor) and batch.ndim == 4


def layout(model: Callable[[Any], Any], batch: Batch) -> Callable[[Any], Any]:
    """`channels_last`, or nothing for a model that does not take images so: one that flattens them by `.view`."""
    try:
        if _are_images(batch):
            model(channels_last(take(batch, slice(0, 1))))
    except RuntimeError:
        return as_it_is
    return channels_last


def arranged(model: nn.Module, call: Callable[[Any], Any], batch: Batch) -> Callable[[Any], Any]:
    """The layout of images for a copy of a model that is ours; its convolutions follow."""
    laid_out = layout(call, batch)
    arrange(model, laid_out)
    return laid_out


def arrange(model: nn.Module, laid_out: Callable[[Any], Any]) -> None:
    """Lay out the weights of convolutions as the images are."""
    for part in model.modules():
        if isinstance(part, nn.Conv2d) and laid_out is channels_last:
            part.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def as_it_is(batch: Any) -> Any:
    return batch


def logits_of(model: nn.Module, batch: Batch) -> Any:
    """The model's logits: keywords from a dict, and `.logits` of the output where it has them."""
    output = model(**batch) if isinstance(batch, Mapping) else model(batch)
    return getattr(output, "logits", output)
