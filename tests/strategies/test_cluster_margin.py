"""ClusterMargin: small margins, in turn from clusters; with the picks of lists and queues."""

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import blobs, network
from helpers.sent import sent
from reference import features as reference

from balent import ClusterMargin, Draws, Learner, MCDropout, acquire
from balent.contracts.cut_engine import Cut
from balent.geometry.clusters import centres
from balent.strategies.cluster_margin import PER_CLUSTER, SAMPLE
from balent.strategies.reservoir import smallest


def pick(p, h, k, seed=0, pool=None, **settings):
    pool = np.arange(len(h)) if pool is None else pool
    return acquire(Draws(p, features=h), pool, k, ClusterMargin(**settings), seed=seed)


def two_classes(margins):
    """One draw of two classes for each margin p₁ - p₂."""
    first = (1 + f64(margins)) / 2
    return torch.stack([first, 1 - first], 1)[:, None]


def expected(p, h, k, seed=0, candidates=10, clusters=1000):
    """All of it slowly, but for the random sample and its centres."""
    at = smallest(seed, torch.arange(len(h)), SAMPLE, PER_CLUSTER * clusters)
    among = centres(h[at].float(), clusters, seed=seed, keys=at)
    top = p.mean(1).sort(descending=True).values
    cluster = reference.nearest_centre(h.float(), among.features)
    return reference.cluster_margin((top[:, 0] - top[:, 1]).tolist(), cluster, k, candidates * k)


def test_a_small_cluster_is_served_before_a_large_one_by_hand():
    """Of the six smallest margins four lie at 0 and two at 100: in turn, the two first; within a cluster by margin."""
    h = f64([[0.0], [0.0], [0.0], [0.0], [100.0], [100.0], [0.0], [100.0]])
    p = two_classes([0.1, 0.2, 0.3, 0.4, 0.6, 0.5, 0.8, 0.9])
    picks = pick(p, h, 3, candidates=2, clusters=2)
    assert picks.indices.tolist() == [5, 0, 4]
    torch.testing.assert_close(picks.scores, f64([0.5, 0.9, 0.4]))


@pytest.mark.parametrize("k", [1, 10, 40, 300])
@pytest.mark.parametrize("clusters", [1, 7, 50, 1000])
def test_picks_are_those_of_lists_and_queues(k, clusters):
    p, h = probabilities(300, 5, 3), normal(300, 4)
    assert pick(p, h, k, clusters=clusters).indices.tolist() == expected(p, h, k, clusters=clusters)


@pytest.mark.parametrize("candidates", [1, 3, 100])
def test_so_they_are_with_other_numbers_of_candidates_and_seeds(candidates):
    p, h = probabilities(300, 5, 3), normal(300, 4)
    settings = {"seed": 5, "candidates": candidates, "clusters": 9}
    assert pick(p, h, 20, **settings).indices.tolist() == expected(p, h, 20, **settings)


@pytest.mark.parametrize("settings", [{"candidates": 1}, {"clusters": 1}])
def test_one_candidate_per_pick_and_one_cluster_are_the_top_k_by_margin(settings):
    """As a set where there are clusters, in order where there is one."""
    p, h = probabilities(200, 5, 3), normal(200, 4)
    picked, top = pick(p, h, 15, **settings).indices, acquire(Draws(p), np.arange(200), 15, "margin").indices
    assert sorted(picked.tolist()) == sorted(top.tolist())
    if "clusters" in settings:
        assert picked.tolist() == top.tolist()


def test_duplicates_share_a_cluster():
    """100 duplicates of the point of the smallest margin, and 20 others: they take one turn per round."""
    h = torch.cat([torch.zeros(100, 3, dtype=torch.float64), 10 * normal(20, 3)])
    p = two_classes([0.0] * 100 + [0.5] * 20)
    picks = pick(p, h, 20, clusters=21)
    assert (picks.indices < 100).sum() <= 2


def test_the_order_of_a_pool_does_not_matter_without_a_sample():
    """Where all points are in the sample, only the centres drawn depend on positions: one cluster has no such noise."""
    p, h, order = probabilities(90, 5, 3), normal(90, 4), torch.randperm(90, generator=torch.Generator().manual_seed(0))
    mixed = pick(p[order], h[order], 12, clusters=1).indices
    assert order[mixed].tolist() == pick(p, h, 12, clusters=1).indices.tolist()


@pytest.mark.parametrize("points", [1, 7, 128, 1000])
def test_spans_of_a_cluster_give_the_same_picks_and_scores(points):
    """Half of the points are duplicates, so margins and distances tie."""
    sampled = Draws(probabilities(150, 5, 3).repeat(2, 1, 1), features=normal(150, 33).repeat(2, 1))
    one, other = (
        acquire(sampled, np.arange(300), 25, "cluster_margin(clusters=40)", engine=engine)
        for engine in ("local", Cut(points, sent))
    )
    assert one.indices.tolist() == other.indices.tolist()
    assert one.scores.tolist() == other.scores.tolist()


def test_the_plan_says_how_many_candidates_and_clusters_there_were():
    plan = pick(probabilities(300, 5, 3), normal(300, 4), 20, clusters=9).plan
    assert (
        plan == "20 of the 200 smallest margins, in turn from 9 clusters (of 9, around centres from 180 random points)"
    )


def test_a_stream_is_refused_in_words():
    p = probabilities(30, 5, 3)
    with pytest.raises(ValueError, match="cluster_margin reads points again, but a stream is read only once"):
        acquire(Draws(p, features=normal(30, 4)), iter([np.arange(30)]), 3, "cluster_margin")


def test_draws_without_features_are_refused_in_words():
    class Bare:
        def __call__(self, batch, positions=None):
            return probabilities(30, 5, 3)[batch]

        def moments(self, batch, positions=None):
            return Draws(probabilities(30, 5, 3)).moments(batch, positions)

    with pytest.raises(ValueError, match="cluster_margin compares features, but Bare has no method features"):
        acquire(Bare(), np.arange(30), 3, "cluster_margin")


def test_a_bad_feature_is_named():
    h = normal(30, 4)
    h[7, 2] = torch.nan
    with pytest.raises(ValueError, match="one is nan at point 7"):
        pick(probabilities(30, 5, 3), h, 3)


@pytest.mark.parametrize("settings", ["candidates=0", "clusters=0"])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(ValueError, match="candidates and clusters must be 1 or more"):
        acquire(Draws(probabilities(9, 5, 3)), np.arange(9), 2, f"cluster_margin({settings})")


def test_a_learner_asks_by_it():
    x, y = blobs(60)
    learner = Learner(MCDropout(network(), epochs=2), x, "cluster_margin(clusters=5)", draws=4, start=[0, 1, 2])
    learner.tell(learner.ask(3).indices, y[:3])
    asked = learner.ask(10).indices.tolist()
    assert len(set(asked) - {0, 1, 2}) == 10


def test_scores_of_a_large_batch_are_sorted_a_few_times_only(monkeypatch):
    """Sorted with every block, a batch of 10⁵ would cost a sort of 10⁶ numbers per 1,024 points."""
    calls = []
    from balent.strategies.top_k import Best

    add = Best.add
    monkeypatch.setattr(Best, "add", lambda self, *given: (calls.append(1), add(self, *given))[1])
    pick(probabilities(5000, 2, 2), normal(5000, 2), 400, clusters=3)
    assert len(calls) <= 2
