"""MC dropout (Gal & Ghahramani, 2016): a network with dropout left on is a draw from its posterior.

Any module will do that has dropout of any kind. Only dropout is random; batch norm and all else stay
in evaluation mode. A draw is a network: its masks are a function of the seed, the layer and the
draw (`masks="shared"`), or of the position of a point as well (`masks="per-point"`).
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from balent.lookup import lookup
from balent.maths.moments import Moments
from balent.predictors.dropout.analytic import Analytic, matched
from balent.predictors.dropout.chain import Stage
from balent.predictors.dropout.masks import Masks
from balent.predictors.dropout.network import Known, Network
from balent.predictors.inputs import Batch, as_tensor, fitted
from balent.predictors.last_layer import Features, features_of
from balent.predictors.tasks import CLASSES
from balent.predictors.training import FromTraining, Progress, Trained, Training
from balent.types import Indices, Probabilities, Task, Traits

Design = Literal["independent", "stratified", "matched"]
DESIGNS = ("independent", "stratified", "matched")


class MCDropout(FromTraining):
    """Posterior samples of a module with dropout. Settings of `Training` by name: MCDropout(model, epochs=50).

    model          a torch module with dropout of any kind
    probabilities  the module ends in a softmax: its outputs are probabilities, not logits
    fast           False: run the whole module once per draw, without any shortcut
    features       the name of the layer whose inputs are the features of a point; else the last linear layer
    """

    per_point = True  # masks can be drawn per point

    def __init__(
        self,
        model: nn.Module,
        *,
        probabilities: bool = False,
        fast: bool = True,
        features: str | None = None,
        **training: Any,
    ) -> None:
        if features is not None:
            lookup(dict(model.named_modules()), features, "layer")
        self.model, self.probabilities, self.fast, self.features = model, probabilities, fast, features
        self.trained = Trained("model", model, Training(**training))
        self._known: Known | None = None  # of the first network that was sampled: its plan holds for other weights too

    def fit(self, labelled: Any, *, generator: Generator, progress: Progress | None = None) -> None:
        """Train on all labelled points, from the initial weights (with warm_start: from those of the last fit)."""
        self.learn(labelled, CLASSES, generator=generator, progress=progress)

    def learn(self, labelled: Any, task: Task, *, generator: Generator, progress: Progress | None = None) -> None:
        """Train on labels of any task."""
        self.trained.fit(labelled, task, generator=generator, progress=progress)

    def sample(
        self, n: int | Literal["analytic"], *, seed: int = 0, masks: str = "shared", design: Design = "independent"
    ) -> "SubNetworks | Analytic":
        """n fixed sub-networks; or "analytic": moments of the last layer's dropout without any draw.

        design: "independent" masks; "stratified" ones, each unit dropped equally often over the draws; or
        "matched", stratified and with each logit's mean and variance over draws made exact (last-layer dropout).
        """
        _check(n, masks, design)
        network, features = (
            Network(self.model, fast=self.fast, known=self._known),
            features_of(self.model, self.features),
        )
        self._known = network.known
        if n == "analytic":
            return Analytic(network, features)
        drawn = Masks(seed, int(n), masks == "per-point", "independent" if design == "independent" else "stratified")
        return SubNetworks(network, drawn, design == "matched", self.probabilities, features)


@dataclass(frozen=True)
class SubNetworks:
    """n fixed sub-networks of a module, evaluated together."""

    network: Network
    masks: Masks
    matched: bool = False
    probabilities: bool = False
    features_of: Features | None = None
    block: int = field(default=256)

    @property
    def n(self) -> int:
        return self.masks.n

    @property
    def traits(self) -> Traits:
        """Stratified and matched draws depend on each other; masks per point are not shared."""
        independent = self.masks.design == "independent"
        known = self.features_of is not None
        return Traits(self.n, self.block, not self.masks.per_point, independent, self.plan, features=known)

    @property
    def plan(self) -> str:
        """How draws are computed, in words: known from the first batch on."""
        return self.network.plan

    def to(self, device: str) -> "SubNetworks":
        """The same functions, evaluated on another device."""
        features = None if self.features_of is None else self.features_of.to(device)
        return replace(self, network=self.network.to(device), features_of=features)

    def part(self, start: int, stop: int) -> "SubNetworks":
        """Some of the draws."""
        return replace(self, masks=self.masks.part(start, stop))

    @torch.inference_mode()
    def outputs(self, batch: Any, positions: Indices | None = None) -> Tensor:
        """The outputs of all draws, of any shape: [batch, draws, …]."""
        if self.probabilities or self.matched:
            raise ValueError(
                "items with parts need the module's logits and independent draws; take its softmax off, and leave "
                "probabilities=True and design='matched' out"
            )
        return self.network(fitted(self.network.like, batch), self.masks, positions).transpose(0, 1)

    @torch.inference_mode()
    def pooled(self, batch: Any, counts: Tensor | None) -> Float[Tensor, "pool features"]:
        """What the layer of the features sees, averaged over the places that count."""
        if self.features_of is None:
            raise ValueError("the model has no linear layer whose inputs could be its features; name one: features='…'")
        return self.features_of.pooled(as_tensor(batch), counts)

    @torch.inference_mode()
    def logits(self, batch: Any, positions: Indices | None = None) -> Float[Tensor, "pool draws classes"]:
        """A view of [draws, pool, classes]: the kernel takes it as it is."""
        x: Batch = fitted(self.network.like, batch)
        z = self.network(x, self.masks, positions)
        if z.ndim != 3:
            raise ValueError(
                f"the model must give [batch, classes] for {z.shape[1]} points, but gave shape {tuple(z.shape[1:])}; "
                "where an item has many parts, wrap the predictor: balent.Parts(MCDropout(model), …)"
            )
        if self.matched:
            z = matched(z, *_last_layer(self.network, x))
        return (_logarithm(z) if self.probabilities else z).transpose(0, 1)

    def __call__(self, batch: Any, positions: Indices | None = None) -> Probabilities:
        return self.logits(batch, positions).softmax(-1)

    def moments(self, batch: Any, positions: Indices | None = None) -> Moments:
        [m] = self.groups(batch, positions, 1)
        return m

    def groups(self, batch: Any, positions: Indices | None, count: int) -> list[Moments]:
        """The moments of groups of draws: for standard errors."""
        logits = self.logits(batch, positions)
        if not self.probabilities:
            _check_logits(logits)
        return Moments.groups(logits, min(count, self.n), logits=True, positions=positions)

    @torch.inference_mode()
    def features(self, batch: Any) -> Float[Tensor, "pool features"]:
        """The inputs of the last linear layer, or of the one named, without dropout."""
        if self.features_of is None:
            raise ValueError("the model has no linear layer whose inputs could be its features")
        return self.features_of(as_tensor(batch))


def _last_layer(network: Network, batch: Batch) -> tuple[Tensor, Stage]:
    found = network.last_layer(batch)
    if found is None:
        raise ValueError(
            f"exact moments of logits need dropout in the last layer alone, but this network runs {network.plan}; "
            'use design="stratified", or draw more'
        )
    return found


def _check(n: int | str, masks: str, design: str) -> None:
    if masks not in ("shared", "per-point"):
        raise ValueError(f'masks must be "shared" or "per-point", but is {masks!r}')
    if design not in DESIGNS:
        raise ValueError(f"design must be one of {', '.join(DESIGNS)}, but is {design!r}")
    if design != "independent" and masks == "per-point":
        raise ValueError(f'masks per point are independent; design="{design}" needs masks="shared"')
    if n != "analytic" and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(f'n must be a positive number of draws, or "analytic", but is {n!r}')


def _logarithm(p: Tensor) -> Tensor:
    """Logits of a softmax that the module has applied already."""
    if ((p < 0) | (p > 1 + 1e-4)).any() or (p.sum(-1) - 1).abs().max() > 1e-3:
        raise ValueError(
            "probabilities=True was given, but the model's outputs do not sum to 1; leave it out if they are logits"
        )
    return p.log()


def _check_logits(z: Tensor) -> None:
    """Outputs that all are distributions are hardly logits: softmax of a softmax would be nearly uniform."""
    if z.shape[-1] > 1 and bool((z >= 0).all()) and bool(((z.sum(-1) - 1).abs() < 1e-4).all()):
        raise ValueError(
            "the model must give logits, but its outputs all sum to 1, as probabilities do; "
            "take its softmax off, or pass MCDropout(model, probabilities=True)"
        )
