"""Greedy coverage: the points whose neighbourhoods together hold as much weight as possible.

    k(r, s) = exp(−|h_r − h_s|² / s²)        c_r = max k(r, l) over the points l that are labelled or picked
    next    = argmax_s Σ_r w_r [k(r, s) − c_r]₊

Facility location: gains only shrink as points are picked. So a gain from earlier is a bound, and a candidate whose gain
is up to date and beats all bounds is the best of all (lazy greedy: Minoux, 1978). A copy of a picked point gains 0.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from balent.geometry.distances import CACHED, Points, squared

STORED = 1 << 30  # bytes of kernel values between candidates and references; of more they are computed again
RENEWED = 16  # gains that are brought up to date together; twice as many each time that this is not enough
COPY = 1e-6  # of k: what differs by less is the same point, but for rounding
WITNESSES = 2000  # references that the radius is measured at

Kernel = Float[Tensor, "some references"]


def nearest_random(references: Points, count: int) -> float:
    """The mean squared distance of a random point to the nearest of `count` others; 1 for a single point."""
    some, among = references[:WITNESSES], references[:count]
    apart = squared(some, among).fill_diagonal_(torch.inf)
    return float(apart.amin(1).double().mean()) if len(among) > 1 else 1.0


class Coverage:
    """References with weights, and how well each is covered so far."""

    def __init__(self, references: Points, weights: Float[Tensor, " references"], scale: float) -> None:
        self.references, self.weights, self.scale = references, weights.float(), scale
        self.covered = torch.zeros(len(references))

    def begin(self, known: Points) -> None:
        """Points that cover from the beginning."""
        for i in range(0, len(known), CACHED):
            self.covered = torch.maximum(self.covered, self.kernel(known[i : i + CACHED]).amax(0))

    def greedy(self, candidates: Points, k: int) -> tuple[list[int], list[float]]:
        """k candidates, each the one of the largest gain given those before it, the first of them; and their gains."""
        kernels = Kernels(self, candidates)
        gains = torch.cat([self._gains(block) for block in kernels.blocks()])
        current = torch.zeros(len(candidates), dtype=torch.int64)  # picks that each gain knows of
        chosen: list[int] = []
        scores: list[float] = []
        size = RENEWED
        while len(chosen) < k:
            best = int(gains.argmax())
            if int(current[best]) < len(chosen) and gains[best] > 0:
                at, size = gains.topk(min(size, len(gains))).indices, 2 * size
                gains[at] = torch.minimum(gains[at], self._gains(kernels[at]))
                current[at] = len(chosen)
                continue
            chosen.append(best)
            scores.append(float(gains[best]))
            gains[best] = -1  # never again
            self.covered = torch.maximum(self.covered, kernels[torch.tensor([best])][0])
            size = RENEWED
        return chosen, scores

    def kernel(self, some: Points, out: Kernel | None = None) -> Kernel:
        """k of some points and all references; in `out`, if it is given."""
        return squared(some, self.references, out).div_(-self.scale).exp_()

    def _gains(self, kernel: Kernel) -> Float[Tensor, " some"]:
        """What each point would add."""
        return (kernel - (self.covered + COPY)).clamp_min_(0).mv(self.weights).double()


class Kernels:
    """Rows of kernel values by candidate: those of `blocks` are kept where they fit in memory, else computed again."""

    def __init__(self, coverage: Coverage, candidates: Points) -> None:
        self.coverage, self.candidates = coverage, candidates
        fits = len(candidates) * len(coverage.references) * 4 <= STORED
        size = len(candidates), len(coverage.references)
        # numpy's, since it asks the system for huge pages: touching 36 MB for the first time costs a fifth of all else.
        self.kept = torch.from_numpy(np.empty(size, np.float32)) if fits else None

    def blocks(self) -> Iterator[Kernel]:
        """All rows in order, as many at a time as stay in the cache."""
        for i in range(0, len(self.candidates), CACHED):
            place = None if self.kept is None else self.kept[i : i + CACHED]
            yield self.coverage.kernel(self.candidates[i : i + CACHED], place)

    def __getitem__(self, at: Tensor) -> Kernel:
        return self.coverage.kernel(self.candidates[at]) if self.kept is None else self.kept.index_select(0, at)
