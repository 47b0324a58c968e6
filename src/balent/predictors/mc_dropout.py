"""MC dropout (Gal & Ghahramani, 2016): a network with dropout left on is a draw from its posterior.

Any module will do that has dropout of any kind. Only dropout is random; batch norm and all else stay
in evaluation mode. A draw is a network: its masks are a function of the seed, the layer and the
draw (`masks="shared"`), or of the position of a point as well (`masks="per-point"`).
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from balent.moments import Moments
from balent.predictors.functions import as_tensor
from balent.predictors.masks import Masks
from balent.predictors.network import Network
from balent.types import Draws, Indices

Kind = Literal["shared", "per-point"]
Design = Literal["independent", "stratified", "matched"]


@dataclass(frozen=True)
class SubNetworks:
    """n fixed sub-networks of a module, evaluated together."""

    network: Network
    masks: Masks
    matched: bool = False
    probabilities: bool = False
    block: int = 256

    @property
    def n(self) -> int:
        return self.masks.n

    @property
    def plan(self) -> str:
        """How draws are computed, in words: known from the first batch on."""
        return self.network.plan()

    def part(self, start: int, stop: int) -> "SubNetworks":
        """Some of the draws."""
        return replace(self, masks=self.masks.part(start, stop))

    @torch.inference_mode()
    def logits(self, batch: Any, positions: Indices | None = None) -> Float[Tensor, "pool draws classes"]:
        """A view of [draws, pool, classes]: the kernel takes it as it is."""
        x = as_tensor(batch)
        z = self.network(x, self.masks, positions)
        return z.transpose(0, 1)

    def __call__(self, batch: Any, positions: Indices | None = None) -> Draws:
        return self.logits(batch, positions).softmax(-1)

    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        return Moments.of(self.logits(batch, positions), logits=True, positions=positions)
