"""A measure of your own: a function of the moments of the draws, used in every place that takes one of balent's.

balent run digits --strategies examples/own_measure.py:runner_up,balentacq,random --seeds 1
balent run digits --strategies power:examples/own_measure.py:runner_up,random --seeds 1
balent score probs.npy -m examples/own_measure.py:runner_up -m bald --top 10
balent acquire models.py:classifier pool.npy -k 10 -s examples/own_measure.py:uncertain_and_disputed
"""

import numpy as np
import torch

import balent
from balent.maths.measures import bald, variation_ratio


def runner_up(m: balent.Moments) -> torch.Tensor:
    """p₂/p₁, the two largest mean probabilities: 1 at a tie, 0 if one class is certain."""
    top = m.mean.topk(2).values
    return top[:, 1] / top[:, 0]


def uncertain_and_disputed(m: balent.Moments) -> torch.Tensor:
    """√(BALD · (1 - max E[P])): probably wrong, and the draws disagree. Measures combine like functions."""
    return (bald(m) * variation_ratio(m)).sqrt()


def main() -> None:
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((1000, 1, 5)) + rng.standard_normal((1000, 50, 5))  # [pool, draws, classes]

    for measure in (runner_up, uncertain_and_disputed):
        picks = balent.select(logits, measure, k=5, logits=True)
        print(f"{measure.__name__:22s} {picks.indices}, two halves of the draws share {picks.stability:.0%}")

    # Strategies take the function too. `acquire` streams a pool that need not fit in memory; Power adds chance.
    sampled, pool = balent.Draws(logits, logits=True), np.arange(len(logits))
    for name, strategy in (
        ("TopK", balent.TopK(runner_up)),
        ("Power", balent.Power(uncertain_and_disputed, beta=8.0)),
        ("by name", f"{__file__}:runner_up"),  # as on the command line
    ):
        picks = balent.acquire(sampled, pool, 5, strategy, seed=0)
        print(f"{name:22s} {picks.indices.numpy()}")


if __name__ == "__main__":
    main()
