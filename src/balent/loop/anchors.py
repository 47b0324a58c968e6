"""Rows of the pool for predictors that look at more than the labelled ones."""

from balent.data.pool import Subset
from balent.loop.seeds import seed_of
from balent.predictors.neighbours import ANCHORS
from balent.strategies.reservoir import smallest
from balent.types import HasAnchors, Predictor


def anchor(predictor: Predictor, pool: Subset, seed: int) -> None:
    """Give the predictor random rows of the pool, if it takes some and has none."""
    if isinstance(predictor, HasAnchors) and predictor.anchors is None:
        keys = pool.keys(pool.positions)
        predictor.anchor(pool.at(smallest(seed_of(seed, "anchors"), keys, 0, ANCHORS).sort().values))
