"""CoreMSE through the Gram matrix against the sum over five axes; CoreLog against the mean mutual information."""

import math

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import network
from reference import joint as reference_joint
from torch import Generator
from torch.testing import assert_close

import balent
from balent import Draws, MCDropout
from balent.maths import noise
from balent.strategies import CoreLog, CoreMSE
from balent.strategies.core_mse import Pilot


def pick(p, k, seed=0, chosen=None):
    return balent.acquire(Draws(p), np.arange(len(p)), k, chosen or CoreMSE(), seed=seed)


def every_score(p, chosen=None, seed=0):
    """The score of each point, by position."""
    picks = pick(p, len(p), seed, chosen)
    return torch.empty(len(p), dtype=torch.float64).index_copy(0, picks.indices, picks.scores)


# ── values by hand ───────────────────────────────────────────────────────────────────────────────


def test_two_functions_that_contradict_each_other():
    """Draws are sure and opposite at both points: a label moves each prediction from ½ to 0 or 1, so by 2·¼."""
    p = f64([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    picks = pick(p, 2)
    assert picks.indices.tolist() == [0, 1]
    assert picks.scores.tolist() == pytest.approx([0.5, 0.5])


def test_a_point_is_worth_what_it_tells_of_the_others():
    """Points 0 to 2 ask one question, point 3 another, and labels answer for sure: three predictions move, or one."""
    often, once = f64([[1, 0], [1, 0], [0, 1], [0, 1]]), f64([[1, 0], [0, 1], [1, 0], [0, 1]])
    scores = every_score(torch.stack([often, often, often, once]))
    assert scores.tolist() == pytest.approx([3 / 4 * 0.5] * 3 + [1 / 4 * 0.5])


# ── the definition ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("points", "draws", "classes"), [(12, 6, 3), (5, 2, 2), (9, 25, 4), (7, 3, 10)])
def test_scores_are_the_expected_fall_of_the_squared_error(points, draws, classes):
    p = probabilities(points, draws, classes, seed=points)
    assert_close(every_score(p), reference_joint.core_mse(p, range(points)), rtol=1e-9, atol=1e-12)


def test_the_sum_over_five_axes_is_a_constant_more():
    """Σ_m (p_m - p̂)² = Σ_m (p_m - p̄)² + M (p̂ - p̄)²: M times the score, and what does not depend on the point."""
    p = probabilities(8, 5, 3)
    constant = p.var(1, correction=0).sum(-1).mean() * 5
    assert_close(reference_joint.core_mse_five_axes(p, range(8)), constant + 5 * every_score(p))


def test_picks_are_the_top_k_of_the_definition():
    p = probabilities(60, 8, 3)
    expected = reference_joint.core_mse(p, range(60)).sort(descending=True, stable=True)
    picks = pick(p, 10)
    assert picks.indices.tolist() == expected.indices[:10].tolist()
    assert_close(picks.scores, expected.values[:10])


def test_a_sample_stands_for_the_pool():
    """X' of 20 points: the definition with the same 20, those of the smallest numbers by (seed, position)."""
    p = probabilities(50, 6, 3)
    few = noise.uniform(3, torch.arange(50)).argsort()[:20].tolist()
    assert_close(every_score(p, CoreMSE(reference=20), seed=3), reference_joint.core_mse(p, few))


def test_a_reference_larger_than_the_pool_is_the_pool():
    p = probabilities(30, 6, 3)
    assert_close(every_score(p, CoreMSE(reference=1000)), every_score(p))


def test_the_whole_pool_is_exact_though_the_pilot_is_small(monkeypatch):
    """The first matrix knows 5 of 400 points; bounds make sure that it decides nothing."""
    p = probabilities(400, 10, 3)
    expected = reference_joint.core_mse(p, range(400)).sort(descending=True, stable=True)
    monkeypatch.setattr("balent.strategies.core_mse.PILOT", 5)
    for seed in range(5):
        picks = pick(p, 12, seed)
        assert picks.indices.tolist() == expected.indices[:12].tolist()
        assert_close(picks.scores, expected.values[:12])


def test_few_points_are_read_twice():
    """Scores differ, so bounds do: of 8,000 points the pilot, all once, and few again."""

    class Counting(Draws):
        read = 0

        def __call__(self, batch, positions=None):
            self.read += len(batch)
            return super().__call__(batch, positions)

    sampled = Counting(probabilities(8000, 20, 4))
    balent.acquire(sampled, np.arange(8000), 20, CoreMSE())
    assert sampled.read < 1.4 * 8000


def test_bounds_are_bounds():
    """G ≼ h·RRᵀ, tried on directions at random and on that of the largest eigenvalue of G."""
    a, b = normal(12, 30), normal(12, 50, seed=1)
    pilot, final = Pilot(a @ a.t()), b @ b.t()
    h = pilot.excess(final)
    for v in (*normal(500, 12, seed=2), torch.linalg.eigh(final).eigenvectors[:, -1]):
        assert float(v @ final @ v) <= h * float((pilot.root.t() @ v).square().sum())


def test_float32_draws_rank_as_float64_ones():
    p = probabilities(300, 20, 5)
    assert_close(every_score(p.float()), every_score(p), rtol=1e-5, atol=1e-9)


def test_logits_are_draws_as_well():
    z = normal(50, 6, 3)
    assert balent.select(z, "core_mse", k=5, logits=True).indices.tolist() == pick(z.softmax(-1), 5).indices.tolist()


# ── log loss ─────────────────────────────────────────────────────────────────────────────────────


def test_the_log_score_is_the_mean_mutual_information_of_two_labels():
    """E_y KL(p(y'|y) ‖ p(y')) = I(Y; Y'): what the reference computes is what the decision says it is."""
    p = probabilities(5, 4, 3)
    information = [sum(reference_joint.mutual_information(p, x, other) for other in range(5)) / 5 for x in range(5)]
    assert_close(reference_joint.core_log(p, range(5)), f64(information))


def test_core_log_is_exact_to_second_order():
    """Draws that differ by ε: the relative error falls with ε."""
    base, change = normal(6, 1, 3), normal(6, 8, 3, seed=1)
    errors = []
    for size in (0.1, 0.01):
        p = (base + size * change).softmax(-1)
        exact = reference_joint.core_log(p, range(6))
        errors.append(float(((every_score(p, CoreLog()) - exact) / exact).abs().max()))
    assert errors[0] < 0.05
    assert errors[1] < errors[0] / 5


def test_core_log_picks_nearly_what_its_definition_picks():
    """Functions with much in common: 17 of 20 picks at least, where CoreMSE shares fewer."""
    x, w = normal(150, 5), 2 * normal(5, 4, seed=1) + 0.5 * normal(20, 5, 4, seed=2)
    p = (x @ w).softmax(-1).transpose(0, 1)
    exact = set(reference_joint.core_log(p, range(150)).topk(20).indices.tolist())
    assert len(exact & set(pick(p, 20, chosen=CoreLog()).indices.tolist())) >= 17


# ── edges ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog(), CoreMSE(reference=10)])
@pytest.mark.parametrize("row", [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
def test_where_nothing_is_to_be_learned_position_decides(chosen, row):
    picks = pick(f64([[row] * 7] * 3000), 5, chosen=chosen)
    assert picks.indices.tolist() == [0, 1, 2, 3, 4]
    assert picks.scores.abs().max() < 1e-30


def test_doubt_that_the_pilot_does_not_know_of_is_found(monkeypatch):
    """One point of 2,000 has draws that disagree, and the pilot of 10 has not seen it: G₀ = 0 bounds nothing."""
    p = f64([[0.2, 0.8]]).expand(2000, 5, 2).clone()
    p[1234] = probabilities(1, 5, 2)
    monkeypatch.setattr("balent.strategies.core_mse.PILOT", 10)
    picks = pick(p, 1)
    assert picks.indices.tolist() == [1234]
    assert float(picks.scores[0]) > 0


@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog()])
def test_copies_have_equal_scores_and_go_by_position(chosen):
    p = probabilities(5, 9, 3).repeat(40, 1, 1)
    scores = every_score(p, chosen).view(40, 5)
    assert (scores == scores[0]).all()
    assert pick(p, 40, chosen=chosen).indices.diff().unique().tolist() == [5]


@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog()])
@pytest.mark.parametrize("shape", [(20, 2, 3), (20, 5, 1), (1, 4, 3)])
def test_two_draws_one_class_one_point(chosen, shape):
    scores = every_score(probabilities(*shape), chosen)
    assert scores.isfinite().all()
    assert (scores > 0).all() if shape[2] > 1 else (scores == 0).all()


@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog()])
def test_a_class_that_never_occurs_changes_nothing(chosen):
    p = probabilities(20, 6, 3)
    assert_close(every_score(torch.nn.functional.pad(p, (0, 1)), chosen), every_score(p, chosen))


@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog()])
def test_sure_draws_that_disagree_give_numbers(chosen):
    p = torch.nn.functional.one_hot(torch.randint(3, (30, 8), generator=Generator().manual_seed(0)), 3).double()
    assert every_score(p, chosen).isfinite().all()
    assert_close(every_score(p), reference_joint.core_mse(p, range(30)))


@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog()])
def test_tiny_probabilities_do_not_overflow(chosen):
    p = f64([[[1 - 1e-30, 1e-30], [1 - 3e-30, 3e-30]], [[0.5, 0.5], [0.4, 0.6]]]).float()
    scores = every_score(p, chosen)
    assert scores.isfinite().all()
    assert scores[1] > scores[0] >= 0


def test_bounds_hold_where_squares_would_underflow():
    """Doubts of 1e-22 in float32: q² is 0 there, but q²/p is not, and decides between points 1 to 3."""
    doubt = torch.tensor([0.3, 1e-22, 3e-22, 2e-22])
    p = torch.stack([doubt, 2 * doubt, 3 * doubt], 1)
    p = torch.stack([1 - p, p], -1)
    assert pick(p, 4).indices.tolist() == [0, 2, 3, 1]
    assert pick(p, 2).indices.tolist() == [0, 2]
    assert pick(p, 3).indices.tolist() == [0, 2, 3]


@pytest.mark.parametrize("reference", [0, -3])
def test_a_reference_without_points_is_refused(reference):
    with pytest.raises(ValueError, match=f"reference must be a positive number of points, .* but is {reference}"):
        pick(probabilities(5, 3, 2), 1, chosen=CoreMSE(reference=reference))


# ── the same picks, however the pool is read ─────────────────────────────────────────────────────


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("chosen", [CoreMSE(), CoreLog(), CoreMSE(reference=50)])
def test_picks_do_not_depend_on_the_size_of_blocks(block, chosen, monkeypatch):
    p = probabilities(300, 8, 5)
    whole = pick(p, 20, chosen=chosen)
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", block * 8 * 5)
    picks = pick(p, 20, chosen=chosen)
    assert torch.equal(picks.indices, whole.indices)
    assert_close(picks.scores, whole.scores, rtol=1e-12, atol=0)


def test_the_whole_pool_leaves_nothing_to_chance():
    p = probabilities(2500, 8, 5)
    one, other = (pick(p, 20, seed) for seed in (1, 2))
    assert torch.equal(one.indices, other.indices)
    assert_close(one.scores, other.scores, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["core_mse", "core_log"])
def test_a_network_and_its_draws_pick_the_same(name):
    torch.manual_seed(0)
    x = 3 * torch.randn(200, 4)
    sampled = MCDropout(network()).sample(20, seed=0)
    seen = []
    picks = balent.acquire(sampled, x, 6, name, progress=lambda done, total: seen.append((done, total)))
    draws = Draws(sampled(x, torch.arange(200)))
    assert picks.indices.tolist() == balent.acquire(draws, np.arange(200), 6, name).indices.tolist()
    assert seen[-1] == (200, 200)


def test_half_precision_is_computed_in_float32():
    p = probabilities(40, 6, 3)
    half = p.half()
    assert_close(every_score(half), every_score(half.double() / half.double().sum(-1, keepdim=True)), rtol=1e-4, atol=0)


def test_a_label_is_worth_at_most_the_whole_squared_error():
    """The fall is a part of Σ Var P, which is what knowing the function would save."""
    p = probabilities(40, 6, 3)
    assert float(every_score(p).max()) <= float(p.var(1, correction=0).sum(-1).mean())
    assert math.isfinite(float(every_score(p).max()))
