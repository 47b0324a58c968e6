"""Without extras balent works with torch and numpy, and says what else a thing needs.

All cases run in one process that cannot import the packages of any extra. `make release-check` runs this file against
the wheel, in an environment where they are not installed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.bare_install import COMMANDS

TESTS = Path(__file__).parents[1]
CALLS = ["every public name", "score", "select", "Learner", "GaussianProcess", "Shards", "RayEngine"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    words = [sys.executable, "-m", "helpers.bare_install"]
    place, env = tmp_path_factory.mktemp("bare"), {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(words, cwd=place, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", [*COMMANDS, *CALLS])
def test_a_bare_install_works_or_names_the_extra(cases, case):
    extra, code, said = cases[case]
    if extra is None:
        assert code == 0, said
    else:
        assert code != 0, said
        assert f"pip install 'balent[{extra}]'" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_missing_is_said_in_one_sentence(cases, command):
    """Not as a traceback of Python."""
    assert cases[command][1] in (0, 2), cases[command][2]
