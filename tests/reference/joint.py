"""Joint distributions of labels by enumeration: every configuration, every sum written out. Slow, obviously right."""

import itertools
import math

import torch


def joint_entropy(draws, batch):
    """H(Y_1..Y_b) of the points at these positions: all C^b configurations, p(y) = mean over draws of the product."""
    total = 0.0
    for labels in itertools.product(range(draws.shape[2]), repeat=len(batch)):
        product = torch.ones(draws.shape[1], dtype=torch.float64)
        for i, y in zip(batch, labels, strict=True):
            product = product * draws[i, :, y].double()
        p = float(product.mean())
        total -= p * math.log(p) if p > 0 else 0.0
    return total


def noise(draws, i):
    """E_ω H(Y | ω) at point i."""
    p = draws[i].double()
    return float(-(p * p.clamp(min=1e-300).log()).sum(-1).mean())


def batch_bald(draws, batch):
    """I(Y_1..Y_b; ω)."""
    return joint_entropy(draws, batch) - sum(noise(draws, i) for i in batch)


def greedy(draws, k):
    """The greedy batch and its gains: every point tried at every step, the first of those that tie within rounding."""
    batch, gains = [], []
    for _ in range(k):
        before = batch_bald(draws, batch) if batch else 0.0
        left = [i for i in range(len(draws)) if i not in batch]
        tried = [batch_bald(draws, [*batch, i]) - before for i in left]
        gain = max(tried)
        batch.append(next(i for i, g in zip(left, tried, strict=True) if g >= gain - 1e-11))
        gains.append(gain)
    return batch, gains


def updated(draws, x, y):
    """p̂(·|x'; x, y) at every x', [pool, classes], with weights w_m ∝ p_m(y|x)."""
    w = draws[x, :, y] / draws[x, :, y].sum()
    return torch.einsum("m,nmc->nc", w, draws)


def core_mse_five_axes(draws, reference):
    """MATH.md's sum: (1/|X'|) Σ_y p(y|x) Σ_x' Σ_m Σ_y' (p_m(y'|x') - p̂(y'|x'; x,y))², for every x."""
    scores = []
    for x in range(len(draws)):
        total = 0.0
        for y in range(draws.shape[2]):
            p = float(draws[x, :, y].mean())
            if p == 0:
                continue  # a label that never comes
            after = updated(draws, x, y)
            for other in reference:
                for m in range(draws.shape[1]):
                    total += p * float((draws[other, m] - after[other]).square().sum())
        scores.append(total / len(reference))
    return torch.tensor(scores, dtype=torch.float64)


def core_mse(draws, reference):
    """The expected fall of the squared error: Σ_y p(y|x) of the mean over X' of Σ_y' (p̂ - p̄)²."""
    return _expected(draws, reference, lambda after, before: (after - before).square().sum(-1))


def core_log(draws, reference):
    """The expected fall of log loss: Σ_y p(y|x) of the mean over X' of KL(p̂ ‖ p̄)."""

    def divergence(after, before):
        tiny = 1e-300
        return (after * (after.clamp(min=tiny).log() - before.clamp(min=tiny).log())).sum(-1)

    return _expected(draws, reference, divergence)


def _expected(draws, reference, change):
    before, scores = draws.mean(1), []
    for x in range(len(draws)):
        p = draws[x].mean(0)
        terms = [
            p[y] * change(updated(draws, x, y)[reference], before[reference]).mean()
            for y in range(draws.shape[2])
            if p[y] > 0
        ]
        scores.append(float(sum(terms)))
    return torch.tensor(scores, dtype=torch.float64)


def mutual_information(draws, x, other):
    """I(Y; Y') of the labels of two points."""
    return joint_entropy(draws, [x]) + joint_entropy(draws, [other]) - joint_entropy(draws, [x, other])
