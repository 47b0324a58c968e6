"""Three thousand fuzzed calls: no traceback, and nothing accepted that is wrong."""

import pytest

from torture import api


@pytest.mark.slow
def test_fuzzed_calls_end_in_a_clear_error_or_a_right_answer():
    found = api.run(3000, seed=0)
    assert sum(counts["tried"] for counts in found.values()) == 3000
    assert {name: (counts["traceback"], counts["silent"]) for name, counts in found.items()} == dict.fromkeys(
        found, (0, 0)
    )
    assert all(counts["clear error"] > 50 and counts["accepted and right"] > 50 for counts in found.values())


def test_a_hundred_fuzzed_calls_end_in_a_clear_error_or_a_right_answer():
    """A taste of the above, at every run."""
    assert not any(counts["traceback"] + counts["silent"] for counts in api.run(100, seed=1).values())
