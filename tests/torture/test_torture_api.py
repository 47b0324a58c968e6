"""Fuzzed calls: no traceback, and nothing accepted that is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("tries", "seed"), [(200, 1), pytest.param(3000, 0, marks=pytest.mark.slow)])
def test_fuzzed_calls_end_in_a_clear_error_or_a_right_answer(tries, seed):
    """In a process of its own, without the checks of types that tests have: they would refuse what users can pass."""
    words = [sys.executable, "-m", "torture.api", str(tries), str(seed)]
    done = subprocess.run(words, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
