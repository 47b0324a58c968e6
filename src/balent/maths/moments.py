"""Moments of the draws: all that measures need, so the draws themselves are not kept.

They are float64 whatever the draws are: BALD and BalEnt are differences, and float32 sums would
leave little of them. A class probability near 1 is represented by `rest`, the sum of the other
classes, because 1 - float32(p) has no digits left there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from balent import checks, kernels
from balent.maths import beta
from balent.maths.parts import Items
from balent.notebook_cards import of_moments
from balent.types import Array, ByClass, Indices, Scores

TENSORS = ("mean", "var", "within", "entropy")


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of n draws at each point of a pool. `a + b` merges draws, `m[2:5]` slices the pool.

    The variance of "the label is c" has two parts, E[P] (1 - E[P]) = within + var: the uncertainty
    within each draw, and the disagreement between draws.

    >>> m = Moments.of(torch.tensor([[[0.9, 0.1], [0.5, 0.5]]]))  # 1 point, 2 draws, 2 classes
    >>> m.mean, m.var
    (tensor([[0.7000, 0.3000]], dtype=torch.float64), tensor([[0.0400, 0.0400]], dtype=torch.float64))
    """

    n: int  # draws
    mean: ByClass  # E[P]
    var: ByClass  # Var P, the population variance: a Beta with it always exists
    within: ByClass  # E[P(1 - P)]
    entropy: Scores  # E_ω H(Y|ω), the mean entropy of the draws
    items: Items | None = None  # where items have many parts: each row is a part

    @classmethod
    def of(cls, draws: Array, *, logits: bool = False, positions: Indices | None = None) -> "Moments":
        """The moments of probabilities, or of logits, [pool, draws, classes] in any memory layout.

        `positions`: the positions of these points in a larger pool, for error messages.
        """
        [m] = cls.groups(draws, 1, logits=logits, positions=positions)
        return m

    @classmethod
    def groups(
        cls, draws: Array, count: int = 2, *, logits: bool = False, positions: Indices | None = None
    ) -> "list[Moments]":
        """The moments of groups of draws, for standard errors. Their sum is the moments of all draws.

        draws      probabilities, or logits, [pool, draws, classes] in any memory layout
        count      the number of groups; draw k belongs to group k mod count
        logits     the numbers are logits
        positions  the positions of these points in a larger pool, for error messages
        """
        x = checks.draws(draws)
        checks.enough_draws(x.shape[1], count)
        found = []
        for first in range(count):
            part = x[:, first::count]
            mean, var, within, entropy, bad = kernels.moments(part, logits=logits)
            if bad is not None:
                raise checks.bad_row(x, bad[0], first + bad[1] * count, logits=logits, positions=positions)
            found.append(cls(part.shape[1], mean, var, within, entropy))
        return found

    @classmethod
    def cat(cls, blocks: "Iterable[Moments]") -> "Moments":
        """The moments of several blocks of the pool, concatenated."""
        blocks = list(blocks)
        if len({m.n for m in blocks}) != 1:
            raise ValueError(
                f"blocks of a pool must have the same number of draws, but have {sorted({m.n for m in blocks})}; "
                "use + to merge draws of the same points"
            )
        if any(m.items is not None for m in blocks):
            raise ValueError("moments of parts belong to the items of their block; score each block by itself")
        mean, var, within, entropy = (torch.cat([getattr(m, name) for m in blocks]) for name in TENSORS)
        return cls(blocks[0].n, mean, var, within, entropy)

    def _repr_html_(self) -> str:
        return of_moments(self)

    @property
    def shares(self) -> ByClass:
        """What is predicted of each point: E[P]; of items with parts, the mean of that over their parts."""
        return self.mean if self.items is None else self.items.shares(self.mean)

    @cached_property
    def rest(self) -> ByClass:
        """1 - E[P], exact near 0 as well: E[P] (1 - E[P]) = within + var, over E[P]."""
        return torch.where(self.mean > 0.5, (self.within + self.var) / self.mean, 1 - self.mean)

    @cached_property
    def betas(self) -> tuple[ByClass, ByClass]:
        """a and b of the Beta marginals: P_c ~ Beta(a, b)."""
        return beta.fit(self.mean, self.rest, self.within, self.var, self.n)

    @cached_property
    def predictive_entropy(self) -> Scores:
        """H(Y) = -Σ_c E[P_c] log E[P_c], the entropy of the label."""
        top, index = self.mean.max(-1, keepdim=True)
        other = (self.within.gather(-1, index) + self.var.gather(-1, index)) / top  # 1 - top: log1p loses no digit
        log = self.mean.clamp(min=torch.finfo(self.mean.dtype).tiny).log()  # 0 log 0 = 0
        surprise = -log.scatter_(-1, index, torch.where(top > 0.5, torch.log1p(-other), top.log()))
        return (self.mean * surprise).sum(-1)

    @cached_property
    def posterior_uncertainty(self) -> Scores:
        """U = Σ_c E[P_c] h(P_c⁺) <= 0, P_c⁺ ~ Beta(a + 1, b): entropy of a class probability once its class is seen."""
        compiled = kernels.posterior_terms(self.mean, self.var, self.within, self.n, beta.NEAR)
        if compiled is None:
            return (self.mean * beta.plus_entropy(*self.betas)).sum(-1)
        terms, near = compiled
        return (beta.near_uniform(self.mean, *self.betas, otherwise=terms) if near else terms).sum(-1)

    def __add__(self, other: "Moments") -> "Moments":
        """Chan, Golub & LeVeque (1983): exact where E[P²] - E[P]² would cancel."""
        if self.mean.shape != other.mean.shape:
            raise ValueError(
                f"moments can be added only for the same points, but their shapes are {tuple(self.mean.shape)} and "
                f"{tuple(other.mean.shape)}; use Moments.cat to put blocks of a pool together"
            )
        n = self.n + other.n
        share, delta = other.n / n, other.mean - self.mean
        return Moments(
            n,
            self.mean + share * delta,
            self.var + share * (other.var - self.var) + share * (1 - share) * delta.square(),
            self.within + share * (other.within - self.within),
            self.entropy + share * (other.entropy - self.entropy),
            self.items,
        )

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, points: "slice | Tensor") -> "Moments":
        return Moments(self.n, self.mean[points], self.var[points], self.within[points], self.entropy[points])
