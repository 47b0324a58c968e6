"""A measure of one's own: a function of moments, used in every place that takes one of ours."""

import numpy as np
import torch

import balent
from balent.maths.measures import bald, variation_ratio


def runner_up(m: balent.Moments) -> torch.Tensor:
    """p₂/p₁, the two largest mean probabilities: 1 at a tie, 0 if one class is certain."""
    top = m.mean.topk(2).values
    return top[:, 1] / top[:, 0]


def doubtful_and_disputed(m: balent.Moments) -> torch.Tensor:
    """√(BALD · (1 - max E[P])): wrong and for want of knowledge. Measures combine like functions."""
    return (bald(m) * variation_ratio(m)).sqrt()


def main() -> None:
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((1000, 1, 5)) + rng.standard_normal((1000, 50, 5))  # [pool, draws, classes]

    for measure in (runner_up, doubtful_and_disputed):
        picks = balent.select(logits, measure, k=5, logits=True)
        print(f"{measure.__name__:22s} {picks.indices}, two halves of the draws share {picks.stability:.0%}")

    # Strategies take the function too. `acquire` streams a pool that need not fit in memory; Power adds chance.
    sampled, pool = balent.Draws(logits, logits=True), np.arange(len(logits))
    for strategy in (balent.TopK(runner_up), balent.Power(doubtful_and_disputed, beta=8.0)):
        picks = balent.acquire(sampled, pool, 5, strategy, seed=0)
        print(f"{type(strategy).__name__:22s} {picks.indices.numpy()}")


if __name__ == "__main__":
    main()
