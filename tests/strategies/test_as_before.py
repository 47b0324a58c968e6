"""Strategies without noise pick what version 0.1 picked: the redesign changed no formula and no order.

The reference and how it was made: tests/reference/picks_0_1.py.
"""

import json
from pathlib import Path

import pytest
from reference import picks_0_1

import balent
from balent.adapt import needs
from balent.strategies import PREFIXES, strategy

BEFORE = json.loads(Path(picks_0_1.__file__).with_suffix(".json").read_text())
NEW = {"margin"}  # measures that version 0.1 did not have


@pytest.fixture(scope="module")
def now():
    return picks_0_1.picks()


@pytest.mark.parametrize(("way", "name"), [(way, name) for way in BEFORE for name in BEFORE[way]])
def test_picks_are_those_of_version_0_1(now, way, name):
    assert now[way][name] == BEFORE[way][name]


def test_every_strategy_without_noise_is_compared():
    """batch_bald declares noise: it draws where label sets are too many to count, which these are not."""
    names = [*balent.STRATEGIES, *(f"{prefix}:{measure}" for prefix in PREFIXES for measure in balent.MEASURES)]
    quiet = {name for name in names if not needs(strategy(name)).noise} - NEW - {f"diverse:{name}" for name in NEW}
    assert quiet == {name for name in BEFORE["acquire, Draws"] if not name.startswith("batch_bald")}
