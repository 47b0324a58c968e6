"""A small pool with labels of two classes, and Learners over it."""

import torch
from torch import nn

import balent
from helpers.small import seeded

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


def network():
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2))


def learner(directory=None, *, weights=0, warm_start=False, **settings):
    predictor = balent.MCDropout(seeded(network, seed=weights), epochs=3, warm_start=warm_start)
    return balent.Learner(predictor, X, directory=directory, **{"draws": 8, "say": lambda word: None, **settings})


def answer(driven, picks):
    driven.tell(picks.indices, Y[picks.indices])


def rounds(driven, n, k=4):
    """Picks of n rounds of ask and tell."""
    found = []
    for _ in range(n):
        picks = driven.ask(k)
        answer(driven, picks)
        found.append(picks.indices.tolist())
    return found
