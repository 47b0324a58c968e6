"""The one training loop: Adam on a small labelled set that is kept as tensors, without early stopping.

The paper trains for a fixed number of epochs, since a held-out set would cost labels. Whatever is
random (order of the points, dropout, augmentation) comes from the generator that is passed in, and
torch's own state is given back as it was: the same generator gives the same weights, bit for bit.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from balent.batches import size, take
from balent.predictors.augment import Augment, augmentation
from balent.predictors.inputs import Batch, as_batch, as_pairs, fitting, layout, logits_of
from balent.predictors.tasks import CLASSES
from balent.types import Task

Penalty = Callable[[], Tensor]  # of weights, beside the loss
Loss = Callable[[Tensor, Tensor], Tensor]
Progress = Callable[[int, int], None]  # called with the epochs done and the epochs in all


@dataclass(frozen=True)
class Training:
    """How a model is trained. Every predictor takes these by name: MCDropout(model, epochs=50)."""

    epochs: int = 150
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    warm_start: bool = False  # go on from the weights of the last fit, rather than from the first ones
    augment: str | Augment = ""  # a name of AUGMENTATIONS, or (batch, generator) -> batch, at every step
    device: str = "cpu"
    one_class: bool = False  # allow labels of a single class

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, but is {getattr(self, name)}")
        augmentation(self.augment)  # a name that there is


class Trained:
    """A network, how it is trained, and the weights that its next fit starts from.

    `name` is what a file of weights calls the network.
    """

    def __init__(self, name: str, module: nn.Module, settings: Training) -> None:
        self.name, self.module, self.settings = name, module, settings
        self.initial = weights(module)

    def fit(
        self,
        labelled: Any,
        task: Task = CLASSES,
        *,
        generator: Generator,
        penalty: Penalty | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Train from the initial weights, or from the current ones under `warm_start`."""
        x, y = as_pairs(labelled, task.labels)
        if not self.settings.warm_start:
            self.module.load_state_dict(self.initial)
        how: dict[str, Any] = {"settings": self.settings, "penalty": penalty, "progress": progress}
        train(self.module, x, y, task, generator=generator, **how)

    def state(self) -> dict[str, Tensor]:
        """The weights that the next fit starts from."""
        start = weights(self.module) if self.settings.warm_start else self.initial
        return {f"{self.name}.{key}": value for key, value in start.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore weights that `state` returned."""
        self.module.load_state_dict({key.removeprefix(f"{self.name}."): value for key, value in state.items()})
        self.initial = weights(self.module)

    def shape(self, batch: Any) -> tuple[int, ...]:
        """The shape of one output of the network."""
        return shape(self.module, fitting(self.module, as_batch(batch)))


class FromTraining:
    """What all predictors have in common that are one trained network: its weights, and its number of classes."""

    trained: Trained

    def state(self) -> dict[str, Tensor]:
        """The weights that the next fit starts from."""
        return self.trained.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore weights that `state` returned."""
        self.trained.load_state(state)

    def width(self, batch: Any) -> int:
        """How many classes the network has an output for."""
        return self.shape(batch)[-1]

    def shape(self, batch: Any) -> tuple[int, ...]:
        """The shape of one output."""
        return self.trained.shape(batch)


def weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all weights and buffers, to come back to."""
    return copy.deepcopy(model.state_dict())


def train(
    model: nn.Module,
    x: Batch,
    y: Tensor,
    task: Task = CLASSES,
    *,
    settings: Training,
    generator: Generator,
    penalty: Penalty | None = None,
    progress: Progress | None = None,
) -> None:
    """Fit the model's weights in place, and leave it in eval mode on `settings.device`.

    An epoch's batches are of nearly equal size, so that no batch of one point troubles batch norm.
    """
    placed(model, settings.device)
    x, y = fitting(model, x), y.to(settings.device)
    check(model, x, y, task, one_class=settings.one_class)
    model.eval()  # batch norm takes no single point otherwise
    with torch.inference_mode():
        laid_out = layout(partial(logits_of, model), x)
    x = laid_out(x)
    optimizer = adam(model, settings)

    def loss(output: Tensor, y: Tensor) -> Tensor:
        return task.loss(output, y) if penalty is None else task.loss(output, y) + penalty()

    model.train()
    with reproducible(generator, settings.device):
        for epoch in range(settings.epochs):
            _check_losses(list(_epoch(model, laid_out, x, y, optimizer, settings, loss, generator)), epoch)
            if progress is not None:
                progress(epoch + 1, settings.epochs)
    model.eval()


def _epoch(
    model: nn.Module,
    laid_out: Callable[[Batch], Batch],
    x: Batch,
    y: Tensor,
    optimizer: torch.optim.Optimizer,
    settings: Training,
    loss: Loss,
    generator: Generator,
) -> Iterator[Tensor]:
    order = torch.randperm(len(y), generator=generator).to(y.device)
    augment = augmentation(settings.augment)
    for rows in order.tensor_split(math.ceil(len(y) / settings.batch_size)):
        batch = take(x, rows)
        if augment is not None:
            batch = augment(batch, generator)
        value = loss(logits_of(model, laid_out(batch)), y[rows])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        yield value.detach()


def placed(model: nn.Module, device: str) -> nn.Module:
    """The model on that device, if there is one."""
    try:
        return model.to(device)
    except (AssertionError, RuntimeError) as error:  # which of them depends on how torch was built
        raise ValueError(
            f"device {device!r} cannot be used: {str(error).splitlines()[0]}; device='cpu' always can"
        ) from error


def adam(model: nn.Module, settings: Training) -> torch.optim.Adam:
    """Adam over the weights that ask for gradients, all of them in one compiled step."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise ValueError("the model has nothing to train: no weight has requires_grad; thaw at least the last layer")
    return torch.optim.Adam(trainable, settings.learning_rate, weight_decay=settings.weight_decay, fused=True)


@contextmanager
def reproducible(generator: Generator, device: str = "cpu") -> Iterator[None]:
    """Inside, torch's global randomness (which dropout uses) follows the generator; outside, it is untouched."""
    seed = int(torch.randint(2**62, (), generator=generator))
    place = torch.device(device)
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if place.type == "cuda":
            with torch.cuda.device(place):
                torch.cuda.manual_seed(seed)
        yield


def check(model: nn.Module, x: Batch, y: Tensor, task: Task = CLASSES, *, one_class: bool = False) -> None:
    """Is this a set to learn from, for this model?  One point is tried, in eval mode."""
    check_sizes(x, y)
    task.check(y, shape(model, x), one_class=one_class)


def shape(model: nn.Module, batch: Batch) -> tuple[int, ...]:
    """The shape of one output: the first point is tried in evaluation mode, and modes are put back."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            output = logits_of(model, take(batch, slice(0, 1)))
    finally:
        for part, mode in modes:
            part.training = mode
    if output.ndim < 2 or len(output) != 1:
        raise ValueError(f"the model must give [batch, classes], but gave {tuple(output.shape)} for a batch of 1")
    return tuple(output.shape[1:])


def check_sizes(x: Any, y: Tensor) -> None:
    """As many labels as points, and at least one."""
    if len(y) == 0:
        raise ValueError("there is nothing to learn from: the labelled set is empty; label some points first")
    if size(x) != len(y):
        raise ValueError(f"every point needs one label, but there are {size(x)} points and {len(y)} labels")


def _check_losses(losses: list[Tensor], epoch: int) -> None:
    """Looked at once an epoch: a look at every step would make a GPU wait."""
    bad = (~torch.stack(losses).isfinite()).nonzero()
    if len(bad):
        step = int(bad[0])
        raise ValueError(
            f"the loss must be finite, but is {float(losses[step])} at epoch {epoch}, step {step}; look for NaN in "
            "the inputs, then lower learning_rate; the weights are no longer of use"
        )
