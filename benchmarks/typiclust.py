"""TypiClust (Hacohen, Dekel and Weinshall, 2022), for comparisons: the most typical point of each large cluster.

    python benchmarks/bench_gain.py --strategies benchmarks/typiclust.py:TypiClust

k-means with L + K clusters, 500 at most (by mini-batches for more than 50, as its authors do it). Clusters are taken in
turn: those with the fewest labels first, of these the largest. Of a cluster comes the point whose 20 nearest
neighbours in it are nearest.
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import torch
from sklearn.cluster import KMeans, MiniBatchKMeans

import balent
from balent import adapt
from balent.geometry.distances import unit
from balent.types import Needs, Pool, Sampled

CLUSTERS, SMALL, NEAREST = 500, 5, 20


@dataclass(frozen=True)
class TypiClust:
    needs: ClassVar[Needs] = Needs(again=True, noise=True, labelled=True, model=False)

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: torch.Generator) -> balent.Picks:
        rest = unit(pool.read(sampled, pool.positions, adapt.vectors))
        known = pool.labelled
        old = rest[:0] if known is None else unit(known.read(sampled, known.positions, adapt.vectors))
        cluster = clusters(torch.cat([rest, old]), min(CLUSTERS, len(old) + k), generator.initial_seed())
        mine, theirs = cluster[: len(rest)], cluster[len(rest) :]
        labels = torch.bincount(theirs, minlength=int(cluster.max()) + 1)
        size = torch.bincount(mine, minlength=len(labels))
        left = torch.ones(len(rest), dtype=torch.bool)
        chosen: list[int] = []
        while len(chosen) < k:
            c = min(range(len(size)), key=lambda c: (size[c] < SMALL, int(labels[c]), -int(size[c])))
            at = ((mine == c) & left).nonzero().flatten()
            if not len(at):
                size[c], labels[c] = 0, 1 << 30
                continue
            chosen.append(int(at[typicality(rest[at]).argmax()]))
            left[chosen[-1]] = False
            labels[c] += 1
        return balent.Picks(pool.positions[chosen], torch.arange(k, 0, -1).double())


def clusters(x: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    make = KMeans if n <= 50 else MiniBatchKMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different points than clusters
        return torch.from_numpy(make(n, n_init=1, random_state=seed % 2**32).fit(x.numpy()).labels_).long()


def typicality(x: torch.Tensor) -> torch.Tensor:
    """One over the mean distance of each point to its nearest others."""
    if len(x) == 1:
        return torch.ones(1)
    apart = torch.cdist(x, x).fill_diagonal_(torch.inf)
    return 1 / apart.topk(min(NEAREST, len(x) - 1), largest=False).values.mean(1).clamp(min=1e-9)
