"""A network as body and head: all that comes before its last linear layer, and that layer.

Both are copies, frozen and in eval mode: what is made of them stays as it is when the network is
trained further, and the network never notices.
"""

import copy
from dataclasses import dataclass

from torch import Tensor, nn

from balent.predictors.inputs import Batch, fitting, logits_of


def frozen(model: nn.Module) -> nn.Module:
    """A copy in eval mode that asks for no gradients."""
    return copy.deepcopy(model).eval().requires_grad_(False)


@dataclass(frozen=True)
class Features:
    """What the last linear layer of a model sees of each point: the body, as a function that pickles."""

    body: nn.Module

    def to(self, device: str) -> "Features":
        return Features(copy.deepcopy(self.body).to(device))

    def __call__(self, batch: Batch) -> Tensor:
        return logits_of(self.body, fitting(self.body, batch)).flatten(1)


def split(model: nn.Module) -> tuple[Features, nn.Linear] | None:
    """The body and the head, or None where the model has no linear layer."""
    body = frozen(model)
    linear = [name for name, layer in body.named_modules() if type(layer) is nn.Linear and name]
    if not linear:
        return None
    head = body.get_submodule(linear[-1])
    assert isinstance(head, nn.Linear)
    body.set_submodule(linear[-1], nn.Identity())
    return Features(body), head


def features_of(model: nn.Module) -> Features | None:
    """The inputs of the last linear layer, where there is one."""
    parts = split(model)
    return parts[0] if parts else None
