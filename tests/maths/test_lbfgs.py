"""Minima that are known, of several problems at once."""

import torch
from torch.testing import assert_close

from balent.maths.lbfgs import minimise


def quadratics(scales, minima):
    def objective(w):
        apart = w - minima
        return 0.5 * (scales * apart.square()).sum(1), scales * apart

    return objective


def test_quadratics_of_different_curvature_reach_their_minima():
    generator = torch.Generator().manual_seed(0)
    minima = torch.randn(5, 30, generator=generator, dtype=torch.float64)
    scales = torch.logspace(-2, 2, 30, dtype=torch.float64) * torch.tensor([0.1, 1, 3, 10, 100]).double()[:, None]
    found = minimise(quadratics(scales, minima), torch.zeros(5, 30, dtype=torch.float64), 1e-11)
    assert_close(found, minima, rtol=0, atol=1e-6)


def test_a_problem_at_its_minimum_stays_there():
    minima = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double()
    start = torch.stack([minima[0], torch.zeros(2).double()])
    found = minimise(quadratics(torch.ones(2, 2).double(), minima), start, 1e-10)
    assert torch.equal(found[0], minima[0])
    assert_close(found[1], minima[1])


def test_a_function_that_is_not_quadratic():
    """Σ log cosh: flat far away, so that the first steps are too long."""

    def objective(w):
        return w.cosh().log().sum(1), w.tanh()

    found = minimise(objective, torch.tensor([[8.0, -3.0], [0.1, 20.0]]).double(), 1e-9)
    assert_close(found, torch.zeros(2, 2).double(), rtol=0, atol=1e-8)


def test_it_ends_where_rounding_leaves_nothing_to_gain():
    minima = torch.full((1, 3), 1000.0)
    found = minimise(quadratics(torch.ones(1, 3), minima), torch.zeros(1, 3), 0.0)
    assert_close(found, minima)
