"""Lazy greedy coverage against the definition: every gain of every candidate, at every step."""

import pytest
import torch
from helpers.examples import normal

from balent.geometry import coverage
from balent.geometry.coverage import Coverage, nearest_random
from balent.geometry.distances import Points, unit


def rows(points, seed=0):
    return unit(normal(points, 4, seed=seed, dtype=torch.float32))


def kernel(a, b, scale):
    return (-(a[:, None].double() - b[None].double()).square().sum(-1) / scale).exp()


def by_enumeration(references, weights, scale, candidates, k, known=None):
    k_rs = kernel(references, candidates, scale)
    covered = torch.zeros(len(references)).double() if known is None else kernel(references, known, scale).amax(1)
    chosen = []
    for _ in range(k):
        gains = (weights[:, None] * (k_rs - covered[:, None]).clamp(min=0)).sum(0)
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        covered = torch.maximum(covered, k_rs[:, chosen[-1]])
    return chosen


@pytest.mark.parametrize("known", [None, 7])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("scale", [0.02, 0.3, 5.0])
def test_lazy_greedy_picks_what_full_enumeration_picks(monkeypatch, scale, stored, known):
    monkeypatch.setattr(coverage, "RENEWED", 3)
    monkeypatch.setattr(coverage, "STORED", 1 << 30 if stored else 0)
    references, candidates = rows(200), rows(90, seed=1)
    weights = torch.linspace(0.1, 1, 200, dtype=torch.float64)
    found = Coverage(Points.of(references), weights, scale)
    labelled = None if known is None else rows(known, seed=2)
    if labelled is not None:
        found.begin(Points.of(labelled))
    chosen, gains = found.greedy(Points.of(candidates), 20)
    assert chosen == by_enumeration(references, weights, scale, candidates, 20, labelled)
    assert gains == sorted(gains, reverse=True)


def test_a_copy_of_a_pick_gains_nothing():
    candidates = rows(6).repeat(3, 1)
    found = Coverage(Points.of(rows(50, seed=1)), torch.ones(50), 0.5)
    chosen, gains = found.greedy(Points.of(candidates), 18)
    assert sorted(i % 6 for i in chosen[:6]) == list(range(6))
    assert all(gain > 0 for gain in gains[:6])
    assert gains[6:] == [0] * 12


@pytest.mark.parametrize("scale", [0.01, 0.5])
def test_a_copy_gains_nothing_in_another_block_either(scale):
    """Rows of a product must not depend on where they stand in it by more than COPY."""
    once, count = unit(normal(300, 64, dtype=torch.float32)), 600
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    points = Points.of(once.repeat(2, 1)[order])
    chosen, gains = Coverage(points, torch.full((count,), 1 / count), scale).greedy(points, count)
    assert len({int(order[i]) % 300 for i in chosen[:300]}) == 300
    assert gains[300:] == [0] * 300


def test_a_copy_of_a_labelled_point_gains_nothing():
    known = rows(3)
    found = Coverage(Points.of(rows(50, seed=1)), torch.ones(50), 0.5)
    found.begin(Points.of(known))
    chosen, gains = found.greedy(Points.of(torch.cat([known, rows(4, seed=2)])), 7)
    assert sorted(chosen[:4]) == [3, 4, 5, 6]
    assert gains[4:] == [0, 0, 0]


def test_the_radius_by_its_definition():
    points = rows(40)
    apart = (points[:, None] - points[None]).double().square().sum(-1)[:, :9]
    apart[range(9), range(9)] = torch.inf
    assert nearest_random(Points.of(points), 9) == pytest.approx(float(apart.amin(1).mean()), rel=1e-5)


@pytest.mark.parametrize("points", [1, 2])
def test_few_points_have_a_radius(points):
    assert nearest_random(Points.of(rows(points)), 5) > 0
