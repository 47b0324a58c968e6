"""Cluster-Margin (Citovsky et al., 2021): the smallest margins, spread over clusters; for very large batches.

    candidates   the 10·k points of the smallest margin p₁ - p₂
    round-robin  one candidate of each cluster per round, the smallest cluster first, until there are k

So a cluster of many similar candidates does not fill the batch, and rare kinds of points come first. Everything is a
pass over the pool or over the candidates, and a sort: no pick is compared with another.

The paper clusters the pool once by hierarchical clustering, which compares all points with each other. Here centres
are k-means++ seeds of a random sample (geometry/clusters.py), and a candidate belongs to its nearest centre. The paper
draws from a cluster at random; here its smallest margin is first, so that only the sample is random.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from balent import adapt, checks
from balent.geometry.clusters import centres, nearest_centre
from balent.geometry.distances import Points
from balent.geometry.embedded import LARGEST
from balent.geometry.group_ranks import round_robin
from balent.maths.measures import margin
from balent.strategies.reservoir import at_random
from balent.strategies.top_k import ByMeasure, Top
from balent.types import Batch, Features, Indices, Needs, Picks, Pool, Sampled

SAMPLE = 1 << 10  # purpose of random numbers
PER_CLUSTER = 20  # points of the sample for each centre


@dataclass(frozen=True)
class ClusterMargin:
    """k of the `candidates`·k points of the smallest margin, one of each cluster per round; scores are 1 - margin.

    candidates   for each pick; 1 is the top k by margin
    clusters     of the pool: centres drawn from a random sample of 20 points each

    Picks are in the order of the rounds. One scan for margins, then features of the sample and of the candidates. Time:
    candidates·clusters·D beyond the draws. Memory: 20·clusters·D numbers, and some 200 bytes per candidate.
    """

    candidates: int = 10
    clusters: int = 1000
    needs: ClassVar[Needs] = Needs(features=True, again=True, noise=True)

    def __post_init__(self) -> None:
        if self.candidates < 1 or self.clusters < 1:
            raise ValueError(
                f"candidates and clusters must be 1 or more, but are {self.candidates} and {self.clusters}"
            )

    def __call__(self, sampled: Sampled, pool: Pool, k: int, *, generator: Generator) -> Picks:
        seed = generator.initial_seed()
        at = at_random(pool, seed, SAMPLE, PER_CLUSTER * self.clusters)
        sample = pool.read(sampled, at, checked_features)
        among = centres(sample, self.clusters, seed=seed, keys=pool.keys(at))
        size = min(self.candidates * k, pool.size or 0)
        best = pool.scan(sampled, Top(ByMeasure(margin, seed), size)).best
        cluster = pool.read(sampled, best.positions, NearestCentre(among))
        chosen = round_robin(cluster, k)
        return Picks(
            best.positions[chosen],
            best.scores[chosen],
            plan=f"{k:,} of the {size:,} smallest margins, in turn from {len(cluster.unique()):,} clusters (of "
            f"{len(among):,}, around centres from {len(at):,} random points)",
        )


@dataclass(frozen=True)
class NearestCentre:
    """A reading: the cluster of each point."""

    among: Points

    def __call__(self, sampled: Sampled, batch: Batch, positions: Indices) -> Tensor:
        return nearest_centre(Points.of(checked_features(sampled, batch, positions)), self.among)


def checked_features(sampled: Sampled, batch: Batch, positions: Indices) -> Features:
    """A reading: features that are numbers, and not too large to be compared."""
    h = adapt.features(sampled, batch)
    checks.features(h, Points.of(h).norms, LARGEST["float32"], positions)
    return h
