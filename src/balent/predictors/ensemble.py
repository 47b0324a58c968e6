"""Deep ensembles (Lakshminarayanan, Pritzel & Blundell, 2017): networks that began at different weights.

All members are trained side by side, in the one loop, on the same batches: their losses add up, so
each gets the gradient it would get alone. They run one after the other within a step; stacking
them with torch.func.vmap was measured, and is no faster on a CPU (convolutions: slower by a third).
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn

from balent.predictors.asked import shared_draws
from balent.predictors.functions import Functions
from balent.predictors.inputs import Batch, fitting, logits_of
from balent.predictors.last_layer import Features, features_of, frozen
from balent.predictors.tasks import CLASSES
from balent.predictors.training import FromTraining, Progress, Trained, Training, reproducible
from balent.types import Indices, Task


class Members(nn.Module):
    """Networks as one: [batch, members, classes]."""

    def __init__(self, models: list[nn.Module]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.stack([logits_of(model, kwargs or args[0]) for model in self.models], 1)


@dataclass(frozen=True)
class OfAll:
    """A task for all members at once: the sum of their losses."""

    task: Task

    def labels(self, y: Any) -> Tensor:
        return self.task.labels(y)

    def check(self, y: Tensor, shape: tuple[int, ...], *, one_class: bool) -> None:
        self.task.check(y, shape[1:], one_class=one_class)

    def width(self, shape: tuple[int, ...]) -> int:
        return self.task.width(shape[1:])

    def loss(self, output: Tensor, y: Tensor) -> Tensor:
        return torch.stack([self.task.loss(of_member, y) for of_member in output.unbind(1)]).sum()


@dataclass(frozen=True)
class MemberDraws:
    """Members as functions: every draw is one of them."""

    members: Members

    def __call__(self, batch: Batch, positions: Indices | None = None) -> Tensor:
        return logits_of(self.members, fitting(self.members, batch))


@dataclass(frozen=True)
class JointFeatures:
    """What the last layers of all members see, side by side."""

    parts: tuple[Features, ...]

    def __call__(self, batch: Batch) -> Tensor:
        return torch.cat([features(batch) for features in self.parts], 1)

    def pooled(self, batch: Batch, counts: Tensor | None) -> Tensor:
        """The same, averaged over places."""
        return torch.cat([features.pooled(batch, counts) for features in self.parts], 1)


class Ensemble(FromTraining):
    """Networks made by a function without arguments, or copies of a model with weights drawn anew.

    Of a model, every trainable layer that can be is reset: freeze what is pretrained, or pass a function.
    `seed` decides the first weights; the model that is passed in is copied and never changes.
    """

    def __init__(
        self, model: nn.Module | Callable[[], nn.Module], *, members: int = 5, seed: int = 0, **training: Any
    ) -> None:
        if members < 1:
            raise ValueError(f"an ensemble has at least one member, but {members} were asked for")
        with reproducible(Generator().manual_seed(seed)):
            made = [_renewed(model) if isinstance(model, nn.Module) else model() for _ in range(members)]
        self.members = Members(made)
        self.trained = Trained("members", self.members, Training(**training))

    def fit(self, labelled: Any, *, generator: Generator, progress: Progress | None = None) -> None:
        self.learn(labelled, CLASSES, generator=generator, progress=progress)

    def learn(self, labelled: Any, task: Task, *, generator: Generator, progress: Progress | None = None) -> None:
        """Train all members on labels of any task."""
        self.trained.fit(labelled, OfAll(task), generator=generator, progress=progress)

    def shape(self, batch: Any) -> tuple[int, ...]:
        """The shape of one output of a member."""
        return self.trained.shape(batch)[1:]

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> Functions:
        """n of the members; the seed decides which, and their order."""
        shared_draws(n, masks, "a draw of an Ensemble is one of its members, for all points")
        models = list(self.members.models)
        if n > len(models):
            raise ValueError(f"{n} functions were asked for, but the ensemble has {len(models)} members: members={n}")
        order = torch.randperm(len(models), generator=Generator().manual_seed(seed))[:n]
        chosen = [frozen(models[i]) for i in order]
        return Functions(MemberDraws(Members(chosen).eval()), n, f"{n} members, one after the other", _features(chosen))


def _renewed(model: nn.Module) -> nn.Module:
    renewed = copy.deepcopy(model)
    layers = [layer for layer in renewed.modules() if hasattr(layer, "reset_parameters") and _trainable(layer)]
    if not layers:
        raise ValueError("no layer of the model can be reset; pass a function that makes a model: Ensemble(make_model)")
    for layer in layers:
        layer.reset_parameters()  # type: ignore[operator]
    return renewed


def _trainable(layer: nn.Module) -> bool:
    return any(p.requires_grad for p in layer.parameters(recurse=False))


def _features(models: list[nn.Module]) -> JointFeatures | None:
    parts = [features_of(model) for model in models]
    found = tuple(part for part in parts if part is not None)
    return JointFeatures(found) if len(found) == len(parts) else None
