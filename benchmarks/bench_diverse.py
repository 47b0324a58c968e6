"""Which way keeps near-copies out of a batch best?

Digits, learnt from 20 labels on, 20 more a round, by BalEntAcq under shared masks (so that copies tie). The pool is the
digits three times over, the same with a little noise on every copy, and the digits once. Of the 10·K best points:

  top        the k best
  threshold  down the ranking, past whatever is nearer than 0.2 of the typical distance to a point picked or labelled
  seeding    k-means++ from the best one on, squared distances weighted by rank; not told what is labelled
  farthest   farthest first from all that is picked or labelled (greedy k-centre)
  stands     what stands for most others, beside all that is picked or labelled (greedy facility location):
             `diverse:balentacq` as it is; and of 4·K, of 30·K

beside random, badge and core_set, which ignore the measure. Printed: the share of picks that are copies of a
point picked or labelled before, accuracy with 60 and with 120 labels, and its mean over all rounds; means over seeds,
with the standard error of the last. Strategies of one seed share start set, first weights and noise. --data takes
another data set or an .npz, as `balent run` does: its first 5,000 points are the pool, three times over and once.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from balent import Diverse, Learner, MCDropout, TopK
from balent.data.sources import Data, load
from balent.geometry.distances import Embedded, Points, nearest, squared
from balent.geometry.embedded import of_labelled
from balent.geometry.k_centre import Cover
from balent.geometry.k_means_pp import seeds
from balent.geometry.rows import Rows
from balent.maths.measures import balentacq
from balent.paper.experiments import mlp
from balent.strategies import strategy
from balent.strategies.diverse import typical
from balent.strategies.shortlist import shortlist
from balent.strategies.top_k import ByMeasure
from balent.types import Needs, Picks, Strategy

POOLS = {"3x": (3, 0.0), "3x, noise 0.1": (3, 0.1), "1x": (1, 0.0)}  # copies, sd of the noise on pixels in [0, 1]
POINTS = 5000
START, K, TOTAL = 20, 20, 120
EPOCHS, DRAWS, SEEDS = 60, 50, 4
TIMES, NEAR = 10, 0.2
Way = Callable[[Points, Points | None, int, Generator], list[int]]


def threshold(points: Points, known: Points | None, k: int, generator: Generator) -> list[int]:
    """Leaders down the ranking; if they are too few, the best of what is left."""
    reach = NEAR**2 * typical(points)
    free = torch.ones(len(points), dtype=torch.bool) if known is None else nearest(points, known) > reach
    near = squared(points, points) <= reach
    chosen: list[int] = []
    for i in range(len(points)):
        if free[i]:
            chosen.append(i)
            free &= ~near[i]
    return [*chosen, *(i for i in range(len(points)) if i not in chosen)][:k]


def seeding(points: Points, known: Points | None, k: int, generator: Generator) -> list[int]:
    rows = Rows(1 << 30)
    rows.add(points.features)
    weights = 1 - torch.arange(len(points)) / len(points)
    return seeds(
        Embedded(rows, None, points.norms),
        k,
        0,
        seed=generator.initial_seed(),
        positions=torch.arange(len(points)),
        weights=weights,
    )[0].tolist()


def farthest(points: Points, known: Points | None, k: int, generator: Generator) -> list[int]:
    cover = Cover(points)
    if known is not None:
        cover.begin(known)
    while len(cover.chosen) < k:
        cover.choose(cover.farthest())
    return cover.chosen


@dataclass(frozen=True)
class Among:
    """A way to choose among the best."""

    way: Way
    needs: ClassVar[Needs] = Needs(features=True, labelled=True)

    def __call__(self, sampled: Any, pool: Any, k: int, *, generator: Generator) -> Picks:
        found = shortlist(sampled, pool, k, TIMES * k, ByMeasure(balentacq, generator.initial_seed()))
        known = of_labelled(sampled, pool)
        rows = torch.tensor(sorted(self.way(found.points, known, k, generator)))
        return Picks(found.positions[rows], found.scores[rows])


WAYS: dict[str, Strategy] = {
    "top": TopK(balentacq),
    "threshold": Among(threshold),
    "seeding": Among(seeding),
    "farthest": Among(farthest),
    "stands": Diverse(balentacq, times=TIMES),
    "  of 4·K": Diverse(balentacq, times=4),
    "  of 30·K": Diverse(balentacq, times=30),
    "random": strategy("random"),
    "badge": strategy("badge"),
    "core_set": strategy("core_set"),
}


def learnt(data: Data, chosen: Strategy, copies: int, noise: float, seed: int) -> tuple[float, list[float]]:
    """The share of copies among the picks, and the accuracy of each round."""
    x, y = torch.cat([data.x_train] * copies), data.y_train.repeat(copies)
    x = x + noise * torch.randn(x.shape, generator=Generator().manual_seed(100 + seed))
    torch.manual_seed(seed)
    learner = Learner(MCDropout(mlp(data), epochs=EPOCHS), x, chosen, seed=seed, draws=DRAWS, masks="shared")
    accuracy, repeated, points = [], 0, len(data.y_train)
    while len(learner.told) < TOTAL:
        before = {i % points for i in learner.told}
        picks = torch.as_tensor(learner.ask(K if before else START).indices)
        repeated += (len(picks) - len({i % points for i in picks.tolist()} - before)) if before else 0
        learner.tell(picks, y[picks])
        accuracy.append(accuracy_of(learner, data.x_test, data.y_test))
    return repeated / (TOTAL - START), accuracy


def accuracy_of(learner: Learner, x: Tensor, y: Tensor) -> float:
    return float((learner.sampled().moments(x).mean.argmax(1) == y).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--data", default="digits", help="a name of `balent list`, or an .npz")
    parser.add_argument("--only", default=",".join(name.strip() for name in WAYS), help="some of the ways, with commas")
    given = parser.parse_args()
    seeds_of = range(given.seeds)
    torch.set_num_threads(1)  # networks so small are no faster with more
    whole = load(given.data)
    data = replace(whole, x_train=whole.x_train[:POINTS], y_train=whole.y_train[:POINTS])
    for pool, (copies, noise) in POOLS.items():
        if noise and given.data != "digits":  # whose scale the noise belongs to
            continue
        print(f"{pool:14s} copies     60    120   mean    +-", flush=True)
        for name, chosen in WAYS.items():
            if name.strip() not in given.only.split(","):
                continue
            shares, curves = zip(*(learnt(data, chosen, copies, noise, seed) for seed in seeds_of), strict=True)
            at_60, at_120 = (statistics.mean(curve[round(n / K) - 1] for curve in curves) for n in (60, 120))
            means = [statistics.mean(curve) for curve in curves]
            error = statistics.stdev(means) / len(means) ** 0.5 if len(means) > 1 else float("nan")
            row = f"{at_60:6.3f} {at_120:6.3f} {statistics.mean(means):6.3f} {error:5.3f}"
            print(f"  {name:12s} {statistics.mean(shares):6.2f} {row}", flush=True)


if __name__ == "__main__":
    main()
