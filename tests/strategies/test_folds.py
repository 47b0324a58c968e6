"""What an engine may do with every fold: cut the pool into spans, fold each, send the folds and merge them in order."""

import pickle

import pytest
import torch
from helpers.examples import normal, probabilities

from balent import Draws
from balent.acquisition.beside import ScoresBy, Together
from balent.acquisition.passed import Passed
from balent.geometry.distances import Points
from balent.geometry.embedded import Embedding
from balent.geometry.k_nearest import KNearest
from balent.maths.measures import bald
from balent.strategies.badge import uncertainty
from balent.strategies.column import Column
from balent.strategies.core_mse import Bounds, Gram, Pilot, log_loss
from balent.strategies.race import packed
from balent.strategies.shortlist import Kept
from balent.strategies.top_k import ByMeasure, Halves, Top
from balent.types import HasState

POINTS, DRAWS, CLASSES = 40, 8, 3
SAMPLED = Draws(probabilities(POINTS, DRAWS, CLASSES), features=normal(POINTS, 5))
SCORE = ByMeasure(bald, 0)
CENTRES = Points.of(normal(4, 5, seed=1, dtype=torch.float32))
ROOT = Pilot(normal(DRAWS, DRAWS) @ normal(DRAWS, DRAWS).T).root


def best(found):
    return found.scores, found.positions


def all_rows(fold):
    rows, positions = fold.embedded()
    at = slice(None)
    return [rows.features[at], rows.norms, positions, *([] if rows.factors is None else [rows.factors[at]])]


# What makes an empty fold, and what is known of the pool in the end.
FOLDS = {
    "top": (lambda: Top(SCORE, 7), lambda fold: best(fold.best)),
    "halves": (lambda: Halves(bald, 7), lambda fold: [x for found in fold.best for x in best(found)]),
    "column": (lambda: Column(SCORE), lambda fold: (fold.values, fold.positions)),
    "together": (
        lambda: Together([Top(SCORE, 7), Column(SCORE)]),
        lambda fold: (*best(fold.folds[0].best), fold.folds[1].values, fold.folds[1].positions),
    ),
    "rows": (lambda: Column(packed), lambda fold: (fold.values, fold.positions)),
    "kept": (lambda: Kept(SCORE, 7), lambda fold: (*best(fold.best), torch.stack(list(fold.rows.values())))),
    "embedding": (lambda: Embedding(None, 1 << 20, "float32", None), all_rows),
    "gradients": (lambda: Embedding(uncertainty, 1 << 20, "float32", POINTS), all_rows),
    "float16": (lambda: Embedding(uncertainty, 1 << 20, "float16", None), all_rows),
    "k nearest": (lambda: KNearest(CENTRES, 3), lambda fold: fold.pairs()),
    "many nearest": (lambda: KNearest(CENTRES, POINTS + 1), lambda fold: fold.pairs()),
    "large k": (lambda: Top(SCORE, 30), lambda fold: best(fold.best)),
    "bounds": (lambda: Bounds(ROOT, None), lambda fold: (fold.values, fold.positions)),
    "gram": (
        lambda: Bounds(ROOT, Gram(log_loss)),
        lambda fold: (fold.values, fold.positions, fold.gram.mean(), torch.tensor(fold.gram.points)),
    ),
}
ROUNDED = ("bounds", "gram")  # products of matrices: the width of a block may change the last bits
every = pytest.mark.parametrize("name", FOLDS)


def folded(name, start, stop, block=6):
    fold = FOLDS[name][0]()
    for positions in torch.arange(start, stop).split(block) if stop > start else ():
        fold.add(SAMPLED, positions, positions)
    return fold


def assert_same(name, one, other):
    for a, b in zip(FOLDS[name][1](one), FOLDS[name][1](other), strict=True):
        torch.testing.assert_close(
            a, b, **({"rtol": 1e-9, "atol": 1e-12} if name in ROUNDED else {"rtol": 0, "atol": 0})
        )


@every
@pytest.mark.parametrize("cuts", [(13, 29), (1, 39), (0, 20), (20, 20), (40, 40)])
def test_spans_merged_in_order_are_one_pass(name, cuts):
    """Also spans without a point: a worker may have had none."""
    one, cut, other = folded(name, 0, cuts[0]), folded(name, *cuts), folded(name, cuts[1], POINTS)
    assert_same(name, one.merge(cut).merge(other), folded(name, 0, POINTS))


@every
@pytest.mark.parametrize("block", [1, POINTS])
def test_blocks_of_any_size_are_one_pass(name, block):
    assert_same(name, folded(name, 0, POINTS, block), folded(name, 0, POINTS))


@every
def test_folds_travel(name):
    """Empty ones to a worker, full ones back; and what came back can be merged."""
    sent = pickle.loads(pickle.dumps(FOLDS[name][0]()))
    for positions in torch.arange(20).split(6):
        sent.add(SAMPLED, positions, positions)
    back = pickle.loads(pickle.dumps(sent))
    assert_same(name, back.merge(folded(name, 20, POINTS)), folded(name, 0, POINTS))


@pytest.mark.parametrize("name", [name for name in FOLDS if isinstance(FOLDS[name][0](), HasState)])
@pytest.mark.parametrize("cut", [0, 20])
def test_a_fold_is_kept_as_tensors(name, cut):
    """On disk and on the way from a worker; also one that saw nothing."""
    again = FOLDS[name][0]()
    again.load_state({key: x.clone() for key, x in folded(name, 0, cut).state().items()})
    assert_same(name, again.merge(folded(name, cut, POINTS)), folded(name, 0, POINTS))


def test_all_folds_but_those_of_streams_are_kept_as_tensors():
    assert [name for name in FOLDS if not isinstance(FOLDS[name][0](), HasState)] == ["kept"]


def test_scores_of_all_points_are_written_where_the_writer_is():
    """A worker keeps them, and has no writer."""
    written = []
    table = Passed(ScoresBy({"bald": bald}, 0), lambda positions, scores: written.append((positions, scores)))
    sent = pickle.loads(pickle.dumps(table))
    sent.add(SAMPLED, torch.arange(9), torch.arange(9))
    assert written == []
    again = pickle.loads(pickle.dumps(table))
    again.load_state(sent.state())
    table.merge(again)
    ((positions, scores),) = written
    assert positions.tolist() == list(range(9))
    assert torch.equal(scores[:, 0], SCORE(SAMPLED, torch.arange(9), torch.arange(9)))


@every
def test_a_block_that_fails_leaves_the_fold_as_it_was(name):
    """An engine tries a block that did not fit in memory again, in halves."""

    class Failing(Draws):
        def __call__(self, *args):
            raise MemoryError

        moments = groups = features = __call__

    fold = folded(name, 0, 20)
    with pytest.raises(MemoryError):
        fold.add(Failing(SAMPLED.array), torch.arange(20, 26), torch.arange(20, 26))
    for positions in torch.arange(20, POINTS).split(6):
        fold.add(SAMPLED, positions, positions)
    assert_same(name, fold, folded(name, 0, POINTS))
