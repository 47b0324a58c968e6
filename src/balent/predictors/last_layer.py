"""A network as body and head: all that comes before its last linear layer, and that layer.

Both are copies, frozen and in eval mode: what is made of them stays as it is when the network is
trained further, and the network never notices.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from balent.predictors.inputs import Batch, arranged, fitting, logits_of


def frozen(model: nn.Module) -> nn.Module:
    """A copy in eval mode that asks for no gradients."""
    return copy.deepcopy(model).eval().requires_grad_(False)


@dataclass(eq=False)
class Features:
    """What a layer of a model sees of each point, as a function that pickles."""

    model: nn.Module
    layer: str
    laid_out: Callable[[Any], Any] | None = None  # how the model takes images: the first batch shows

    def to(self, device: str) -> "Features":
        return Features(copy.deepcopy(self.model).to(device), self.layer)

    def __call__(self, batch: Batch) -> Tensor:
        return self.seen(batch).flatten(1)

    def pooled(self, batch: Batch, counts: Tensor | None) -> Tensor:
        """The mean over the places of an input, [batch, features]; of tokens over those that count."""
        return pooled(self.seen(batch), counts)

    def seen(self, batch: Batch) -> Tensor:
        """What the layer sees, as it is."""
        seen: list[Tensor] = []

        def see(_: nn.Module, inputs: tuple[Tensor, ...], named: dict[str, Tensor]) -> None:
            seen.append([*inputs, *named.values()][0])

        x = fitting(self.model, batch)
        if self.laid_out is None:
            self.laid_out = arranged(self.model, partial(logits_of, self.model), x)
        hook = self.model.get_submodule(self.layer).register_forward_pre_hook(see, with_kwargs=True)
        try:
            logits_of(self.model, self.laid_out(x))
        finally:
            hook.remove()
        if not seen:
            raise ValueError(f"the model does not call its layer {self.layer!r}; name another: features='…'")
        return seen[-1]


def pooled(seen: Tensor, counts: Tensor | None) -> Tensor:
    """Means over places: of [batch, places, features] as a Linear sees it, of [batch, channels, …] as a convolution."""
    if seen.ndim != 3:
        return seen.flatten(2).mean(-1) if seen.ndim > 3 else seen
    if counts is None or counts.shape != seen.shape[:2]:
        return seen.mean(1)
    weights = counts.to(seen)[..., None]
    return (seen * weights).sum(1) / weights.sum(1)


def split(model: nn.Module) -> tuple[Features, nn.Linear] | None:
    """The body and the head, or None where the model has no linear layer."""
    whole = frozen(model)
    linear = [name for name, layer in whole.named_modules() if type(layer) is nn.Linear and name]
    if not linear:
        return None
    head = whole.get_submodule(linear[-1])
    assert isinstance(head, nn.Linear)
    return Features(whole, linear[-1]), head


def features_of(model: nn.Module, layer: str | None = None) -> Features | None:
    """The inputs of the layer of that name; of the last linear layer, where there is one."""
    if layer is not None:
        return Features(frozen(model), layer)
    parts = split(model)
    return parts[0] if parts else None
