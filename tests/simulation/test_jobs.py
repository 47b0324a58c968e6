"""Runs side by side: what ends one of them is reported as it was."""

import os
import re
from dataclasses import replace

import pytest
from helpers.runs import TINY

from balent.simulation.jobs import side_by_side


def confused(data):
    raise KeyError("weights")


def unspeakable(data):
    b"\xff".decode()


def gone(data):
    os._exit(3)


def killed(data):
    os.kill(os.getpid(), 9)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (confused, "balentacq, seed 0 failed:\nTraceback"),
        (unspeakable, "balentacq, seed 0: 'utf-8' codec can't decode byte 0xff"),
        (gone, r"balentacq, seed 0 ended without a result \(exit code 3\)"),
        (killed, "balentacq, seed 0 was killed by signal 9"),
    ],
)
def test_only_what_was_killed_is_said_to_be_killed(tmp_path, network, said):
    """#14: every fault in a run's code was reported as "was killed (exit code 1)"."""
    spec = replace(TINY, data="moons", network=f"test_jobs:{network.__name__}", strategy="balentacq")
    [news] = side_by_side([spec], tmp_path, 1)
    assert re.match(said, news.error)
