"""Herding: weights by their definition, and picks that depend on the points alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.examples import normal, probabilities
from helpers.labelled import generator, network
from torch import nn

from balent import Draws, Herding, Learner, Logistic, MCDropout, acquire
from balent.acquisition.engines.local import Local
from balent.acquisition.view import View
from balent.adapt import Untrained
from balent.data.pool import Indexed, Subset
from balent.geometry import rows
from balent.maths.measures import balent
from balent.maths.moments import Moments
from balent.strategies import herding, strategy
from balent.strategies.herding import References
from balent.strategies.reservoir import Reservoir, at_random

POINTS, CLASSES = 120, 3


def drawn(points=POINTS, draws=20):
    return probabilities(points, draws, CLASSES), normal(points, 5).float()


def picks(k=6, seed=0, how="herding", **options):
    p, h = drawn()
    return acquire(Draws(p, features=h), np.arange(POINTS), k, how, seed=seed, **options)


# ── weights ──────────────────────────────────────────────────────────────────────────────────────


def found_weights(p, measure=herding.undecided, balance=1.0):
    sampled, view = Draws(p, features=normal(len(p), 5)), View(Local(), Indexed(np.arange(len(p))))
    return References.read(sampled, view, torch.arange(len(p)), measure, balance, 0).weights


def test_weights_are_balanced_entropy_times_the_rarity_of_classes():
    p, _ = drawn()
    mean = p.double().mean(1)
    expected = (-balent(Moments.of(p)).abs()).exp() * (mean / mean.mean(0)).sum(1)
    torch.testing.assert_close(found_weights(p), expected / expected.sum(), rtol=1e-6, atol=0)


def test_without_balance_the_measure_alone_weighs():
    p, _ = drawn()
    expected = (-balent(Moments.of(p)).abs()).exp()
    torch.testing.assert_close(found_weights(p, balance=0.0), expected / expected.sum(), rtol=1e-6, atol=0)


def test_a_class_that_nothing_is_predicted_to_be_weighs_nothing():
    p, _ = drawn()
    wider = torch.cat([p, torch.zeros(POINTS, p.shape[1], 1)], 2)
    one, other = found_weights(wider, label_entropy), found_weights(p, label_entropy)
    torch.testing.assert_close(one, other, rtol=1e-6, atol=0)


def label_entropy(m):
    return m.predictive_entropy


def test_a_measure_that_is_zero_everywhere_leaves_the_balance():
    p, _ = drawn()
    assert found_weights(p, lambda m: torch.zeros(len(m), dtype=torch.float64)).sum() == pytest.approx(1)


def test_memory_for_classes_is_bounded(monkeypatch):
    """Means that need more than that go to a temporary file, and weigh the same."""
    files, make = [], rows.tempfile.TemporaryFile
    monkeypatch.setattr(rows.tempfile, "TemporaryFile", lambda **how: files.append(make(**how)) or files[-1])
    p, _ = drawn()
    whole = found_weights(p)
    assert not files
    monkeypatch.setattr(herding, "MEMORY", POINTS * CLASSES * 4 - 1)
    monkeypatch.setattr(herding, "TOGETHER", 50)
    torch.testing.assert_close(found_weights(p), whole, rtol=0, atol=0)
    assert [file.closed for file in files] == [True]


class Counted(Indexed):
    """Counts how often each point is read."""

    def at(self, positions):
        self.read = getattr(self, "read", torch.zeros(self.size, dtype=torch.int64))
        self.read[positions] += 1
        return super().at(positions)


def test_each_reference_is_read_once_for_both_its_vector_and_its_weight():
    p, h = drawn()
    source = Counted(np.arange(POINTS))
    Herding(references=50)(Draws(p, features=h), View(Local(), source), 4, generator=generator(0))
    tried_out = source.positions[:2]  # by the engine, so that a pool that does not fit the model is refused
    source.read[tried_out] -= 1
    assert source.read.sum() == 50
    assert source.read.max() == 1


class Featureless(Draws):
    """A user's draws, whose parts forget the features."""

    def part(self, start, stop):
        return Draws(self.array[:, start:stop])


def test_draws_whose_parts_have_no_features_are_used_whole():
    p, h = drawn(draws=30)
    found = acquire(Featureless(p, features=h), np.arange(POINTS), 6, "herding")
    assert "the model's features" in found.plan


# ── picks ────────────────────────────────────────────────────────────────────────────────────────


def test_scores_are_gains_that_shrink():
    scores = picks(20).scores.tolist()
    assert scores == sorted(scores, reverse=True)
    assert 0 < sum(scores) < 1


@pytest.mark.parametrize("seed", [0, 3])
def test_the_scale_of_features_does_not_matter(seed):
    p, h = drawn()
    scaled = acquire(Draws(p, features=1000 * h), np.arange(POINTS), 6, "herding", seed=seed)
    assert scaled.indices.tolist() == picks(seed=seed).indices.tolist()


def test_where_the_origin_of_features_is_does_not_matter():
    """Features that are never negative, as most backbones have them, are compared from their middle."""
    p, h = drawn()
    one, other = (acquire(Draws(p, features=h + far), np.arange(POINTS), 6, "herding") for far in (0, 50))
    assert one.indices.tolist() == other.indices.tolist()


def test_picks_by_the_definition():
    """All points are references: the rule of the module, written out with loops over candidates."""
    p, h = drawn()
    known, at = torch.tensor([3, 50, 77]), torch.tensor([i for i in range(POINTS) if i not in (3, 50, 77)])
    pool, rest = (View(Local(), Subset(Indexed(np.arange(POINTS)), some)) for some in (at, known))
    view = replace(pool, labelled=rest)
    order = at_random(view, 0, herding.REFERENCES, POINTS)
    centre = h[order].double().mean(0)
    unit = (h.double() - centre) / (h.double() - centre).norm(dim=1, keepdim=True)
    apart = torch.cdist(unit[order], unit[order[: 3 + 6]]).square().fill_diagonal_(torch.inf)
    kernel = torch.exp(-torch.cdist(unit, unit).square() / (0.5 * apart.amin(1).mean()))
    mean = p[order].double().mean(1)
    weight = (-balent(Moments.of(p[order])).abs()).exp() * (mean / mean.mean(0)).sum(1)
    chosen, covering = [], known.tolist()
    for _ in range(6):
        covered = kernel[order][:, covering].amax(1)
        gains = [(weight * (kernel[order, s] - covered).clamp(min=0)).sum() for s in order.tolist()]
        chosen.append(int(order[int(torch.stack(gains).argmax())]))
        covering.append(chosen[-1])
    found = strategy("herding")(Draws(p, features=h), view, 6, generator=generator())
    assert found.indices.tolist() == chosen


def test_never_two_copies_while_others_gain():
    p, h = drawn(40)
    found = acquire(Draws(p.repeat(3, 1, 1), features=h.repeat(3, 1)), np.arange(120), 40, "herding")
    assert sorted(i % 40 for i in found.indices.tolist()) == list(range(40))


def test_labelled_points_are_kept_away_from():
    x = normal(POINTS, 5).float()
    known = acquire(None, x, 5).indices
    again = acquire(None, x, 5, labelled=x[known])
    assert not set(again.indices.tolist()) & set(known.tolist())


def test_the_order_of_the_pool_does_not_matter_where_points_have_ids():
    x, ids = normal(POINTS, 5).float(), [f"photo-{i}" for i in range(POINTS)]
    order = torch.randperm(POINTS, generator=generator(1))
    one = Learner(Logistic(CLASSES), x, ids=ids).ask(8)
    other = Learner(Logistic(CLASSES), x[order], ids=[ids[i] for i in order]).ask(8)
    assert [ids[i] for i in one.indices] == [ids[order[i]] for i in other.indices]


@pytest.mark.parametrize("sizes", [(120,), (50, 70), (1, 100, 19)])
def test_a_stream_gives_the_picks_of_an_array(sizes):
    x = normal(POINTS, 5).float()
    stream = acquire(None, iter(x.split(sizes)), 8, "herding(references=50)")
    whole = acquire(None, x, 8, "herding(references=50)")
    assert stream.indices.tolist() == whole.indices.tolist()
    assert stream.scores.tolist() == whole.scores.tolist()


def test_parts_of_a_reservoir_merge_into_the_whole():
    x, whole = normal(90, 5), Reservoir(3, 2, 10)
    parts = [Reservoir(3, 2, 10) for _ in range(3)]
    whole.add(Untrained(), x, torch.arange(90))
    for i, part in enumerate(parts):
        part.add(Untrained(), x[30 * i : 30 * i + 30], torch.arange(30 * i, 30 * i + 30))
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert sorted(merged.positions.tolist()) == sorted(whole.positions.tolist())
    assert torch.equal(merged.batch[merged.positions.argsort()], x[merged.positions.sort().values])
    assert merged.seen == whole.seen == 90


@pytest.mark.parametrize("points", [1, 2, 5])
def test_fewer_points_than_are_usual(points):
    x = normal(points, 5).float()
    assert sorted(acquire(None, x, points).indices.tolist()) == list(range(points))


def test_zero_vectors_and_one_point_many_times():
    zeros = torch.zeros(30, 4)
    assert len(set(acquire(None, zeros, 5).indices.tolist())) == 5
    some = torch.cat([zeros, normal(5, 4).float()])
    assert set(acquire(None, some, 6).indices.tolist()) >= set(range(30, 35))


def test_one_class_is_enough_for_a_weight():
    p = torch.ones(POINTS, 5, 1)
    found = acquire(Draws(p, features=normal(POINTS, 5)), np.arange(POINTS), 4, "herding:entropy")
    assert len(set(found.indices.tolist())) == 4


def test_covers_are_near_copies_of_a_pick():
    x = normal(40, 5).float()
    copies = torch.cat([x, x + 1e-4])
    found = acquire(None, copies, 40)
    for pick, covered in zip(found.indices.tolist(), found.covers, strict=True):
        assert all(i % 40 == pick % 40 for i in covered.tolist())
    assert sum(map(len, found.covers)) == 40


# ── what points are compared by ──────────────────────────────────────────────────────────────────


def test_vectors_are_compared_as_they_are_and_images_by_the_model():
    x, model = normal(30, 4).float(), MCDropout(network())
    assert "the inputs" in acquire(model.sample(4, seed=0), x, 3).plan
    image_model = MCDropout(nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Dropout(), nn.ReLU(), nn.Linear(8, 3)))
    images = normal(30, 1, 4, 4).float()
    assert "the model's features" in acquire(image_model.sample(4, seed=0), images, 3).plan
    assert "the numbers of each input" in acquire(None, images, 3).plan


def test_positions_are_no_features():
    p, _ = drawn()
    with pytest.raises(ValueError, match="Draws"):
        acquire(Draws(p), np.arange(POINTS), 3, "herding")


# ── auto ─────────────────────────────────────────────────────────────────────────────────────────


def test_auto_is_herding_weighted_by_margin():
    assert picks(how="auto").indices.tolist() == picks(how="herding:margin").indices.tolist()


def test_auto_is_balentacq_for_draws_without_features():
    p, _ = drawn()
    found = acquire(Draws(p), np.arange(POINTS), 5)
    assert found.indices.tolist() == acquire(Draws(p), np.arange(POINTS), 5, "balentacq").indices.tolist()
    assert found.plan == "auto: balentacq, since these draws come without features to compare points by"


@pytest.mark.parametrize("wish", [{"with_error": True}, {"draws": "auto"}, {"scores": "scores.npy"}])
def test_auto_is_balentacq_where_scores_of_all_points_are_asked_for(tmp_path, monkeypatch, wish):
    monkeypatch.chdir(tmp_path)
    p, h = drawn(draws=40)
    found = acquire(Draws(p, features=h), np.arange(POINTS), 5, **wish)
    assert found.plan.startswith("auto: balentacq, since ")


def test_settings_stand_in_brackets():
    assert strategy("herding:bald(radius=1, balance=0)") == Herding(strategy("bald").measure, balance=0.0, radius=1.0)


@pytest.mark.parametrize("settings", [{"radius": 0.0}, {"references": 0}, {"near": -1.0}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be positive"):
        Herding(**settings)


def test_other_strategies_say_that_they_need_a_model():
    with pytest.raises(ValueError, match="balentacq asks a model, but there is none yet; use auto"):
        acquire(None, normal(20, 3), 2, "balentacq")


def test_noise_goes_by_keys_where_a_source_has_some():
    x = normal(POINTS, 5).float()
    keys = torch.arange(POINTS).flip(0)
    one = acquire(None, Subset(Indexed(x), torch.arange(POINTS), keys), 5)
    other = acquire(None, x.flip(0), 5)
    assert one.indices.tolist() == [POINTS - 1 - i for i in other.indices.tolist()]
