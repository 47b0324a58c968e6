"""A thousand damaged files for each format that `balent score` and `balent acquire` read."""

import resource
import sys

import pytest

from torture import pools

MEGABYTE = 1 << 20 if sys.platform == "darwin" else 1 << 10  # in the unit of ru_maxrss


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


@pytest.mark.slow
def test_damaged_files_are_clear_errors_and_take_no_memory():
    """Defect: 62 of 150 damaged pools gave tracebacks, and headers that lie took the memory that they said."""
    before = peak()
    found = pools.run(1000, seed=0)
    assert {name.split()[0] for name in found} == {"score", "acquire"}
    for name, counts in found.items():
        assert counts["tried"] == 1000, name
        assert counts["clear error"] + counts["right"] == 1000, (name, counts)
    assert peak() - before < 500
