"""BADGE: gradients that are never built, and k-means++ seeding without a pass for each centre."""

import pickle
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import blobs, network
from helpers.statistics import p_value
from reference import features as reference
from torch import nn
from torch.testing import assert_close

from balent import (
    Badge,
    Draws,
    Ensemble,
    GaussianProcess,
    LastLayerLaplace,
    Learner,
    MCDropout,
    Moments,
    VariationalDropout,
    acquire,
)
from balent.acquisition.engines.local import Local
from balent.acquisition.view import View
from balent.data.pool import as_source
from balent.geometry import k_means_pp as seeding
from balent.geometry.distances import Embedded, Points, between, squared
from balent.geometry.embedded import embedded
from balent.geometry.k_means_pp import seeds
from balent.geometry.rows import Rows
from balent.predictors import VariationalLinear
from balent.strategies.badge import uncertainty


def pick(p, h, k, seed=0, strategy=None):
    return acquire(Draws(p, features=h), np.arange(len(p)), k, strategy or Badge(), seed=seed)


def points_of(h, q=None):
    """Rows in memory as an embedded pool."""
    rows = [None if x is None else Rows(1 << 30) for x in (h, q)]
    kept = [None if x is None else row.add(x) for x, row in zip((h, q), rows, strict=True)]
    return Embedded(*rows, Points.of(*kept).norms)


# ── distances ────────────────────────────────────────────────────────────────────────────────────


def test_a_gradient_by_hand():
    """p = (.7, .2, .1) guesses the first class: q = (-.3, .2, .1), h = (1, 2), so ‖g‖² = .14 · 5."""
    q = uncertainty(Moments.of(f64([[[0.7, 0.2, 0.1]]])))
    assert_close(q, f64([[-0.3, 0.2, 0.1]]))
    assert_close(Points.of(torch.tensor([[1.0, 2.0]]), q.float()).norms, f64([0.7]), rtol=1e-6, atol=0)


def test_the_gradient_of_a_sure_point_keeps_its_digits():
    """1 - p of a float32 p that rounds to 1 would be 0; what the other classes sum to is not."""
    q = uncertainty(Moments.of(torch.tensor([[[1.0, 1e-30, 2e-30]]])))
    assert_close(q, f64([[-3e-30, 1e-30, 2e-30]]), rtol=1e-6, atol=0)


def test_distances_are_those_of_dense_gradients():
    """To float32 rounding of a product: 10⁻⁶ of the squared norms."""
    p, h = probabilities(40, 3, 5), normal(40, 7)
    m = Moments.of(p)
    points = Points.of(h.float(), uncertainty(m).float())
    g = reference.gradients(m.mean, h)
    assert_close(squared(points, points).double(), reference.squared_distances(g, g), rtol=1e-4, atol=1e-6)
    assert_close(points.norms, g.square().sum(1), rtol=1e-5, atol=0)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-7])
def test_near_points_lose_no_digits(scale):
    """‖g‖² + ‖g'‖² - 2⟨g, g'⟩ in float32 has none left at a distance of 10⁻⁴ of the norm."""
    h, q = normal(20, 30).float(), normal(20, 4, seed=1).float()
    h2, q2 = h + scale * normal(20, 30, seed=2).float(), q + scale * normal(20, 4, seed=3).float()
    g, g2 = ((b.double()[:, :, None] * a.double()[:, None]).flatten(1) for a, b in ((h, q), (h2, q2)))
    expected = (g - g2).square().sum(1)
    assert_close(between(Points.of(h, q), Points.of(h2, q2)), expected, rtol=1e-9, atol=0)
    assert_close(squared(Points.of(h, q), Points.of(h2, q2)).diag().double(), expected, rtol=1e-3, atol=0)


def test_copies_are_at_distance_zero():
    points = Points.of(normal(30, 600).float() * 1e3, normal(30, 11, seed=1).float())
    assert (squared(points, points[torch.arange(30)]).diag() == 0).all()


# ── seeding ──────────────────────────────────────────────────────────────────────────────────────


def counted(points, k, first, runs=250, weights=None):
    where = torch.arange(len(points))
    found = (seeds(points, k, first, seed=seed, positions=where, weights=weights)[0] for seed in range(runs))
    return Counter(tuple(chosen.tolist()) for chosen in found)


@pytest.mark.parametrize(
    ("together", "narrow", "weighted"), [(1, 8, False), (2, 0, False), (128, 8, False), (128, 8, True)]
)
def test_seeding_has_the_distribution_of_k_means_plus_plus(together, narrow, weighted, monkeypatch):
    """All 12 orders of 2 more of 5 points, by Pearson's test on 250 seedings at an error rate of 10⁻⁴ for each case.

    One clock at a time is compared with earlier centres, 128 with each other as well; with `narrow` = 0 bounds
    are renewed all the time. Uniform picks are refused by the same test.
    """
    monkeypatch.setattr(seeding, "TOGETHER", together)
    monkeypatch.setattr(seeding, "NARROW", narrow)
    h = normal(5, 3, seed=1).float()
    weights = f64([1.0, 5.0, 0.5, 2.0, 1.0]) if weighted else None
    shares = reference.seeding_probabilities(h.double(), 2, 3, weights)
    counts = counted(points_of(h), 3, 2, weights=weights)
    assert set(counts) <= set(shares)
    assert p_value([counts[order] for order in shares], list(shares.values())) > 1e-4
    assert p_value([counts[order] for order in shares], [1 / 12] * 12) < 1e-8


def test_seeding_of_gradients_has_the_distribution_of_dense_ones():
    """Pearson's test on 250 seedings of two more points, at an error rate of 10⁻⁴."""
    p, h = probabilities(6, 4, 3, seed=5), normal(6, 4, seed=6)
    g = reference.gradients(Moments.of(p).mean, h)
    first = int(g.norm(dim=1).argmax())
    shares = reference.seeding_probabilities(g, first, 3)
    came = Counter(tuple(pick(p, h, 3, seed).indices.tolist()) for seed in range(250))
    assert p_value([came[order] for order in shares], list(shares.values())) > 1e-4


def test_where_distances_end_points_are_drawn_uniformly():
    """Two places, three points each: the first two picks take one of each place, the third any of the four left."""
    h = f64([[0.0], [0.0], [0.0], [4.0], [4.0], [4.0]]).float()
    shares = reference.seeding_probabilities(h.double(), 0, 3)
    counts = counted(points_of(h), 3, 0)
    assert set(counts) == set(shares)
    assert p_value([counts[order] for order in shares], list(shares.values())) > 1e-4


def test_a_pool_of_tight_clusters_is_seeded_as_by_definition(monkeypatch):
    """Bounds are renewed when most rings do not count: 8 clusters far apart are all found by 8 centres."""
    passes = []
    monkeypatch.setattr(Embedded, "nearest", counting(Embedded.nearest, passes))
    centres = 1e3 * normal(8, 5, seed=1)
    h = (centres.repeat_interleave(500, 0) + 1e-3 * normal(4000, 5)).float()
    chosen, scores = seeds(points_of(h), 40, 0, seed=0, positions=torch.arange(4000))
    assert len({int(i) // 500 for i in chosen[:8]}) == 8
    assert 1 < len(passes) < 15
    nearest = reference.squared_distances(h[chosen].double(), h[chosen].double())
    expected = [float(nearest[i, :i].min()) for i in range(1, 40)]
    assert_close(scores[1:], f64(expected), rtol=1e-3, atol=0)


def counting(method, calls):
    def counted(*args):
        calls.append(args)
        return method(*args)

    return counted


def test_a_pool_without_clusters_takes_one_pass(monkeypatch):
    """The issue asked for one pass a pick; the clocks need it for the first pick alone."""
    passes = []
    monkeypatch.setattr(Embedded, "nearest", counting(Embedded.nearest, passes))
    chosen, _ = seeds(points_of(normal(3000, 64).float()), 200, 0, seed=0, positions=torch.arange(3000))
    assert len(passes) == 1
    assert len(set(chosen.tolist())) == 200


# ── picks ────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_pick_is_the_largest_gradient_and_scores_are_squared_distances():
    p, h = probabilities(50, 4, 3), normal(50, 6)
    g = reference.gradients(Moments.of(p).mean, h)
    picks = pick(p, h, 5)
    chosen = picks.indices.tolist()
    assert chosen[0] == int(g.norm(dim=1).argmax())
    assert float(picks.scores[0]) == pytest.approx(float(g[chosen[0]].square().sum()), rel=1e-5)
    nearest = [float(reference.squared_distances(g[[i]], g[chosen[:n]]).min()) for n, i in enumerate(chosen) if n]
    assert picks.scores[1:].tolist() == pytest.approx(nearest, rel=1e-4)


@pytest.mark.parametrize("k", [1, 2, 29, 30])
def test_copies_are_picked_last_and_no_point_twice(k):
    """badge: all remaining distances 0 gives NaN. BEMPS: its fill-up draws with replacement."""
    p, h = probabilities(10, 4, 3).repeat(3, 1, 1), normal(10, 6).repeat(3, 1)
    picks = pick(p, h, k)
    chosen = picks.indices.tolist()
    assert len(set(chosen)) == k
    assert len({i % 10 for i in chosen[:10]}) == min(k, 10)
    assert (picks.scores[:10] > 0).all()
    assert (picks.scores[10:] == 0).all()


def test_a_pool_of_one_point_over_and_over():
    picks = pick(probabilities(1, 4, 3).expand(50, 4, 3), normal(1, 6).expand(50, 6), 20)
    assert len(set(picks.indices.tolist())) == 20
    assert picks.indices[0] == 0
    assert (picks.scores[1:] == 0).all()


def test_one_class_predicted_everywhere():
    """Sure points have no gradient: the doubtful one comes first, then all others at random."""
    p = torch.zeros(20, 3, 4).scatter(2, torch.ones(20, 3, 1, dtype=torch.int64), 1.0)
    p[7] = torch.tensor([0.1, 0.8, 0.1, 0.0])
    one, other = (pick(p, normal(20, 5), 6, seed).indices.tolist() for seed in (0, 1))
    assert one[0] == other[0] == 7
    assert len(set(one)) == 6
    assert one != other


def test_features_of_zero_are_points_like_any_other():
    picks = pick(probabilities(12, 3, 4), torch.zeros(12, 5), 12)
    assert sorted(picks.indices.tolist()) == list(range(12))
    assert (picks.scores == 0).all()


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────


def open_files():
    """Files without a name that this process holds open or mapped (Linux)."""
    links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return Path("/proc/self/maps").read_text().count("(deleted)") + sum("(deleted)" in link for link in links)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
def test_rows_beyond_the_budget_are_in_a_file_until_the_end():
    p, h = probabilities(300, 4, 3), normal(300, 6)
    sampled, pool = Draws(p, features=h), np.arange(300)
    view, before = View(Local(), as_source(pool)), open_files()
    with embedded(sampled, view, 5, factors=uncertainty, memory=300 * 5 * 4) as (points, _):
        assert points.features.in_file
        assert points.factors is not None
        assert not points.factors.in_file
        assert open_files() > before
        assert_close(points.features[slice(None)], h.float())
    assert open_files() == before
    assert pick(p, h, 50, strategy=Badge(memory=0)).indices.tolist() == pick(p, h, 50).indices.tolist()
    assert open_files() == before


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
def test_the_file_is_gone_after_an_error():
    p, h = probabilities(300, 4, 3), normal(300, 6)
    h[250, 3] = np.nan
    before = open_files()
    with pytest.raises(ValueError, match="but one is nan at point 250; look at"):
        pick(p, h, 5, strategy=Badge(memory=0))
    assert open_files() == before


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_rows_of_unknown_number_grow(memory):
    rows, blocks = Rows(memory), [normal(n, 3, seed=n).float() for n in (1000, 5000, 1, 9000)]
    for block in blocks:
        rows.add(block)
    assert len(rows) == 15001
    assert torch.equal(rows[slice(None)], torch.cat(blocks))
    assert torch.equal(rows[torch.tensor([14999, 2])], torch.cat(blocks)[[14999, 2]])
    rows.close()


def test_half_precision_is_enough_to_pick_by():
    """float16 keeps three digits of each number, hence of distances that are not small; copies are still copies."""
    p, h = probabilities(100, 4, 3).repeat(2, 1, 1), normal(100, 30).repeat(2, 1)
    picks = pick(p, h, 60, strategy=Badge(storage="float16"))
    assert len({i % 100 for i in picks.indices.tolist()}) == 60
    g = reference.gradients(Moments.of(p).mean, h)[picks.indices]
    nearest = [float(reference.squared_distances(g[[n]], g[:n]).min()) for n in range(1, 60)]
    assert picks.scores[1:].tolist() == pytest.approx(nearest, rel=2e-2)


def test_half_precision_refuses_what_it_cannot_hold():
    h = normal(10, 3)
    h[4] *= 1e6
    with pytest.raises(ValueError, match=r"size 65504 at most, but one is .* at point 4; look at the model's features"):
        pick(probabilities(10, 4, 3), h, 2, strategy=Badge(storage="float16"))


# ── features ─────────────────────────────────────────────────────────────────────────────────────


def variational():
    return nn.Sequential(VariationalLinear(4, 8), nn.Linear(8, 3))


PREDICTED = {
    "mc_dropout": lambda: MCDropout(network(), epochs=2),
    "masks per point": lambda: MCDropout(network(), epochs=2),
    "ensemble": lambda: Ensemble(network(), members=4, epochs=2),
    "laplace": lambda: LastLayerLaplace(network(), epochs=2),
    "variational_dropout": lambda: VariationalDropout(variational(), epochs=2),
    "gaussian_process": lambda: GaussianProcess(3, iterations=3, features=16),
}


@pytest.mark.parametrize("strategy", ["badge", "core_set", "diverse:bald"])
@pytest.mark.parametrize("name", PREDICTED)
def test_every_predictor_has_features_through_engine_and_learner(name, strategy):
    """Picks are points that are not told yet, and no two alike."""
    x, y = blobs(40)
    masks = "per-point" if name == "masks per point" else "shared"
    learner = Learner(PREDICTED[name](), x, strategy, draws=4, masks=masks, start=[0, 1, 2, 3])
    learner.tell(learner.ask(4).indices, y[:4])
    picks = learner.ask(6)
    assert len(set(picks.indices.tolist()) - {0, 1, 2, 3}) == 6


def test_features_are_what_the_last_linear_layer_sees_whatever_comes_after_it():
    """A softmax at the end belongs to the probabilities, not to the features."""
    x, _ = blobs(10)
    plain = network()
    ended = nn.Sequential(*plain, nn.Softmax(-1))
    expected = plain[2](plain[0](x))
    for predictor in (MCDropout(plain), MCDropout(ended, probabilities=True)):
        assert_close(predictor.sample(3).features(x), expected)


def test_features_can_be_those_of_a_named_layer():
    x, _ = blobs(10)
    plain = network()
    sampled = MCDropout(plain, features="1").sample(3)  # the dropout: what it sees is the first layer's output
    assert_close(sampled.features(x), plain[0](x))
    assert_close(pickle.loads(pickle.dumps(sampled)).features(x), plain[0](x))
    assert len(acquire(sampled, x, 3, "badge").indices) == 3


def test_an_unknown_layer_is_answered_with_the_nearest_known_ones():
    model = nn.Sequential(OrderedDict(body=nn.Linear(4, 8), drop=nn.Dropout(0.2), head=nn.Linear(8, 3)))
    with pytest.raises(ValueError, match="there is no layer 'heat'; did you mean head"):
        MCDropout(model, features="heat")


@pytest.mark.parametrize("name", ["badge", "core_set", "diverse:bald"])
def test_draws_without_features_say_what_is_missing(name):
    with pytest.raises(ValueError, match=r"this strategy compares features, but Draws has none; pass Draws\(array, fe"):
        acquire(Draws(probabilities(10, 4, 3)), np.arange(10), 3, name)


@pytest.mark.parametrize("name", ["badge", "core_set", "diverse:bald"])
def test_functions_without_a_method_for_features_say_so(name):
    class Bare:
        def __call__(self, batch, positions=None):
            return probabilities(len(batch), 4, 3)

        def moments(self, batch, positions=None):
            return Moments.of(self(batch))

    with pytest.raises(ValueError, match=f"{name} compares features, but Bare has no method features"):
        acquire(Bare(), np.arange(10), 3, name)


@pytest.mark.parametrize("name", ["badge", "core_set", "diverse:bald"])
@pytest.mark.parametrize("sizes", [[7, 33, 60], [100]])
def test_a_stream_is_a_pool(name, sizes):
    p, h = probabilities(100, 4, 3), normal(100, 6)
    sampled = Draws(p, features=h)
    stream = iter(np.split(np.arange(100), np.cumsum(sizes)[:-1]))
    assert (
        acquire(sampled, stream, 12, name).indices.tolist()
        == acquire(sampled, np.arange(100), 12, name).indices.tolist()
    )


@pytest.mark.parametrize("name", ["badge", "core_set", "diverse:bald"])
def test_a_stream_that_ends_too_early_is_told(name):
    sampled = Draws(probabilities(5, 4, 3), features=normal(5, 6))
    with pytest.raises(ValueError, match="k must be between 1 and the 5 points of the pool, but is 6"):
        acquire(sampled, iter([np.arange(5)]), 6, name)
