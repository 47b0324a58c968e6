"""Noise that belongs to points: a function of seed and position, distributed as its name says."""

import pytest
import torch
from torch import Generator

from balent.maths import noise

AT = torch.arange(100_000)


def test_numbers_depend_on_the_position_and_not_on_what_is_beside_it():
    whole = noise.uniform(3, AT)
    order = torch.randperm(len(AT), generator=Generator().manual_seed(0))
    assert torch.equal(noise.uniform(3, AT[order]), whole[order])
    assert torch.equal(noise.normal(3, AT[7:9], 4), noise.normal(3, AT, 4)[7:9])


@pytest.mark.parametrize("seed", [-5, -(2**63), 0, 2**63 - 1, 2**63, 2**64 - 1])
def test_every_seed_that_a_generator_can_have_is_taken(seed):
    """A generator tells a negative seed as a number of 64 bits, which torch does not take back."""
    known = Generator().manual_seed(seed).initial_seed()
    assert torch.equal(noise.uniform(known, AT[:5]), noise.uniform(seed, AT[:5]))


def test_other_seeds_and_other_purposes_have_other_numbers():
    found = [noise.uniform(seed, AT[:9], purpose) for seed in (0, 1) for purpose in (0, 1)]
    assert all(not torch.equal(a, b) for i, a in enumerate(found) for b in found[:i])


def test_means_and_variances_are_those_of_the_distributions():
    """Of 100,000 numbers, within five standard errors: one of these eight fails by chance in 2 of a million tries."""
    expected = {
        noise.uniform: (0.5, 1 / 12),
        noise.exponential: (1.0, 1.0),
        noise.gumbel: (0.5772156649, 1.6449340668),
    }
    for draw, (mean, var) in expected.items():
        x = draw(1, AT)
        assert abs(float(x.mean()) - mean) < 5 * (var / len(AT)) ** 0.5
        assert abs(float(x.var()) / var - 1) < 0.05
    x = noise.normal(1, AT[:50_000], 2)
    assert abs(float(x.mean())) < 5 * (1 / x.numel()) ** 0.5
    assert abs(float(x.var()) - 1) < 0.05
