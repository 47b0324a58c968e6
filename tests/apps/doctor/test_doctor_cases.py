"""What the doctor finds in prepared cases, and that it finds nothing where nothing is wrong."""

import runpy
from pathlib import Path

import pytest

from balent.apps.doctor import sheet
from balent.apps.doctor.finding import FAILURE, WARNING

BENCH = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "doctor_cases.py"))
CASES, examined = BENCH["CASES"], BENCH["examined"]
SPOILT = ("no dropout", "dropout of p = 0", "dropout without effect", "constant features", "one class",
          "features without meaning", "label noise of 20 %")  # fmt: skip
WASTEFUL = ("30 % duplicates", "30 % near-duplicates")


def alarms(found, *levels):
    """The checks that found something; each says what to do."""
    chosen = [finding for finding in found if finding.level in levels]
    assert all(finding.says and finding.action for finding in chosen)
    return {finding.about for finding in chosen}


@pytest.mark.parametrize("name", SPOILT)
def test_what_would_spoil_a_run_is_a_failure(name):
    found = examined(CASES[name], 0)
    assert CASES[name].check in alarms(found, FAILURE)
    assert sheet.spoils(found)


@pytest.mark.parametrize("name", WASTEFUL)
def test_what_costs_labels_is_a_warning(name):
    found = examined(CASES[name], 0)
    assert alarms(found, WARNING, FAILURE) == {CASES[name].check}
    assert not sheet.spoils(found)


@pytest.mark.parametrize("name", ["good project", "good model", "clean, blurred features"])
def test_nothing_is_found_where_nothing_is_wrong(name):
    assert alarms(examined(CASES[name], 0), WARNING, FAILURE) == set()
