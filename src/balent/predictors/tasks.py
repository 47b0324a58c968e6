"""What a label is: the class of a point, a class for each part of an item, or several labels that hold or do not.

A task makes a tensor of labels, checks it against what the network gives, and knows the loss. The two tasks with parts
also say where an output has its parts and its classes. Several labels are parts with two classes, no and yes, whose
logits are 0 and z: softmax of these is the sigmoid of z.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from balent.lookup import lookup
from balent.predictors.inputs import whole_numbers

IGNORED = -100  # the label of a part that does not count, as in torch and Hugging Face


class OneClass:
    """One class for each point."""

    def labels(self, y: Any) -> Tensor:
        return whole_numbers(y)

    def check(self, y: Tensor, shape: tuple[int, ...], *, one_class: bool) -> None:
        if len(shape) != 1:
            raise ValueError(
                f"the model must give [batch, classes] for labels of one class per point, but gave {(1, *shape)} for a "
                "batch of 1; where an item has many parts, wrap the predictor: balent.Parts(MCDropout(model), …)"
            )
        check_labels(y, shape[-1], one_class=one_class)

    def width(self, shape: tuple[int, ...]) -> int:
        return shape[-1]

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(output, y)


CLASSES = OneClass()


@dataclass(frozen=True)
class PerPart:
    """A class for each part: labels [items, parts…] of outputs that have classes on one axis.

    class_axis  of the model's output [batch, …]: -1 the last one, 1 as in [batch, classes, height, width]
    ignore      the label of parts that nobody labels: padding, void pixels
    """

    class_axis: int = -1
    ignore: int = IGNORED
    binary = False

    def __post_init__(self) -> None:
        if self.class_axis == 0:
            raise ValueError("class_axis counts the axes of the model's output, and axis 0 is the batch; use 1 or -1")

    def labels(self, y: Any) -> Tensor:
        found = _together(y, self.ignore)
        if found.is_floating_point() or found.is_complex():
            raise TypeError(f"labels of parts must be class numbers, but are {found.dtype}; convert them to integers")
        return torch.where(found == self.ignore, IGNORED, found).long()

    def read(self, values: Any, names: Sequence[str], width: int) -> Tensor:
        """Labels as a user gives them: classes may have names."""
        return self.labels(_numbered(values, names) if names else values)

    def rows(self, outputs: Tensor) -> Tensor:
        """Outputs [items, draws, …] as logits [items, draws, parts…, classes]."""
        axis = self.class_axis + (self.class_axis > 0)
        if not -outputs.ndim + 2 <= axis < outputs.ndim:
            raise ValueError(
                f"the model gives {_said(outputs.shape[2:])} for a batch, which has no axis {self.class_axis} for the "
                "classes; set class_axis=…"
            )
        return outputs.movedim(axis, -1)

    def check(self, y: Tensor, shape: tuple[int, ...], *, one_class: bool) -> None:
        *parts, classes = self._moved(shape)
        if list(y.shape[1:]) != parts:
            raise ValueError(
                f"every part needs one label: the model gives {_said(shape)}, classes on axis {self.class_axis}, so a "
                f"label must have the shape {tuple(parts)}, but has {tuple(y.shape[1:])}{self._hint(y, shape)}"
            )
        counted = y[y != IGNORED]
        if not len(counted):
            raise ValueError(f"there is nothing to learn from: every part of every label is {self.ignore}, ignored")
        check_labels(counted, classes, one_class=one_class)

    def width(self, shape: tuple[int, ...]) -> int:
        return self._moved(shape)[-1]

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The mean over the parts that count; 0 for a batch that has none."""
        by_class = output.movedim(self.class_axis, 1)
        total = cross_entropy(by_class, y, ignore_index=IGNORED, reduction="sum")
        return total / (y != IGNORED).sum().clamp(min=1)

    def _moved(self, shape: tuple[int, ...]) -> list[int]:
        """The shape of an output without its batch axis, classes last."""
        axis = self.class_axis - (self.class_axis > 0)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"the model gives {_said(shape)}, which has no axis {self.class_axis}; set class_axis=…")
        axis %= len(shape)
        return [*_without(list(shape), axis), shape[axis]]

    def _hint(self, y: Tensor, shape: tuple[int, ...]) -> str:
        """The axis that would fit these labels."""
        fits = [axis + 1 for axis in range(len(shape)) if _without(list(shape), axis) == list(y.shape[1:])]
        return f"; these labels fit class_axis={fits[0]}" if fits else "; look at the shape of the labels"


@dataclass(frozen=True)
class Several:
    """Labels of which several may hold: [items, labels] of 0 and 1 for outputs [batch, labels], a logit each.

    ignore  in place of 0 or 1 where nobody knows whether the label holds
    """

    ignore: int = IGNORED
    binary = True

    def labels(self, y: Any) -> Tensor:
        found = _together(y, self.ignore)
        if not bool(((found == 0) | (found == 1) | (found == self.ignore)).all()):
            raise ValueError(
                f"several labels per item are rows of 0 and 1 (or {self.ignore}: not known), but one value is "
                f"{found[(found != 0) & (found != 1) & (found != self.ignore)][0].item()}"
            )
        return torch.where(found == self.ignore, IGNORED, found).long()

    def read(self, values: Any, names: Sequence[str], width: int) -> Tensor:
        """Labels as a user gives them: a set has the labels that hold, by number or by name."""
        if isinstance(values, Tensor | np.ndarray):
            return self.labels(values)
        return self.labels([_row(item, names, width) if isinstance(item, set | frozenset) else item for item in values])

    def rows(self, outputs: Tensor) -> Tensor:
        """Outputs [items, draws, labels] as logits of no and yes, [items, draws, labels, 2]."""
        if outputs.ndim != 3:
            raise ValueError(
                "several labels per item need a model that gives [batch, labels], but it gives "
                f"{_said(outputs.shape[2:])}"
            )
        return torch.stack([torch.zeros_like(outputs), outputs], -1)

    def check(self, y: Tensor, shape: tuple[int, ...], *, one_class: bool) -> None:
        if tuple(y.shape[1:]) != tuple(shape):
            raise ValueError(
                f"an item needs a 0 or 1 for each output of the model, shape {tuple(shape)}, but its label has "
                f"{tuple(y.shape[1:])}; give the model as many outputs as there are labels"
            )
        counted = y[y != IGNORED]
        if not len(counted):
            raise ValueError(f"there is nothing to learn from: every label is {self.ignore}, not known")
        check_labels(counted, 2, one_class=one_class)

    def width(self, shape: tuple[int, ...]) -> int:
        return shape[-1]

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The mean over all labels that are known; 0 for a batch that has none."""
        known = y != IGNORED
        each = binary_cross_entropy_with_logits(output, y.clamp(min=0).to(output), reduction="none")
        return (each * known).sum() / known.sum().clamp(min=1)


OfParts = PerPart | Several


def _together(y: Any, ignore: int) -> Tensor:
    """The labels of all items as one tensor with a row for each."""
    if not isinstance(y, Tensor | np.ndarray):
        items = [torch.as_tensor(item) for item in y]
        for i, item in enumerate(items):
            if item.shape != items[0].shape:
                raise ValueError(
                    f"labels must have one shape, but item 0 has {tuple(items[0].shape)} and item {i} has "
                    f"{tuple(item.shape)}; pad the shorter ones with {ignore}, and name a mask for the parts that count"
                )
        y = torch.stack(items) if items else torch.empty(0)
    return torch.as_tensor(y)


def _numbered(values: Any, names: Sequence[str]) -> list[Any]:
    """Names of classes as their numbers, in any nest of lists."""
    known = {name: number for number, name in enumerate(names)}

    def number(value: Any) -> Any:
        if isinstance(value, str):
            return lookup(known, value, "class")
        return [number(each) for each in value] if isinstance(value, list | tuple) else value

    return [number(item.tolist() if isinstance(item, np.ndarray) else item) for item in values]


def _row(held: set[Any] | frozenset[Any], names: Sequence[str], width: int) -> Tensor:
    """0 and 1 for each label, of a set of those that hold."""
    known = {name: number for number, name in enumerate(names)}
    row = torch.zeros(width, dtype=torch.int64)
    for label in held:
        number = lookup(known, label, "label") if isinstance(label, str) else int(label)
        if not 0 <= number < width:
            raise ValueError(f"labels must be numbers 0..{width - 1} of the model, but one is {number}")
        row[number] = 1
    return row


def _without(shape: list[int], axis: int) -> list[int]:
    return shape[:axis] + shape[axis + 1 :]


def _said(shape: Sequence[int]) -> str:
    return f"[batch, {', '.join(map(str, shape))}]"


def check_labels(y: Tensor, classes: int, *, one_class: bool | None = None) -> None:
    """Labels are 0..classes-1, and of more than one class unless that is allowed; None: it cannot be."""
    outside = ((y < 0) | (y >= classes)).nonzero()
    if len(outside):
        at = int(outside[0])
        raise ValueError(
            f"labels must be 0..{classes - 1} for the {classes} classes of the model, but label {at} is {int(y[at])}; "
            "number the classes from 0, or give the model more outputs"
        )
    if not one_class and bool((y == y[0]).all()):
        raise ValueError(
            f"a classifier learns from labels of at least two classes, but all {len(y)} are class {int(y[0])}; "
            "label more points (chosen at random, say)"
            + ("" if one_class is None else ", or pass one_class=True to train anyway")
        )
