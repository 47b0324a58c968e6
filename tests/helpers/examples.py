"""Draws to test with: random ones from a seed, those of hypothesis, and the edges of the mathematics."""

import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def f64(x):
    return torch.tensor(x, dtype=torch.float64)


def normal(*shape, seed=0, dtype=torch.float64):
    """Standard normal numbers, the same for the same seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def logits(pool, draws, classes, seed=0, dtype=torch.float64):
    """Points from sure to doubtful, whose draws agree or not."""
    sure, spread = (torch.rand(pool, 1, 1, generator=torch.Generator().manual_seed(seed + i)) * 3 for i in (1, 2))
    return (sure * normal(pool, 1, classes, seed=seed + 3) + spread * normal(pool, draws, classes, seed=seed)).to(dtype)


def probabilities(pool, draws, classes, seed=0, dtype=torch.float64):
    return logits(pool, draws, classes, seed).softmax(-1).to(dtype)


@st.composite
def draws(draw, max_pool=4, max_draws=6, max_classes=5, min_draws=1):
    """Probabilities [pool, draws, classes] in float64: logits between -30 and 30, some classes masked."""
    sides = st.integers(1, max_pool), st.integers(min_draws, max_draws), st.integers(1, max_classes)
    shape = tuple(draw(side) for side in sides)
    z = torch.from_numpy(draw(hnp.arrays("float64", shape, elements=st.floats(-30, 30))))
    masked = torch.from_numpy(draw(hnp.arrays("bool", shape, elements=st.booleans())))
    masked[..., 0] = False
    return z.masked_fill(masked & draw(st.booleans()), -torch.inf).softmax(-1)


# One point at each edge that MATH.md lists, as [1, draws, classes].
EDGES = {
    "all draws agree": f64([[[0.3, 0.7], [0.3, 0.7], [0.3, 0.7]]]),
    "all draws agree on a uniform": torch.full((1, 3, 4), 0.25, dtype=torch.float64),
    "all draws nearly agree": f64([[[0.3, 0.7], [0.3 + 1e-15, 0.7 - 1e-15], [0.3, 0.7]]]),
    "all draws are sure of one class": f64([[[1, 0, 0], [1, 0, 0], [1, 0, 0]]]),
    "a mean of 1 - 1e-9": f64([[[1 - 1e-9, 1e-9], [1 - 2e-9, 2e-9], [1 - 3e-9, 3e-9]]]),
    "a mean of 1 - 1e-15": f64([[[1, 1e-15], [1, 3e-15], [1, 2e-15]]]),
    "a mean of 1e-300": f64([[[1, 1e-300], [1, 3e-300], [1, 2e-300]]]),
    "a mean of 1e-320, which is no normal number": f64([[[1, 1e-320], [1, 3e-320], [1, 2e-320]]]),
    "a float32 probability that rounds to 1": torch.tensor([[[1, 1e-30], [1, 3e-30], [1, 2e-30]]]),
    "one-hot draws that disagree": f64([[[1, 0, 0], [0, 1, 0], [0, 0, 1]]]),
    "one draw of three disagrees with a one-hot": f64([[[1, 0], [1, 0], [0, 1]]]),
    "nearly one-hot draws that disagree": f64([[[1, 1e-18], [1e-18, 1], [1, 1e-18]]]),
    "a masked class": f64([[[0.3, 0, 0.7], [0.6, 0, 0.4], [0.5, 0, 0.5]]]),
    "a class masked in one draw": f64([[[0.3, 0.1, 0.6], [0.6, 0, 0.4], [0.5, 0, 0.5]]]),
    "one draw": f64([[[0.2, 0.3, 0.5]]]),
    "one class": f64([[[1], [1], [1]]]),
    "one draw of one class": f64([[[1]]]),
    "ten thousand classes": probabilities(1, 3, 10_000),
    "ten thousand classes, all alike": torch.full((1, 3, 10_000), 1e-4, dtype=torch.float64),
}
