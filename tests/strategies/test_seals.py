"""Seals: a strategy among the neighbours of labelled points, found exactly."""

import numpy as np
import pytest
import torch
from helpers.examples import f64, normal, probabilities
from helpers.labelled import blobs, network
from helpers.sent import sent
from reference import features as reference

from balent import ClusterMargin, CoreSet, Diverse, Draws, Learner, MCDropout, Seals, TopK, acquire, adapt
from balent.acquisition.engines.local import Local
from balent.acquisition.view import View
from balent.contracts.cut_engine import Cut
from balent.data.pool import Indexed, Narrowed, Subset
from balent.maths.measures import bald
from balent.strategies import strategy
from balent.strategies.reservoir import Held, Reservoir, smallest
from balent.strategies.seals import FILL
from balent.types import Pool

POINTS, KNOWN = 200, 6


def data():
    """The last points are labelled, and no part of the pool."""
    return probabilities(POINTS + KNOWN, 5, 3), normal(POINTS + KNOWN, 4, dtype=torch.float32)


def pick(name, k, p=None, h=None, seed=0, pool=None, known=KNOWN):
    p, h = data() if p is None else (p, h)
    labelled = np.arange(len(h) - known, len(h)) if known else None
    return acquire(Draws(p, features=h), np.arange(len(h) - known) if pool is None else pool, k, name, seed=seed,
                   labelled=labelled)  # fmt: skip


def neighbours(h, n, known=KNOWN):
    """By all distances."""
    pool, labelled = h[: len(h) - known], h[len(h) - known :]
    return sorted({i for near in reference.k_nearest(pool, labelled, n) for i in near})


def test_only_what_is_near_a_label_is_looked_at_by_hand():
    """Labelled at 0 and 100: of each the two nearest, of which BALD is largest at 101."""
    h = f64([[1.0], [2.0], [50.0], [101.0], [98.0], [0.0], [100.0]])
    sure, torn = [[0.9, 0.1]] * 2, [[1.0, 0.0], [0.0, 1.0]]
    p = f64([sure, sure, torn, torn, sure, sure, sure])
    picks = pick("seals:bald(neighbours=2)", 1, p, h, known=2)
    assert picks.indices.tolist() == [3]
    assert picks.plan == "4 candidates, the 2 nearest of each of 2 labelled points"


@pytest.mark.parametrize("n", [3, 20, 1000])
@pytest.mark.parametrize("inner", ["bald", "diverse:bald", "badge", "core_mse", "cluster_margin", "core_set"])
def test_picks_are_those_of_the_strategy_on_the_neighbours_alone(inner, n):
    p, h = data()
    near = torch.tensor(neighbours(h, n))
    alone = pick(inner, 5, p, h, pool=Subset(Indexed(np.arange(POINTS)), near))
    assert pick(f"seals:{inner}(neighbours={n})", 5, p, h).indices.tolist() == alone.indices.tolist()


def test_draws_are_made_at_candidates_alone():
    """That is most of the time saved."""
    asked = set()

    class Counting(Draws):
        def moments(self, batch, positions=None):
            asked.update(positions.tolist())
            return super().moments(batch, positions)

    p, h = data()
    near = neighbours(h, 3)
    acquire(Counting(p, features=h), np.arange(POINTS), 5, "seals:bald(neighbours=3)", labelled=np.arange(POINTS, 206))
    assert asked - {0, 1} == set(near) - {0, 1}  # two points tell how large the others are


def test_random_points_make_up_for_neighbours_that_are_too_few():
    """One neighbour of each of six points; a batch of 30 has all of these, and the first others by their noise."""
    p, h = data()
    near = neighbours(h, 1)
    order = smallest(7, torch.arange(POINTS), FILL, POINTS).tolist()
    others = [i for i in order if i not in near][: 30 - len(near)]
    picks = pick("seals:bald(neighbours=1)", 30, p, h, seed=7)
    assert sorted(picks.indices.tolist()) == sorted([*near, *others])
    assert picks.plan.endswith(f"labelled points, and {len(others)} random points")


@pytest.mark.parametrize("points", [1, 7, 128, 1000])
@pytest.mark.parametrize("inner", ["bald", "jitter:bald", "cluster_margin"])
def test_spans_of_a_cluster_give_the_same_picks_and_scores(inner, points):
    """Half of the points are duplicates, so distances tie. Neighbours are too few, so that random points fill up."""
    sampled = Draws(probabilities(150, 5, 3).repeat(2, 1, 1), features=normal(150, 33).repeat(2, 1))
    one, other = (
        acquire(
            sampled, np.arange(290), 25, f"seals:{inner}(neighbours=2)", engine=engine, labelled=np.arange(290, 300)
        )
        for engine in ("local", Cut(points, sent))
    )
    assert one.indices.tolist() == other.indices.tolist()
    assert one.scores.tolist() == other.scores.tolist()
    assert "random points" in one.plan


def test_a_batch_can_be_the_whole_pool():
    assert sorted(pick("seals:bald(neighbours=1)", POINTS).indices.tolist()) == list(range(POINTS))


def test_without_labelled_points_the_whole_pool_is_looked_at():
    p, h = data()
    picks = pick("seals:bald", 9, p, h, known=0)
    assert picks.indices.tolist() == pick("bald", 9, p, h, known=0).indices.tolist()
    assert picks.plan == "the whole pool, since no point is labelled"


def test_the_plan_of_the_strategy_follows():
    plan = pick("seals:cluster_margin(clusters=2)", 5).plan
    assert plan.startswith("193 candidates, the 100 nearest of each of 6 labelled points; 5 of the 50 smallest margins")


def test_duplicates_of_a_labelled_point_tie_by_position():
    h = torch.zeros(21, 3, dtype=torch.float32)
    picks = pick("seals:random(neighbours=4)", 4, probabilities(21, 5, 3), h, known=1)
    assert sorted(picks.indices.tolist()) == [0, 1, 2, 3]


def test_a_rare_class_is_found_near_its_only_label():
    """20 of 2,000 points are of a rare class, and the model knows nothing yet: at random one in 100 is."""
    y = torch.arange(2001) % 100 == 0
    h = normal(2001, 8, dtype=torch.float32) + 6 * y[:, None]
    picks = pick("seals:bald(neighbours=19)", 19, torch.full((2001, 3, 2), 0.5), h, known=1)
    assert y[2000]
    assert y[torch.as_tensor(picks.indices)].double().mean() > 0.9


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("seals:bald", Seals(TopK(bald))),
        ("seals:bald(neighbours=5)", Seals(TopK(bald), 5)),
        ("seals:diverse:bald(neighbours=50, times=20)", Seals(Diverse(bald, times=20), 50)),
        ("seals:cluster_margin(clusters=7)", Seals(ClusterMargin(clusters=7))),
        ("seals:core_set", Seals(CoreSet())),
        ("seals:seals:bald", Seals(Seals(TopK(bald)))),
    ],
)
def test_a_name_is_taken_apart(name, expected):
    assert strategy(name) == expected


def test_a_strategy_of_a_users_own_can_be_wrapped(tmp_path):
    (tmp_path / "mine.py").write_text("def first(m):\n    return m.mean[:, 0]\n")
    picks = pick(f"seals:{tmp_path}/mine.py:first(neighbours=10)", 3)
    p, h = data()
    near = neighbours(h, 10)
    best = p.mean(1)[near, 0].argsort(descending=True)[:3]
    assert picks.indices.tolist() == [near[i] for i in best.tolist()]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("seals:bold", "there is no strategy 'bold'; did you mean bald"),
        ("seals:bald(neighbors=5)", "there is no setting of seals:bald 'neighbors'"),
        ("seals:bald(neighbours=0)", "neighbours must be 1 or more, but are 0"),
        ("seals:bald(neighbours=0.5)", "must be a whole number, but is 0.5"),
        ("seal:bald", "there is no kind of strategy 'seal', and no module of that name; did you mean seals"),
    ],
)
def test_a_name_that_is_wrong_is_refused_in_words(name, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        strategy(name)


# ── around it ────────────────────────────────────────────────────────────────────────────────────


def test_what_the_strategy_needs_is_needed_still():
    needs = adapt.needs(strategy("seals:batch_bald"))
    assert (needs.shared, needs.features, needs.labelled, needs.again) == (True, True, True, True)
    assert adapt.needs(strategy("seals:herding")).model


def test_a_stream_is_refused_in_words():
    p, h = data()
    with pytest.raises(ValueError, match="seals:bald reads points again, but a stream is read only once"):
        acquire(Draws(p, features=h), iter([np.arange(POINTS)]), 3, "seals:bald", labelled=np.arange(POINTS, 206))


def test_a_bad_feature_is_named():
    p, h = data()
    h[11, 0] = torch.inf
    with pytest.raises(ValueError, match="one is inf at point 11"):
        pick("seals:bald", 3, p, h)


@pytest.mark.parametrize("inner", ["bald", "auto", "cluster_margin"])
def test_a_learner_asks_near_what_it_was_told(inner):
    x, y = blobs(90)
    learner = Learner(MCDropout(network(), epochs=2), x, f"seals:{inner}(neighbours=4)", draws=4, start=[0, 1, 2])
    learner.tell(learner.ask(3).indices, y[:3])
    asked = learner.ask(3).indices.tolist()
    h = learner.sampled().features(x)
    near = {i + 3 for row in reference.k_nearest(h[3:], h[:3], 4) for i in row}
    assert set(asked) <= near


class Named:
    """A source with keys, written by hand."""

    size, positions = 9, torch.arange(9)

    def blocks(self, points):
        raise AssertionError("not all points are read")

    def at(self, positions):
        return positions.numpy()

    def keys(self, positions):
        return positions + 100


def test_a_part_of_any_source_keeps_positions_and_keys():
    part = Narrowed(Named(), torch.tensor([1, 4, 5, 8]))
    assert [positions.tolist() for _, positions in part.blocks(3)] == [[1, 4, 5], [8]]
    assert [batch.tolist() for batch, _ in part.blocks(3)] == [[1, 4, 5], [8]]
    assert part.keys(torch.tensor([4])).tolist() == [104]
    assert [part.part(span).positions.tolist() for span in part.spans(3)] == [[1, 4, 5], [8]]


def test_held_points_of_a_stream_can_be_narrowed_too():
    kept = Reservoir(0, 2, 9)
    kept.add(Draws(probabilities(9, 2, 2)), 10 * torch.arange(9), torch.arange(9))
    some = Held(kept, None).only(torch.tensor([2, 7]))
    assert isinstance(some, Pool)
    assert isinstance(View(Local(), Indexed(np.arange(3))), Pool)
    assert some.positions.tolist() == [2, 7]
    assert some.read(Draws(probabilities(9, 2, 2)), torch.tensor([7, 2]), lambda _, batch, at: batch).tolist() == [
        70,
        20,
    ]
