"""BatchBALD: gains against full enumeration, the lazy search against trying every point, and the sampled estimator."""

import math

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import network
from hypothesis import given
from hypothesis import strategies as st
from reference import joint as reference_joint
from torch import Generator
from torch.testing import assert_close

import balent
from balent import Draws, MCDropout, Moments
from balent.data.pool import Indexed, Subset
from balent.maths import noise
from balent.maths.measures import bald
from balent.strategies import BatchBALD
from balent.strategies.batch_bald import FEWEST, in_proportion
from balent.strategies.configurations import Configurations, thinned, threshold


def generator(seed=0):
    return Generator().manual_seed(seed)


def pick(p, k, seed=0, **settings):
    return balent.acquire(Draws(p), np.arange(len(p)), k, BatchBALD(**settings), seed=seed)


def functions(points, draws, classes, seed=0):
    """Draws that are functions, and agree on most: linear in five numbers of each point, so that points are related."""
    weights = 2 * normal(5, classes, seed=seed + 1) + 0.5 * normal(draws, 5, classes, seed=seed + 2)
    return (normal(points, 5, seed=seed) @ weights).softmax(-1).transpose(0, 1)


def after(p, batch, limit=10**6, seed=0):
    """The configurations of the labels of these points."""
    labels, g = Configurations.before_any(p.shape[1], p.dtype), generator(seed)
    for i in batch:
        labels = labels.extended(p[i], limit, g)
    return labels


# ── values by hand ───────────────────────────────────────────────────────────────────────────────


def test_two_functions_that_contradict_each_other_are_told_apart_by_one_label():
    """Draws are sure and opposite: the first label tells log 2 nats, which is all there is to tell."""
    p = f64([[[1, 0], [0, 1]], [[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    picks = pick(p, 3)
    assert picks.indices.tolist() == [0, 1, 2]
    assert picks.scores.tolist() == pytest.approx([math.log(2), 0, 0])


def test_two_bits_are_asked_one_by_one():
    """Four sure draws, as the numbers 0 to 3 in binary; points 0 and 1 both ask for the first bit, 2 for the second."""
    first, second = f64([[1, 0], [1, 0], [0, 1], [0, 1]]), f64([[1, 0], [0, 1], [1, 0], [0, 1]])
    picks = pick(torch.stack([first, first, second]), 3)
    assert picks.indices.tolist() == [0, 2, 1]  # the top 3 by BALD would be 0, 1, 2
    assert picks.scores.tolist() == pytest.approx([math.log(2), math.log(2), 0])


def test_a_copy_gains_what_a_second_label_would_tell():
    """Coins of bias .9 and .1: by hand, I(Y₂; ω | Y₁) = H(Y₂|Y₁) - h(.1), with P(Y₂ = Y₁) = .9² + .1² = .82."""

    def h(x):
        return -x * math.log(x) - (1 - x) * math.log(1 - x)

    p = f64([[[0.9, 0.1], [0.1, 0.9]]]).expand(3, 2, 2)
    assert pick(p, 2).scores.tolist() == pytest.approx([math.log(2) - h(0.1), h(0.82) - h(0.1)])


# ── the definition ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("points", "draws", "classes", "k"), [(12, 6, 3, 4), (8, 2, 2, 8), (10, 20, 4, 3), (9, 5, 1, 3)]
)
def test_picks_and_gains_are_those_of_full_enumeration(points, draws, classes, k):
    p = probabilities(points, draws, classes, seed=points)
    batch, gains = reference_joint.greedy(p, k)
    picks = pick(p, k)
    assert picks.indices.tolist() == batch
    assert_close(picks.scores, f64(gains), rtol=1e-9, atol=1e-10)


def test_gains_add_up_to_the_information_of_the_batch():
    p = probabilities(30, 8, 3)
    picks = pick(p, 4)
    assert float(picks.scores.sum()) == pytest.approx(reference_joint.batch_bald(p, picks.indices.tolist()))


@given(st.integers(0, 1000), st.permutations(range(6)))
def test_gains_only_shrink_and_are_never_negative(seed, order):
    """Monotone and submodular: what lazy search rests on."""
    p = probabilities(6, 5, 3, seed)
    before = bald(Moments.of(p))
    for size in (1, 2, 3):
        gains = after(p, order[:size]).gains(p)
        assert (gains >= 0).all()
        assert (gains <= before + 1e-12).all()
        before = gains


@given(st.integers(0, 1000), st.sampled_from([0.3, 1.0, 3.0]))
def test_merged_configurations_bound_the_gains(seed, sharpness):
    """A BALD is concave in the weights of the draws."""
    p = (sharpness * normal(6, 8, 4, seed=seed)).softmax(-1)
    labels = after(p, [0, 1, 2, 3])
    merged = labels.merged()
    assert len(merged) <= 8 * 7 < len(labels) == 256
    assert float(merged.probability.sum()) == pytest.approx(1)
    assert_close(merged.probability @ merged.weights, labels.probability @ labels.weights)
    assert (merged.gains(p) >= labels.gains(p) - 1e-12).all()


def test_the_gain_of_an_empty_batch_is_bald():
    p = probabilities(20, 9, 4)
    assert_close(Configurations.before_any(9).gains(p), bald(Moments.of(p)))


def eager(p, k, limit, seed):
    """Every point tried for every pick."""
    labels, chosen, gains, g = Configurations.before_any(p.shape[1]), [], [], generator(seed)
    for _ in range(k):
        every = labels.gains(p).index_fill(0, torch.tensor(chosen, dtype=torch.int64), -1)
        chosen.append(int(every.argmax()))
        gains.append(float(every.max()))
        labels = labels.extended(p[chosen[-1]], limit, g)
    return chosen, gains


def test_lazy_search_picks_what_trying_every_point_picks():
    """500 points, gains of the first five picks exact: 4 classes have 4⁴ = 256 configurations of four labels."""
    p = probabilities(500, 20, 4)
    chosen, gains = eager(p, 5, 10**6, 0)
    picks = pick(p, 5)
    assert picks.indices.tolist() == chosen
    assert picks.scores.tolist() == pytest.approx(gains, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_lazy_search_loses_nothing_to_sampled_configurations(seed):
    """Bounds of earlier picks hold up to the error of 400 configurations, which is small: the same eight picks here."""
    p = functions(400, 30, 4, seed=10 * seed)
    chosen, gains = eager(p, 8, 400, seed)
    picks = pick(p, 8, seed, samples=400)
    assert picks.indices.tolist() == chosen
    assert picks.scores.tolist() == pytest.approx(gains, abs=1e-12)


def test_lazy_search_looks_at_few_points_again():
    """Else it would not be lazy: of 20,000 points, those whose bound does not reach the best gain are never read."""

    class Counting(Draws):
        read = 0

        def __call__(self, batch, positions=None):
            self.read += len(batch)
            return super().__call__(batch, positions)

    sampled = Counting(functions(20_000, 30, 3))
    balent.acquire(sampled, np.arange(20_000), 5, BatchBALD())
    assert sampled.read < 4000


# ── sampled configurations ───────────────────────────────────────────────────────────────────────


def test_thinned_probabilities_have_the_right_expectation():
    """2,000 seeds; each mean within 5 standard errors of its p: wrong for one of 50 with a chance below 3e-5."""
    p = torch.rand(50, dtype=torch.float64, generator=generator()).pow(3)
    p /= p.sum()
    c = float(threshold(p, 12))
    weights = torch.zeros(2000, 50, dtype=torch.float64)
    for seed in range(2000):
        chosen, weight = thinned(p, 12, generator(seed))
        weights[seed, chosen] = weight
        assert len(chosen) == 12
        assert float(weight.sum()) == pytest.approx(1)
    error = (p * (c - p)).clamp(min=0).sqrt() / 2000**0.5
    assert ((weights.mean(0) - p).abs() <= 5 * error + 1e-12).all()
    assert_close(weights[0][p > c], p[p > c])  # the likely ones stay as they are


def test_the_threshold_shares_the_places_out():
    p = f64([0.5, 0.3, 0.1, 0.06, 0.04])
    assert float((p / threshold(p, 3)).clamp(max=1).sum()) == pytest.approx(3)
    assert float(threshold(p, 1)) == pytest.approx(1)


def test_sampled_gains_are_unbiased_and_as_exact_as_stated():
    """4⁵ = 1024 configurations of five labels, 60 of them kept at each step.

    The mean over 200 seeds lies within 4.5 standard errors of the exact gain at each of 8 points: an error rate below
    1e-4. And a single one is within 15 % (root mean square): the error of 60 independent samples would be larger.
    """
    p = probabilities(13, 12, 4, seed=3)
    exact = after(p, range(5)).gains(p[5:])
    tries = torch.stack([after(p, range(5), limit=60, seed=seed).gains(p[5:]) for seed in range(200)])
    error = tries.std(0) / 200**0.5
    assert ((tries.mean(0) - exact).abs() <= 4.5 * error).all()
    assert ((tries - exact).square().mean(0).sqrt() / exact < 0.15).all()


def test_more_configurations_give_less_error():
    p = probabilities(13, 12, 4, seed=3)
    exact = after(p, range(5)).gains(p[5:])

    def error(limit):
        return torch.stack([after(p, range(5), limit, seed).gains(p[5:]) - exact for seed in range(60)]).std()

    assert error(400) < error(40) / 2


def test_a_sampled_batch_is_worth_nearly_what_the_exact_one_is():
    """Six points of 60 from 64 configurations instead of 3⁵ = 243: within 3 % of the information, for 10 seeds."""
    p = probabilities(60, 10, 3)
    exact = reference_joint.batch_bald(p, pick(p, 6).indices.tolist())
    for seed in range(10):
        batch = pick(p, 6, seed, samples=64).indices.tolist()
        assert reference_joint.batch_bald(p, batch) > 0.97 * exact


def test_configurations_know_whether_they_are_all_there_are():
    p = probabilities(5, 4, 3)
    assert after(p, [0, 1, 2]).exact
    assert len(after(p, [0, 1, 2])) == 27
    assert not after(p, [0, 1, 2], limit=20).exact
    assert len(after(p, [0, 1, 2], limit=20)) == 20


def test_configurations_that_cannot_be_are_left_out():
    """A class masked in every draw, and draws that are sure: one configuration is left, not 3² = 9."""
    p = f64([[[1, 0, 0], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]])
    assert len(after(p, [0, 1])) == 1


# ── edges ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
def test_where_nothing_is_to_be_learned_position_decides(row):
    """One class predicted everywhere, or draws that all agree: every gain is 0, exactly."""
    picks = pick(f64([[row] * 7] * 400), 5)
    assert picks.indices.tolist() == [0, 1, 2, 3, 4]
    assert picks.scores.tolist() == [0.0] * 5


def test_sure_draws_give_no_nan():
    """batchbald_redux: 0·log 0 in its exact joint entropy is NaN."""
    p = torch.nn.functional.one_hot(torch.randint(3, (20, 8), generator=generator()), 3).double()
    picks = pick(p, 6)
    assert picks.scores.isfinite().all()
    assert float(picks.scores.sum()) == pytest.approx(math.log(8))  # all there is to know of eight functions


def test_of_identical_points_one_is_picked_while_others_tell_more():
    """batchbald_redux#16: two identical points were picked, with few draws. Here each of 8 points comes five times."""
    p = probabilities(8, 4, 3, seed=5).repeat(5, 1, 1)
    once, _ = reference_joint.greedy(p[:8], 3)
    picks = pick(p, 3)
    assert picks.indices.tolist() == once  # and of each the first


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_of_copies_the_first_is_picked_whatever_rounding_says(dtype):
    """Products of matrices round a column by its place: gains of copies differ in their last bits."""
    p = probabilities(6, 30, 10, seed=9, dtype=dtype).repeat(70, 1, 1)
    picks = pick(p, 6)
    assert sorted(picks.indices.tolist()) == sorted(set(picks.indices.tolist()))
    assert all(i - 6 in picks.indices.tolist() or i < 6 for i in picks.indices.tolist())
    gains = after(p.double(), [0, 1, 2], limit=500).gains(p.double()).view(70, 6)
    assert ((gains - gains[0]).abs() < 1e-13).all()


def test_all_points_of_the_pool_can_be_picked():
    p = probabilities(12, 5, 2)
    picks = pick(p, 12)
    assert sorted(picks.indices.tolist()) == list(range(12))
    assert (picks.scores.diff() <= 1e-12).all()


def test_one_point_is_that_of_the_largest_bald():
    p = probabilities(100, 10, 5)
    picks = pick(p, 1)
    assert picks.indices.tolist() == [int(bald(Moments.of(p)).argmax())]
    assert float(picks.scores[0]) == pytest.approx(float(bald(Moments.of(p)).max()))


def test_one_draw_tells_nothing_and_is_refused():
    """All gains were 0, and the first points of the pool were picked."""
    with pytest.raises(ValueError, match="each point has 1 draw"):
        pick(probabilities(50, 1, 3), 3)


def test_no_batch_tells_more_than_the_logarithm_of_the_number_of_draws():
    """All gains are exact: 3⁷ configurations of seven labels are no more than 4,096."""
    p = probabilities(40, 4, 3, seed=1)
    assert 0.9 * math.log(4) < float(pick(p, 8).scores.sum()) <= math.log(4) + 1e-9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_labels_that_hardly_ever_come_give_no_nan(dtype):
    """A class of 1e-44, which is no normal float32, at each of three points."""
    doubt = torch.tensor([1e-44, 3e-44, 2e-43], dtype=dtype)
    p = torch.stack([1 - doubt, doubt], -1).expand(3, 3, 2)
    assert pick(torch.cat([p, probabilities(5, 3, 2, dtype=dtype)]), 8).scores.isfinite().all()
    assert after(p, [0, 1, 2]).weights.isfinite().all()


def test_many_picks_do_not_underflow():
    """Bug of products of probabilities: after 200 labels of 2 % each a configuration has 10⁻³⁴⁰."""
    p = torch.full((200, 3, 50), 0.02, dtype=torch.float64) + 0.001 * probabilities(200, 3, 50)
    p /= p.sum(-1, keepdim=True)
    scores = pick(p, 200, samples=50).scores
    assert scores.isfinite().all()
    assert (scores >= 0).all()


# ── the same picks, however the pool is read ─────────────────────────────────────────────────────


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_picks_do_not_depend_on_the_size_of_blocks(block, monkeypatch):
    p = probabilities(300, 8, 5)
    whole = pick(p, 8, samples=200)
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", block * 8 * 5)
    picks = pick(p, 8, samples=200)
    assert torch.equal(picks.indices, whole.indices)
    assert torch.equal(picks.scores, whole.scores)


def test_the_same_seed_gives_the_same_picks():
    p = probabilities(300, 8, 5)
    one, again = (pick(p, 8, samples=50, seed=1) for _ in range(2))
    assert torch.equal(one.indices, again.indices)
    assert torch.equal(one.scores, again.scores)


def test_little_memory_reads_points_again_and_picks_the_same():
    """Draws of 40 candidates at a time instead of all that are tried; exact gains, so nothing else changes."""
    p = probabilities(400, 10, 3)
    little = BatchBALD(memory=2 * 8 * 10 * 3 * 40)
    assert little.plan(4, 10, 3).kept == 40 > FEWEST
    assert little.plan(4, 10, 3).exact == 4
    assert pick(p, 4, memory=little.memory).indices.tolist() == pick(p, 4).indices.tolist()


def test_lists_and_ranges_are_pools():
    p = probabilities(40, 6, 3)
    expected = pick(p, 4).indices.tolist()
    for pool in (range(40), list(range(40)), torch.arange(40)):
        assert balent.acquire(Draws(p), pool, 4, BatchBALD()).indices.tolist() == expected


# ── plans ────────────────────────────────────────────────────────────────────────────────────────


def test_the_plan_says_what_is_exact_and_what_is_sampled():
    """The gain of the b-th pick takes C^(b-1) configurations: 10³ for the fourth."""
    words = str(BatchBALD().plan(10, draws=100, classes=10))
    assert words.startswith("exact for the first 4 of 10 picks, then 4,096 configurations of labels")
    assert str(BatchBALD().plan(4, draws=100, classes=10)).startswith("exact: the gains of all 4 picks")
    assert BatchBALD().plan(50, draws=10, classes=1).exact == 50


def test_a_budget_of_memory_chooses_the_plan():
    small, large = (BatchBALD(memory=m).plan(10, 100, 10) for m in (1 << 21, 1 << 28))
    assert small.samples < large.samples
    assert small.exact < large.exact
    assert small.kept < large.kept


def test_a_budget_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="memory for one configuration and one candidate is 160,000 bytes with 100 dr"):
        BatchBALD(memory=1000).plan(10, 100, 100)
    with pytest.raises(ValueError, match="samples must be a positive number of configurations, but is 0"):
        BatchBALD(samples=0)


# ── from a network ───────────────────────────────────────────────────────────────────────────────


def test_a_network_and_its_draws_pick_the_same():
    torch.manual_seed(0)
    x = 3 * torch.randn(200, 4)
    sampled = MCDropout(network()).sample(20, seed=0)
    seen = []
    picks = balent.acquire(sampled, x, 6, "batch_bald", progress=lambda done, total: seen.append((done, total)))
    draws = Draws(sampled(x, torch.arange(200)))
    assert picks.indices.tolist() == balent.acquire(draws, np.arange(200), 6, "batch_bald").indices.tolist()
    assert seen[-1] == (200, 200)


@pytest.mark.parametrize("name", ["batch_bald", "core_mse", "core_log"])
def test_masks_per_point_are_refused(name):
    """Draws at two points then come from different functions: their joint distribution is made up."""
    sampled = MCDropout(network()).sample(5, seed=0, masks="per-point")
    with pytest.raises(ValueError, match=f'{name} needs draws that are the same functions .* masks="shared"'):
        balent.acquire(sampled, torch.randn(20, 4), 3, name)


def test_masks_per_point_are_refused_over_a_part_of_the_pool_too():
    """A Learner passes on the points that are left, at their true positions."""
    sampled = MCDropout(network()).sample(5, seed=0, masks="per-point")
    left = Subset(Indexed(torch.randn(20, 4)), torch.tensor([1, 2, 5, 9]))
    with pytest.raises(ValueError, match="batch_bald needs draws that are the same functions"):
        balent.acquire(sampled, left, 2, "batch_bald")


@pytest.mark.parametrize("name", ["batch_bald", "core_mse", "core_log"])
def test_a_stream_is_refused(name):
    sampled = MCDropout(network()).sample(5, seed=0)
    with pytest.raises(ValueError, match=f"{name} reads points again, but a stream is read only once; pass an array"):
        balent.acquire(sampled, iter([torch.randn(20, 4)]), 3, name)


@pytest.mark.parametrize("name", ["batch_bald", "core_mse", "core_log"])
def test_a_posterior_without_draws_is_refused(name):
    with pytest.raises(ValueError, match="the analytic posterior has moments but no draws"):
        balent.acquire(MCDropout(network()).sample("analytic"), torch.randn(20, 4), 3, name)


@pytest.mark.parametrize("name", ["batch_bald", "core_mse", "core_log"])
@pytest.mark.parametrize("k", [0, 21])
def test_a_k_that_the_pool_cannot_serve_is_refused(name, k):
    with pytest.raises(ValueError, match=f"k must be between 1 and the 20 points of the pool, but is {k}"):
        balent.acquire(Draws(probabilities(20, 4, 3)), range(20), k, name)


@pytest.mark.parametrize("name", ["batch_bald", "core_mse", "core_log"])
def test_draws_that_are_no_distributions_are_refused_with_their_point(name):
    p = probabilities(30, 4, 3)
    p[17, 2] *= 2
    with pytest.raises(ValueError, match=r"probabilities must sum to 1 .* \(at point 17, draw 2\)"):
        balent.select(p, name, k=3)


# ── more picks than draws can tell apart ─────────────────────────────────────────────────────────


def test_once_the_draws_tell_no_more_the_rest_is_drawn_in_proportion_to_bald():
    """Three draws tell log 3 nats, which a few picks do. Each seed then draws others, never a point twice."""
    p = probabilities(300, 3, 4, seed=5)
    one, other = (pick(p, 40, seed, samples=16) for seed in (0, 1))
    told = int((one.scores > 0).sum())
    assert 2 < told < 20
    assert float(one.scores.sum()) > 0.9 * math.log(3)
    assert (one.scores[told:] == 0).all()
    assert len(set(one.indices.tolist())) == 40
    assert one.indices[told:].tolist() != other.indices[told:].tolist()


def test_points_are_drawn_in_proportion_to_their_gain():
    """Gains 1, 2, 3 and a point that is taken: 6,000 first picks, chi-square of 2 degrees below its 99.9 % point."""
    gains, gumbel = f64([1, 2, 3, 99]), noise.gumbel(0, torch.arange(24_000)).view(6000, 4)
    first = torch.tensor([in_proportion(gains, [3], 2, few)[0] for few in gumbel])
    seen, expected = torch.bincount(first, minlength=3), torch.tensor([1000.0, 2000.0, 3000.0])
    assert float(((seen - expected) ** 2 / expected).sum()) < 13.8
